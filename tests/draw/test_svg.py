"""Pictures: themes, lengths, names of any kind, PNG, and the score's own numbers."""

import math
import re
import struct
import sys
from dataclasses import replace
from types import ModuleType
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placer.base.errors import InputError, OutputError
from placer.base.units import format_bytes_beside
from placer.draw import png as module
from placer.draw import svg
from placer.draw.heat_map import traffic_map
from placer.draw.machine_view import short_names
from placer.draw.placement_map import placement_map
from placer.draw.png import png
from placer.draw.time_line import time_line
from placer.testing.strategies import TIERS, tiny_plan
from tests.clients import needs
from tests.draw.pictures import SCORE, SVG, of_class, parse

IDS = [str(UUID(int=(2**127) // (n + 1))) for n in range(3)]


@pytest.mark.parametrize(
    ("names", "shown"),
    [
        (["r1", "r2", "r1"], ["r1", "r2", "r1"]),
        ([f"{IDS[0]}.{n}" for n in (0, 3)], ["clique 0", "clique 3"]),
        ([f"{name}.0" for name in IDS], ["clique 1", "clique 2", "clique 3"]),
        ([f"{IDS[0]}.0", f"{IDS[1]}.7"], ["clique 1", "clique 2"]),
        ([IDS[0]], ["clique 1"]),
        (["us-east-dc-1-pod-a-rack", "us-east-dc-1-pod-b-rack"], ["a", "b"]),
        ([], []),
    ],
)  # fmt: skip
def test_short_names(names, shown):
    """Short names stay; ids of one cluster keep their number; others are counted."""
    assert short_names(names, "clique") == shown


@given(st.lists(st.text("ab-.", min_size=1, max_size=30), min_size=1))
def test_different_names_stay_different(names):
    """Two domains share a short name only if they share their own."""
    shown = short_names(names, "rack")
    pairs = set(zip(names, shown, strict=True))
    assert len(pairs) == len(set(names)) == len(set(shown))
    assert all(shown)


@pytest.fixture
def resvg():
    needs.module("resvg_py")
    module._family.cache_clear()
    yield
    module._family.cache_clear()


@pytest.mark.usefixtures("resvg")
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_png(theme):
    """It is 1,600 pixels wide, in the proportions of the picture, with its text."""
    picture = placement_map(tiny_plan(), theme=theme)
    data = png(picture)
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack(">II", data[16:24])
    assert width == 1600
    sides = [float(x) for x in re.findall(r'(?:width|height)="([0-9.]+)"', picture)[:2]]
    assert height / width == pytest.approx(sides[1] / sides[0], abs=0.002)
    assert png(re.sub("<text.*?</text>", "", picture)) != data
    assert png(picture) == data


def test_no_font(monkeypatch):
    """Without any font there is an error rather than a picture without text."""

    def drawn(svg_string, **_options):
        return re.sub("<text.*?</text>", "", svg_string).encode()

    resvg = ModuleType("resvg_py")
    resvg.svg_to_bytes = drawn
    monkeypatch.setitem(sys.modules, "resvg_py", resvg)
    module._family.cache_clear()
    with pytest.raises(OutputError, match="no font was found"):
        png(placement_map(tiny_plan(), theme="light"))


def test_no_resvg(monkeypatch):
    """Without the package the error says how to get it."""
    monkeypatch.setitem(sys.modules, "resvg_py", None)
    with pytest.raises(InputError, match=r"placer\[png\]"):
        png(svg.to_text(svg.new_picture(10, 10, "light", "nothing")))


seconds = st.floats(0, 100) | st.just(0.0)
sizes = st.floats(1e-300, 1e300)
names = st.text(min_size=1, max_size=12)


@st.composite
def scored(draw):
    exposed = draw(st.dictionaries(names, seconds, max_size=5))
    parts = [draw(seconds) for _ in range(3)]
    step = sum(parts) + sum(exposed.values())
    traffic = draw(
        st.dictionaries(
            names, st.dictionaries(st.sampled_from(TIERS), sizes), max_size=5
        )
    )
    return tiny_plan(
        score={
            **dict(zip(("compute_s", "bubble_s", "fixed_s"), parts, strict=True)),
            "step_time_s": step,
            "exposed_s": exposed,
            "exposed_scale_out_s": sum(exposed.values()) * draw(st.floats(0, 1)),
            "traffic_bytes": traffic,
        }
    )


@settings(max_examples=20, deadline=None)
@given(plan=scored())
def test_heat_map(plan):
    """There is a cell for each axis and tier; it has the score's bytes in one unit."""
    traffic = plan.score["traffic_bytes"]
    if not any(traffic.values()):
        with pytest.raises(InputError, match="no traffic"):
            traffic_map(plan)
        return
    root = parse(traffic_map(plan))
    cells = [e for e in root.iter() if e.get("data-bytes") is not None]
    assert len(cells) == len(traffic) * len(TIERS)
    shown = [float(cell.get("data-bytes", "nan")) for cell in cells]
    assert shown == [row.get(tier, 0.0) for row in traffic.values() for tier in TIERS]
    texts = [e.text for e in root.iter(f"{SVG}text")]
    sent = [size for size in shown if size]
    assert {format_bytes_beside(size, max(sent)) for size in sent} <= set(texts)


@settings(max_examples=20, deadline=None)
@given(plan=scored())
def test_time_line_adds_up(plan):
    """The parts of the bar are the score's, and together they are the step."""
    step = plan.score["step_time_s"]
    if step == 0:
        with pytest.raises(InputError, match="no times"):
            time_line(plan)
        return
    root = parse(time_line(plan))
    bar = of_class(root, "step")[0]
    parts = of_class(bar, "part")
    total = sum(float(part.get("data-seconds", "nan")) for part in parts)
    assert total == pytest.approx(step, rel=1e-9)
    width = sum(float(part.get("width", "nan")) for part in parts)
    assert width == pytest.approx(1152, abs=0.01 * len(parts) + 0.01)
    exposed = [
        e for group in of_class(root, "exposed") for e in of_class(group, "part")
    ]
    assert [float(e.get("data-seconds", "nan")) for e in exposed] == [
        value for value in plan.score["exposed_s"].values() if value > 0
    ]


HOSTILE = "</text><script>alert('x')</script>&\"\x00\x1b[31m]]>"


def test_hostile_names():
    """Whatever a name holds, the picture is well-formed and the name only text."""
    plan = tiny_plan(
        score={**SCORE, "exposed_s": {HOSTILE: 0.2}, "traffic_bytes": {HOSTILE: {}}}
    )
    traffic = {HOSTILE: {HOSTILE: 5.0}}
    hostile = replace(
        plan,
        score={**plan.score, "traffic_bytes": traffic},
        topology={**plan.topology, "name": HOSTILE},
        job={**plan.job, "name": HOSTILE},
        nodes=tuple(f"{HOSTILE}{i}" for i in range(8)),
        domains={t: tuple(HOSTILE + n for n in ns) for t, ns in plan.domains.items()},
    )
    for picture in (
        placement_map(hostile),
        placement_map(hostile, zoom=f"block={HOSTILE}b0"),
        traffic_map(hostile),
        time_line(hostile),
    ):
        root = parse(picture)
        assert not list(root.iter(f"{SVG}script"))
        assert "\x1b" not in picture
        assert math.isfinite(float(root.get("width", "nan")))
        labels = [e.text or "" for e in root.iter(f"{SVG}text")]
        assert any("<script>" in label for label in labels)
