"""The facts behind a score, and of one group or rank, in words."""

from dataclasses import replace

import numpy as np
import pytest

from placer.api.explain import explain as explain_plan
from placer.base.units import format_seconds
from placer.cost.step import StepModel
from placer.explain import exchanges
from placer.explain.score import explain, score_with
from placer.job.axes import Parallelism
from placer.job.model import Job
from placer.placement.build import build_plan
from placer.placement.placement import Placement
from placer.report.explain_text import explain_text
from placer.report.subject_text import subjects_text
from tests.cost.machines import TOY, machine, racks, swapped, tier
from tests.cost.random_cases import random_case
from tests.marks import slow
from tests.texts import content, data, table


def text_of(topology, job, gpus):
    found = explain(StepModel(topology, job), Placement(gpus))
    tiers = [tier.name for tier in topology.tiers]
    return explain_text(found, tiers, topology.scale_up_tier + 1)


def words(text):
    """The text on one line."""
    return " ".join(text.split())


def test_worst_group_in_words():
    """A cut pair is named with its ranks, racks, tier, time and the reasons."""
    text = words(text_of(racks(gpus=8, num_racks=4), TOY, swapped((1, 9))))
    assert "critical path, longest first 1. " in text
    assert "tp group 0 of 16: ranks 0-1 " in text
    # Half of 1 MiB over 100 GB/s and 3 us; over NVLink at 900 GB/s and 0.5 us.
    assert "8.243 us for one collective; the best group, 1, takes 1.083 us" in text
    assert "1 in rack0, 1 in rack1; 1 NIC a rack; together in one cluster" in text
    assert "why: it spans one cluster, the best group one rack;" in text
    assert "it spans 2 racks, not 1" in text
    assert "hops: 0 in the rack (not 2), 2 in the cluster (not 0)" in text
    assert "its fullest link (rack" in text


def test_a_whole_explanation():
    """Equal groups are one, hops are told by stage, links with the axes on them."""
    gpus = np.argsort(np.argsort(TOY.parallelism.coordinates["pp"], kind="stable"))
    text = text_of(racks(2, gpus=16), TOY, gpus)
    assert f"{text}\n" == data("report/explained.txt")


def test_hop_cost_alone():
    """A job of weights shows its hop cost by axis and tier: 4 pairs in, 1 ring out."""
    job = Job("toy", Parallelism(tp=2, dp=4), weights={"tp": 10.0, "dp": 1.0})
    assert text_of(racks(4, gpus=2), job, np.arange(8)).splitlines() == [
        "hop cost  rack  cluster  share",
        "  tp        40        -  83.3%",
        "  dp         -        8  16.7%",
    ]


def test_slow_node_and_nics():
    """A slow node is named with its share, a lost NIC with the counts."""
    factor = np.ones(4)
    factor[2] = 0.25
    tiers = [tier("rack", 900e9, scale_up=True), tier("cluster", 100e9)]
    text = words(text_of(machine([8, 4], tiers, factor), TOY, np.arange(32)))
    assert "why: rack2 reaches 25% of its bandwidth" in text
    # Stage 0 has a gradient group a TP rank; ranks 2 and 13 are of different ones.
    axes = replace(TOY.parallelism, pp=1, vp=1)
    gpus = swapped((2, 13), ranks=16)
    text = words(text_of(racks(4), replace(TOY, parallelism=axes), gpus))
    assert "1 in rack0, 2 in rack1, 2 in rack2, 3 in rack3; 1 NIC a rack" in text


@pytest.mark.parametrize("seed", range(6))
def test_width(seed):
    """No line is wider than 80 columns or ends in a blank, on any machine."""
    case = random_case(seed)
    for line in text_of(case.topology, case.job, case.gpu_of_rank).splitlines():
        assert len(line) <= 80
        assert line == line.rstrip()


SEEDS = [*range(3), *slow(range(3, 12))]


@pytest.mark.parametrize("seed", SEEDS)
def test_everything_is_said(seed, monkeypatch):
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
    found = explain_plan(
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


KNOWN = content("report/explain.yaml")


def of_group(kinds=(), *, proved=False, period="step", **changed):
    """What is said of a group of two GPUs of one node, changed so."""
    explained = {
        "objective": "time",
        "value": 1.0,
        "proved": proved,
        "subjects": [{"facts": KNOWN["group"] | changed, "exchanges": kinds}],
    }
    return words(subjects_text(explained, ["node", "rack"], 1, period=period))


@pytest.mark.parametrize("period", ["step", "cycle"])
def test_what_is_sent(period):
    """Bytes by tier with the rate there, and of each tier's links the busiest."""
    text = of_group(links=[KNOWN["link"]], period=period)
    assert f"sends a {period}: 5 MB at the node tier (400 GB/s a GPU)" in text
    assert (
        "1 links into the rack tier, r1 up the busiest (50 GB/s): 2 MB of this group, "
        f"25.0% of what keeps it busy 3 ms a {period}"
    ) in text


@pytest.mark.parametrize(*table("report/explain.yaml", "speed_beside_others"))
def test_speed_beside_others(changed, said):
    """Alone the slowest, among the slowest, not the slowest, and all alike."""
    assert said in of_group(**changed)


@pytest.mark.parametrize(*table("report/explain.yaml", "verdict_on_exchanges"))
def test_verdict_on_exchanges(changed, said):
    """Worse, the same, better, none legal: each is said as it is."""
    assert said in of_group((KNOWN["exchanges"] | changed,), proved=True)
