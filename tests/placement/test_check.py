"""The checker against a second, naive one, and against each violation in turn."""

import re
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from placer.api.check import check
from placer.base.errors import CheckError
from placer.job.model import Job
from placer.job.traffic import Group
from placer.placement.build import build_plan
from placer.placement.check import violations
from placer.placement.placement import Placement
from placer.placement.plan import Plan
from placer.testing.strategies import placed, tiny, tiny_plan
from placer.topology.model import Topology

Case = tuple[Topology, Job, Placement]
EXPERT = {"etp": "tp", "ep": "ep", "edp": "dp"}


def coordinates(job: Job, axis: str) -> list[dict[str, int]]:
    """Coordinates of every rank, counted up like an odometer, first axis fastest."""
    p = job.parallelism
    sizes = {"tp": p.tp, "cp": p.cp, "ep": 1, "pp": p.pp, "dp": p.dp}
    if axis in EXPERT and has_expert_grid(job):
        edp = p.tp * p.cp * p.dp // p.ep // p.etp
        sizes = {"tp": p.etp, "cp": 1, "ep": p.ep, "pp": p.pp, "dp": edp}
    now = dict.fromkeys(p.order, 0)
    found = []
    for _ in range(p.world_size):
        found.append(dict(now))
        for digit in p.order:
            now[digit] = (now[digit] + 1) % sizes[digit]
            if now[digit]:
                break
    return found


def has_expert_grid(job: Job) -> bool:
    """Whether experts have a numbering of their own; else they lie as the rest does."""
    return job.parallelism.ep > 1 or job.parallelism.etp != job.parallelism.tp


def naive_groups(job: Job, axis: str) -> list[list[int]]:
    if axis == "mine":
        return [list(ranks) for ranks in job.groups[0].ranks]
    along = {EXPERT.get(axis, axis)}
    if axis == "edp" and not has_expert_grid(job):
        along.add("cp")
    groups: dict[tuple[int, ...], list[int]] = {}
    for rank, at in enumerate(coordinates(job, axis)):
        key = tuple(at[a] for a in sorted(at) if a not in along)
        groups.setdefault(key, []).append(rank)
    return list(groups.values())


def naive(topology: Topology, job: Job, placement: Placement) -> set[str]:
    """Kinds of violation, found with plain loops."""
    seats = []
    for node, count in enumerate(topology.gpus_of_node):
        seats += [(node, gpu) for gpu in range(count)]
    seat = [seats[gpu] for gpu in placement.gpu_of_rank]
    found = set()
    if len(set(seat)) < len(seat):
        found.add("doubled")
    for axis, tier in job.require.items():
        t = [one.name for one in topology.tiers].index(tier)
        bad = 0
        for group in naive_groups(job, axis):
            bad += len({topology.domain_of_node[t, seat[r][0]] for r in group}) > 1
        if bad:
            found.add(f"{bad} {axis}")
    if job.launcher == "node-contiguous":
        seen: list[int] = []
        for node, _ in seat:
            if node in seen and seen[-1] != node:
                found.add("contiguous")
            seen.append(node)
        if any(a[0] == b[0] and a[1] > b[1] for a, b in pairwise(seat)):
            found.add("order")
    return found


def kinds(sentences: list[str]) -> set[str]:
    found = set()
    for sentence in sentences:
        if "more than one rank" in sentence:
            found.add("doubled")
        elif match := re.match(r"([\d,]+) of [\d,]+ (\w+) groups? lea", sentence):
            found.add(f"{match[1]} {match[2]}")
        elif "consecutive" in sentence:
            found.add("contiguous")
        elif "order than ranks" in sentence:
            found.add("order")
        else:
            found.add(sentence)
    return found


@given(placed())
def test_agrees_with_a_naive_checker(case: Case) -> None:
    """Placement and plan break exactly the rules that plain loops find broken."""
    topology, job, placement = case
    expected = naive(topology, job, placement)
    assert kinds(violations(placement, topology, job)) == expected
    plan = build_plan(topology, job, placement)
    assert kinds(violations(plan, topology, job)) == expected


@given(placed(), st.data())
def test_agrees_on_doubled_gpus(case: Case, data: st.DataObject) -> None:
    """Two ranks sent to one GPU are found whatever else is wrong."""
    topology, job, placement = case
    rank = st.integers(0, job.world_size - 1)
    gpus = placement.gpu_of_rank.copy()
    gpus[data.draw(rank)] = gpus[data.draw(rank)]
    crowded = Placement(gpus)
    expected = naive(topology, job, crowded)
    assert kinds(violations(crowded, topology, job)) == expected


def test_a_right_plan_holds() -> None:
    """A plan that keeps every promise has no violations."""
    topology, job = tiny()
    check(tiny_plan(), topology, job)
    check(Placement(np.arange(16)), topology, job)


def test_ranks_in_parts_that_nothing_joins() -> None:
    """A job in both blocks of a machine whose blocks nothing joins is refused."""
    topology, job = tiny()
    *inner, block, cluster = topology.tiers
    apart = replace(topology, tiers=(*inner, replace(block, apart=True), cluster))
    found = violations(Placement(np.arange(16)), apart, job)
    assert found == ["ranks lie in 2 domains of block, which nothing joins: b0 and b1"]


def changed(rank: int, node: int, gpu: int) -> Plan:
    plan = tiny_plan()
    nodes, gpus = plan.node_of_rank.copy(), plan.gpu_of_rank.copy()
    nodes[rank], gpus[rank] = node, gpu
    return replace(plan, node_of_rank=nodes, gpu_of_rank=gpus)


def swapped(first: int, second: int) -> Plan:
    plan = tiny_plan()
    at = np.arange(16)
    at[[first, second]] = at[[second, first]]
    return replace(
        plan, node_of_rank=plan.node_of_rank[at], gpu_of_rank=plan.gpu_of_rank[at]
    )


