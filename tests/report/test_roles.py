"""Reports of a workload speak of its roles."""

import re
from dataclasses import replace
from xml.etree import ElementTree as Xml

import pytest

import placer
from placer.api.report import report_html
from placer.base.errors import InfeasibleError, InputError
from placer.base.units import format_seconds
from placer.draw.heat_map import traffic_map
from placer.report.columns import Look
from placer.report.diff_text import diff_text
from placer.report.page.bars import links_heading
from placer.report.page.headlines import parts
from placer.report.page.side import Side
from placer.report.score_text import score_text
from placer.report.verdict import sentence
from tests.texts import FOLDER


@pytest.fixture(scope="module")
def plan():
    job = FOLDER / "jobs/workload-memory.yaml"
    return placer.place("dgx-h100-4x8", job, time_limit=5).plan


def test_pictures_of_a_cycle_show_its_slowest_role(plan):
    """The parts are all of the cycle, on the page and in the time line."""
    cycle = plan.score["step_time_s"]
    shown = parts(Side("the plan", plan, None))
    assert shown["slowest role"] > 0
    assert sum(shown.values()) == pytest.approx(cycle, rel=1e-9)
    root = Xml.fromstring(placer.draw(plan, "timeline").svg)
    bar = next(e for e in root.iter() if e.get("class") == "step")
    seconds = [float(e.get("data-seconds")) for e in bar if e.get("data-seconds")]
    assert sum(seconds) == pytest.approx(cycle, rel=1e-9)
    assert f"{format_seconds(cycle)} a cycle" in root.itertext()


def test_pages_and_tables_of_a_workload_speak_of_a_cycle(plan):
    """No time of it is called a step's."""
    page = report_html(plan).split("<script")[0]
    assert "One cycle, part by part" in page
    assert "Cycle time" in page
    for text in (page, traffic_map(plan)):
        assert " cycle" in text
        assert not re.search(r"(a|each|One) step\b", text)
    words = {word for axis in plan.score["traffic_bytes"] for word in axis.split(".")}
    assert {"trainer", "dp"} < words < set(Xml.fromstring(traffic_map(plan)).itertext())
    busy, quiet = (
        Side("", replace(plan, score={**plan.score, "hottest_links": links}), None)
        for links in ([{"busy_s": 0.5}], [])
    )
    now = "No uplink carries anything now: 500 ms of each cycle before"
    assert links_heading([busy, quiet]) == now
    text = score_text(plan.score, plan.topology["tiers"], 1, Look())
    assert "bytes a cycle" in text


def test_the_verdict_is_of_a_cycle(plan):
    """A step is that of one role; `step_time_s` of a workload is its cycle."""
    slow = {"step_time_s": 2 * plan.score["step_time_s"], "exposed_scale_out_s": 0.0}
    saved = {"advice": "move", "saved_s": 1.0, "saved_s_interval": [0.9, 1.1]}
    facts = {**saved, "saved_share": 0.5, "reason": ""}
    said = sentence(replace(plan, baselines={"given-order": slow}), facts)
    assert re.search(
        r"Move: saves 1 s a cycle .*; your order: .*, .* m?s a cycle;", said
    )


def test_maps_have_a_colour_a_role_and_number_its_instances(plan):
    root = Xml.fromstring(placer.draw(plan).svg)
    cells = {e.get("data-rank"): e for e in root.iter() if e.get("data-rank")}
    fill = {rank: cell.get("fill") for rank, cell in cells.items()}
    assert len(cells) == 16
    assert {fill[str(rank)] for rank in range(8)} != {fill["8"]} == {fill["15"]}
    assert "rollout 1" in "".join(cells["12"].itertext())
    assert {"trainer", "rollout"} <= set(root.itertext())
    with pytest.raises(InputError, match="the job has no dp"):
        placer.draw(plan, colour="dp")


def test_the_pipeline_is_that_of_the_slowest_role_with_a_model(plan):
    """It is as long as that role's step; where no role has a model, that is said."""
    assert "trainer" in placer.draw(plan, "pipeline").name
    last = placer.draw(plan, "pipeline").rows[-1]["end_s"]
    assert 0 < last <= plan.score["roles"]["trainer"]["seconds"]
    bare = placer.place("node:20 gpu:8", "rl-weights-qwen3", effort=0).plan
    with pytest.raises(InputError, match="no role of the workload has a model"):
        placer.draw(bare, "pipeline")


def test_moves_are_told_by_instance(plan):
    new = placer.replace(plan, failed=plan.nodes[plan.node_of_rank[15]]).plan
    folds = placer.diff(plan, new).to_dict()["folded_by_axis"]["role"]
    assert {fold["index"] for fold in folds} <= {"trainer 0", "rollout 0", "rollout 1"}
    assert "rollout 1, 1 node:" in diff_text(placer.diff(plan, new))


def test_a_workload_too_large_for_what_is_left_is_not_told_to_shrink_dp(plan):
    gone = ["n1", "n2", "n3"]
    for shrink in (False, True):
        with pytest.raises(InfeasibleError, match="one of rollout takes 4") as error:
            placer.replace(plan, failed=gone, shrink=shrink)
        assert "dp" not in str(error.value)
