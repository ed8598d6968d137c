"""Writing pictures: themes, lengths, names that are too long, and PNG."""

import re
import struct
import sys
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placer.base.errors import InputError, OutputError
from placer.draw import png as module
from placer.draw import svg
from placer.draw.machine_view import short_names
from placer.draw.placement_map import placement_map
from placer.draw.png import png
from placer.testing.strategies import tiny_plan
from tests.clients import needs

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


class Fontless:
    """A resvg on a machine without fonts: texts leave no mark."""

    @staticmethod
    def svg_to_bytes(svg_string, **_options):
        return re.sub("<text.*?</text>", "", svg_string).encode()


def test_no_font(monkeypatch):
    """Without any font there is an error rather than a picture without text."""
    monkeypatch.setattr(module, "_resvg", Fontless)
    module._family.cache_clear()
    with pytest.raises(OutputError, match="no font was found"):
        png(placement_map(tiny_plan(), theme="light"))


def test_no_resvg(monkeypatch):
    """Without the package the error says how to get it."""
    monkeypatch.setitem(sys.modules, "resvg_py", None)
    with pytest.raises(InputError, match=r"placer\[png\]"):
        png(svg.to_text(svg.new_picture(10, 10, "light", "nothing")))
