"""An explanation in words: complete, narrow, and with the numbers it was given."""

from dataclasses import replace

import numpy as np
import pytest

from placer.api.explain import explain
from placer.base.units import format_seconds
from placer.cost.step import StepModel
from placer.explain import exchanges
from placer.explain.score import score_with
from placer.placement.build import build_plan
from placer.placement.placement import Placement
from placer.report.subject_text import subjects_text
from tests.cost.random_cases import random_case
from tests.marks import slow

SEEDS = [*range(3), *slow(range(3, 12))]


@pytest.mark.parametrize("seed", SEEDS)
def test_everything_is_said(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ranks, groups and hosts of any job: 80 columns, one block a group, no blanks."""
    monkeypatch.setattr(exchanges, "MOST_RANKS", 500)
    case = random_case(seed, with_model=True)
    job = replace(case.job, weights={"tp": 3.0, "dp": 1.0}, launcher="free")
    model = StepModel(case.topology, job)
    placement = Placement(case.gpu_of_rank)
    score = score_with(model, placement)
    plan = build_plan(case.topology, job, placement, score=score)
    worst = score.get("worst_group")
    groups = [f"{worst['axis']}:{worst['group']}"] if worst else []
    rank = int(np.random.default_rng(seed).integers(job.world_size))
    found = explain(
        plan,
        case.topology,
        job,
        ranks=[rank],
        groups=groups,
        hosts=[plan.host_of_rank[rank]],
    )
    tiers = [tier.name for tier in case.topology.tiers]
    text = subjects_text(found, tiers, case.topology.scale_up_tier + 1)
    lines = text.splitlines()
    assert max(map(len, lines)) <= 80
    assert all(line == line.rstrip() and line.isprintable() for line in lines)
    heads = [line.split()[1] for line in lines if line.startswith("group ")]
    named = [
        f"{facts['axis']}:{facts['group']}"
        for subject in found["subjects"]
        for facts in subject.get("groups", [subject.get("facts")])
    ]
    assert heads == named
    words = " ".join(text.split())
    for subject in found["subjects"]:
        for seat in subject.get("members", ())[:16]:
            assert f"rank {seat['rank']} on {seat['host']}:{seat['gpu']} (" in words
    narrow = subjects_text(found, tiers, case.topology.scale_up_tier + 1, 50)
    assert max(map(len, narrow.splitlines())) <= 50
    assert " ".join(narrow.split()) == words
    if worst:
        facts = found["subjects"][1]["facts"]
        assert facts["seconds"] == worst["seconds"] == facts["slowest_s"]
        assert facts["exposed_s"] == worst["exposed_s"]
        assert f"{format_seconds(worst['seconds'])} for {worst['operation']}" in words
        assert f"{worst['axis']} adds {format_seconds(worst['exposed_s'])}" in words


def facts(**changed: object) -> dict:
    """A group of two GPUs of one node."""
    return {
        "axis": "tp",
        "group": 0,
        "groups": 4,
        "ranks": [0, 1],
        "common_tier": "node",
        "members": {"n0": 2},
        "nics": 2,
        "slowest_node": "n0",
        "bandwidth_factor": 1.0,
        "bandwidth": {"node": 400e9},
        "operation": "one collective",
        "seconds": 2e-3,
        "fastest_s": 1e-3,
        "slowest_s": 2e-3,
        "as_slow": 1,
        "exposed_axis": "tp",
        "exposed_s": 8e-3,
        "alone_s": 4e-3,
        "bytes_by_tier": {"node": 5e6},
        "links": [],
    } | changed


def text_of(
    group: dict,
    kinds: list[dict] | None = None,
    proved: bool = False,
    period: str = "step",
) -> str:
    explained = {
        "objective": "time",
        "value": 1.0,
        "proved": proved,
        "subjects": [{"facts": group, "exchanges": kinds or []}],
    }
    text = subjects_text(explained, ["node", "rack"], 1, period=period)
    return " ".join(text.split())


def test_what_is_sent() -> None:
    """Bytes by tier with the rate there, and of each tier's links the busiest."""
    link = {
        "tier": "rack",
        "domain": "r1",
        "direction": "up",
        "bandwidth": 50e9,
        "bytes": 2e6,
        "busy_s": 3e-3,
        "share": 0.25,
    }
    text = text_of(facts(links=[link]))
    assert "sends a step: 5 MB at the node tier (400 GB/s a GPU)" in text
    assert (
        "1 links into the rack tier, r1 up the busiest (50 GB/s): 2 MB of this group, "
        "25.0% of what keeps it busy 3 ms a step"
    ) in text
    of_a_workload = text_of(facts(links=[link]), period="cycle")
    assert "sends a cycle: 5 MB" in of_a_workload
    assert "busy 3 ms a cycle" in of_a_workload


def test_speed_beside_others() -> None:
    """Alone the slowest, among the slowest, not the slowest, and all alike."""
    assert "2 ms for one collective: the slowest; 1 ms for the fastest" in text_of(
        facts()
    )
    assert "the slowest, as 2 others; 1 ms" in text_of(facts(as_slow=3))
    assert "2 ms for one collective; 3 ms for the slowest group" in text_of(
        facts(slowest_s=3e-3, as_slow=2)
    )
    assert "2 ms for one collective, as for all 4 groups" in text_of(
        facts(fastest_s=2e-3, as_slow=4)
    )
    assert "if it did not wait for this group it would be 4 ms shorter" in text_of(
        facts()
    )
    others = "without this group it would be as long, as others take as long"
    assert others in text_of(facts(alone_s=0.0))


def kind(**changed: object) -> dict:
    return {
        "unit": "rank",
        "ranks": [3],
        "others": 7,
        "tried": 7,
        "legal": 2,
        "same": 0,
        "best": {"with": [5], "change": 2e-3, "hosts": ["n4"]},
        "next": None,
        "breaks": {"tp=node": 5},
        "best_illegal": None,
    } | changed


def test_verdict_on_exchanges() -> None:
    """Worse, the same, better, none legal: each is said as it is."""
    worse = text_of(facts(), [kind()], proved=True)
    assert "exchanges: 7 of 7 tried, none is better (proved optimal)" in worse
    assert "rank: the best costs +2 ms with rank 5 on n4; refused by tp=node 5" in worse
    same = {"with": [5], "change": 0.0, "hosts": ["n4"]}
    assert "2 of 2 legal cost the same" in text_of(facts(), [kind(best=same, same=2)])
    better = {"with": [5], "change": -2e-3, "hosts": ["n4"]}
    text = text_of(facts(), [kind(best=better)])
    assert "one is better than the plan" in text
    assert "the best costs -2 ms" in text
    refused = kind(best=None, legal=0, best_illegal=better)
    text = text_of(facts(), [refused])
    assert "none of 7 tried is legal" in text
    assert "the best of these would cost -2 ms with rank 5 on n4" in text
