"""The checker on pins, replicas a domain, spares and hosts to avoid."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from placer import read_topology
from placer.job.axes import Parallelism
from placer.job.model import Job
from placer.job.rules import Pin, Rules
from placer.placement.build import build_plan
from placer.placement.check import violations
from placer.placement.placement import Placement

# Two racks of three nodes of two GPUs; four replicas of two ranks, one a node.
MACHINE = read_topology("rack:2 node:3 gpu:2")
JOB = Job(
    "job",
    Parallelism(tp=2, dp=4, order=("tp", "cp", "ep", "pp", "dp")),
    weights={"tp": 1.0},
)
NODES = np.array([0, 0, 1, 1, 3, 3, 4, 4])  # racks 1 1 2 2, nodes 3 and 6 are free
PLACEMENT = Placement.on_nodes(MACHINE, NODES)


def under(rules: Rules) -> Job:
    return replace(JOB, rules=rules)


@pytest.mark.parametrize(
    "rules",
    [
        Rules((Pin((0, 1), ("r1-n1",)), Pin((7,), ("r2-n2", "r2-n3")))),
        Rules(at_most={"rack": 2, "node": 1, "cluster": 4}),
        Rules(spares={"rack": 1, "cluster": 2}),
    ],
)
def test_kept_rules(rules: Rules) -> None:
    """A placement that keeps its rules passes, bare and as a plan."""
    job = under(rules)
    assert violations(PLACEMENT, MACHINE, job) == []
    assert violations(build_plan(MACHINE, job, PLACEMENT), MACHINE, job) == []


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        (
            Rules((Pin((0, 2), ("r1-n1",)),)),
            "pinned: ranks 0,2 on r1-n1, 1 of 2 ranks is elsewhere: the first is rank "
            "2, on r1-n2",
        ),
        (Rules(at_most={"rack": 1}), "2 of 2 racks hold ranks of more than 1 replicas"),
        (Rules(at_most={"rack": 1}), ": the first is r1, with 2"),
        (Rules(spares={"rack": 2}), "2 of 2 racks keep fewer than 2 nodes free: the f"),
        (Rules(spares={"rack": 2}), ": the first is r1, with 1"),
        (Rules(spares={"hall": 2}), "the topology has no such tier"),
        (Rules(at_most={"hall": 2}), "the topology has no such tier"),
    ],
)
def test_broken_rules(rules: Rules, expected: str) -> None:
    """A broken rule is named with its first offender."""
    found = violations(PLACEMENT, MACHINE, under(rules))
    assert len(found) == 1
    assert expected in found[0]


def test_replicas_follow_the_rank_order() -> None:
    """With dp innermost the ranks of a replica lie apart, and are found apart."""
    order = ("dp", "tp", "cp", "ep", "pp")
    axes = Parallelism(tp=2, dp=4, order=order)
    job = replace(JOB, parallelism=axes, rules=Rules(at_most={"node": 1}))
    found = violations(PLACEMENT, MACHINE, job)
    assert found == [
        "4 of 4 nodes hold ranks of more than 1 replicas: the first is r1-n1, with 2"
    ]


def test_a_plan_keeps_the_rules_it_was_made_under() -> None:
    """Rules that were added to the job's are in the plan and are checked."""
    plan = build_plan(MACHINE, under(Rules(at_most={"rack": 2})), PLACEMENT)
    assert violations(plan, MACHINE, JOB) == []
    stricter = replace(plan, rules={"at_most": {"rack": 1}})
    assert any(
        "more than 1 replicas" in text for text in violations(stricter, MACHINE, JOB)
    )
    more = replace(plan, bound={"require": {"dp": "rack"}})
    assert any("dp groups leave" in text for text in violations(more, MACHINE, JOB))


def test_a_plan_names_its_spares() -> None:
    """The spare nodes of a plan are free nodes of the allocation, and are checked."""
    job = under(Rules(spares={"rack": 1}))
    plan = build_plan(MACHINE, job, PLACEMENT)
    assert plan.rules["spare_nodes"] == ["r1-n3", "r2-n3"]
    for kept, expected in (
        (["r1-n3"], "1 of 2 racks keeps fewer than 1 nodes free"),
        (["r1-n3", "r2-n3", "r1-n1"], "node r1-n1 is said to be kept free, but holds"),
        (["r1-n3", "r2-n3", "zz"], "node zz is said to be kept free, but is no usable"),
    ):
        other = replace(plan, rules={**plan.rules, "spare_nodes": kept})
        assert any(expected in text for text in violations(other, MACHINE, job)), kept


def test_a_plan_names_the_avoided_hosts_it_uses() -> None:
    """A plan says which hosts to avoid it uses, and the checker counts them again."""
    job = under(Rules(avoid=("r1-n1", "r1-n3")))
    plan = build_plan(MACHINE, job, PLACEMENT)
    assert plan.rules["avoided_nodes"] == ["r1-n1"]
    assert violations(plan, MACHINE, job) == []
    silent = replace(plan, rules={**plan.rules, "avoided_nodes": []})
    assert violations(silent, MACHINE, job) == [
        "the plan says that 0 of 2 hosts to avoid are used, 1 are: r1-n1 differs"
    ]
