"""``placer draw`` from end to end."""

import json
import re
from xml.etree import ElementTree as Xml

import pytest

from placer.placement.plan_file import encode_plan
from placer.testing.strategies import tiny_plan
from tests.clients import needs
from tests.commands import refusal, run
from tests.draw.pictures import SCORE

TIMES = {"step_time_s": 25.48, "exposed_scale_out_s": 0.1, "status": "optimal"}
ROWS = {
    "rows": [
        {"dp": 2, "world_size": 16, "global_batch": 32} | TIMES,
        {"dp": 4, "world_size": 32, "global_batch": 64} | TIMES | {"step_time_s": 25.5},
        {"dp": 8, "status": "infeasible", "error": "too large"},
    ]
}


@pytest.fixture
def plan(tmp_path):
    path = tmp_path / "plan.json"
    path.write_text(encode_plan(tiny_plan(score=SCORE)))
    return path


def draw(*args, text=None):
    return run("draw", *args, input=text)


@pytest.mark.parametrize(
    ("picture", "theme"), [("map", "light"), ("traffic", "dark"), ("timeline", "auto")]
)
def test_pictures_of_a_plan(plan, picture, theme):
    """A picture in a theme goes to standard output, or to a file the same."""
    found = draw(plan, picture, "--theme", theme)
    assert Xml.fromstring(found.stdout).tag.endswith("svg")
    output = plan.parent / "picture.svg"
    assert draw(plan, picture, "--theme", theme, "-o", output).stdout == ""
    assert output.read_text() == found.stdout


def test_scaling(tmp_path):
    """Rows of a sweep are drawn, a point a row in both panels, whatever was assumed.

    What follows from the swept key makes no line of its own; no two labels are alike.
    """
    rows, assumed = tmp_path / "rows", {"key": "gpu", "value": "H100"}
    rows.write_text(json.dumps(ROWS | {"assumed": [assumed]}))
    found = draw(rows, "scaling").stdout
    assert found.count('class="point circle"') == 4
    assert found.count('class="point missing"') == 2
    assert found.count("<polyline") == 2
    labels = re.findall(r'text-anchor="end"[^>]*>([^<]*)', found.split("</g>")[0])
    assert labels == ["25.48 s", "25.49 s", "25.5 s"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        '{"rows": []}',
        '{"rows": {"dp": 1}}',
        '{"rows": [{"step_time_s": 1, "exposed_scale_out_s": 0}]}',
        '{"rows": [{"dp": "2", "step_time_s": 1, "exposed_scale_out_s": 0}]}',
        '{"rows": [{"dp": 2, "step_time_s": -1, "exposed_scale_out_s": 0}]}',
        "rows: [{dp: 2, step_time_s: 1}]",
    ],
)
def test_bad_rows(tmp_path, text):
    """What is no sweep ends with 2 and the file's name."""
    rows = tmp_path / "rows.json"
    rows.write_text(text)
    assert str(rows) in refusal("draw", rows, "scaling")


@pytest.mark.parametrize(
    ("args", "what"),
    [
        (["--zoom", "r9"], "no domain with ranks"),
        (["--colour", "ep"], "no ep"),
        (["traffic", "--zoom", "r0"], "for the map"),
        (["map", "--hosts", "n1"], "no plan file"),
        (["map", "-j", "quickstart"], "give the topology it was made for"),
        (["poster"], "placer report PLAN"),
        (["-o", "picture.gif"], "neither .svg nor .png"),
        (["-o", "picture"], "neither .svg nor .png"),
        (["scaling"], "this wants what `placer sweep --format json` prints"),
    ],
)
def test_bad_options(plan, args, what):
    """An option that cannot be used ends with 2 and says why."""
    assert what in refusal("draw", plan, *args)


def test_png(plan):
    """A .png is PNG, and so is what ``--format png`` sends to standard output."""
    needs.module("resvg_py")
    output = plan.parent / "PICTURE.PNG"
    draw(plan, "-o", output)
    data = output.read_bytes()
    assert data.startswith(b"\x89PNG")
    assert draw(plan, "--format", "png").stdout_bytes == data
    dark = draw(plan, "--format", "png", "--theme", "dark").stdout_bytes
    assert dark.startswith(b"\x89PNG")
    assert dark != data