TINY = tiny_plan()
STRANGE = ("x", *TINY.nodes[1:])


def with_job(**changes: object) -> Plan:
    return replace(TINY, job=TINY.job | changes)


@pytest.mark.parametrize(
    ("plan", "wanted"),
    [
        (
            changed(5, 0, 0),
            "1 GPU holds more than one rank: the first is GPU 0 of n000",
        ),
        (changed(5, 2, 2), "1 of 16 ranks uses a GPU that the node does not have"),
        (changed(5, 8, 0), "1 of 16 ranks points outside the list of nodes"),
        (changed(5, -1, 0), "1 of 16 ranks points outside the list of nodes"),
        (changed(5, 2, -1), "1 of 16 ranks uses a GPU that the node does not have"),
        (
            replace(
                TINY, node_of_rank=np.arange(15) // 2, gpu_of_rank=np.arange(15) % 2
            ),
            "the plan places 15 ranks, the job has 16",
        ),
        (
            swapped(0, 1),
            "1 of 8 nodes hands out GPUs in another order than ranks: "
            "the first is n000 (rank 0 on GPU 1, rank 1 on GPU 0)",
        ),
        (
            swapped(1, 15),
            "2 of 8 nodes do not hold consecutive ranks: "
            "the first is n000 (ranks 0, 15)",
        ),
        (
            swapped(1, 15),
            "2 of 8 tp groups leave their node: the first is tp group 0 (ranks 0, 1)",
        ),
        (replace(TINY, nodes=("n000",) * 8), "node n000 is listed 8 times"),
        (
            replace(TINY, nodes=STRANGE),
            "1 of 8 nodes is not in the topology: the first is x",
        ),
        (
            replace(TINY, nodes=STRANGE),
            "2 of 16 ranks have no usable node: the first is rank 0",
        ),
        (
            replace(TINY, topology={"name": "other", "sha256": "0"}),
            "the plan was made for another topology",
        ),
        (with_job(sha256="0"), "the plan was made for another job"),
        (
            with_job(order="tp-cp-ep-dp-pp"),
            "the plan numbers ranks by tp-cp-ep-dp-pp, the job by tp-cp-ep-pp-dp",
        ),
        (with_job(parallelism={"tp": 4}), "the plan says tp 4, the job says tp 2"),
        (
            replace(TINY, domains={"rack": ("r1",) + ("r0",) * 7}),
            "7 of 8 nodes have another rack in the topology: the first is n000 (r1",
        ),
        (replace(TINY, domains={"rack": ("r0",)}), "8 nodes have 1 rack domains"),
        (
            replace(TINY, domains={"hall": ("h",) * 8}),
            "the plan has domains of tier hall, the topology no such tier",
        ),
        (
            replace(TINY, gpu_of_rank=np.zeros(3, dtype=np.int64)),
            "16 ranks have a node, 3 have a GPU",
        ),
    ],
)
def test_each_violation_is_named(plan: Plan, wanted: str) -> None:
    """One broken promise gives a sentence with its count and first offender."""
    topology, job = tiny()
    assert any(text.startswith(wanted) for text in violations(plan, topology, job))
    with pytest.raises(CheckError, match=re.escape(wanted)):
        check(plan, topology, job)


@pytest.mark.parametrize(
    ("change", "wanted"),
    [
        ({"require": {"pp": "node"}}, "8 of 8 pp groups leave their node"),
        (
            {"require": {"dp": "rack"}},
            "4 of 4 dp groups leave their rack: "
            "the first is dp group 0 (ranks 0, 4, 8, 12)",
        ),
        ({"require": {"pp": "hall"}}, "pp must stay in one hall, the topology has no"),
        ({"require": {"xy": "rack"}}, "xy must stay in one rack, the job has no such"),
        (
            {
                "require": {"mine": "block"},
                "groups": (
                    Group("other", "send_recv", 1, 1, False, ((0, 15),)),
                    Group("mine", "send_recv", 1, 1, False, ((0, 1, 2), (3, 9))),
                ),
            },
            "1 of 2 mine groups leaves its block: "
            "the first is mine group 1 (ranks 3, 9)",
        ),
    ],
)
def test_each_requirement_is_named(change: dict, wanted: str) -> None:
    """A requirement that does not hold names axis, tier, count and first group."""
    topology, job = tiny()
    found = violations(tiny_plan(), topology, replace(job, **change))
    assert [text for text in found if text.startswith(wanted)]
    assert len(found) == 1


def test_unavailable_nodes_are_refused() -> None:
    """A node that must not be used is a violation, with the reason."""
    topology, job = tiny()
    shut = replace(topology, unavailable={"n003": "xid 79"})
    wanted = "1 of 8 nodes is not to be used: the first is n003 (xid 79)"
    assert violations(tiny_plan(), shut, job) == [wanted]
    assert violations(Placement(np.arange(16)), shut, job) == [
        "2 of 16 ranks have a node that must not be used: the first is rank 6 (index 3)"
    ]
    gone = replace(topology.select(np.array([0, 1, 2, 4, 5, 6, 7])))
    gone = replace(gone, unavailable={"n003": "xid 79"})
    assert wanted in violations(tiny_plan(), gone, job)


@pytest.mark.parametrize("gpu", [-1, 16])
def test_gpus_must_exist(gpu: int) -> None:
    """A placement on a GPU that the topology lacks is refused."""
    topology, job = tiny()
    gpus = np.arange(16)
    gpus[7] = gpu
    assert violations(Placement(gpus), topology, job) == [
        "1 of 16 ranks uses a GPU that the topology does not have: "
        f"the first is rank 7 (index {gpu})"
    ]
