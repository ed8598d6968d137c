"""The checker against a second, naive one, and against each violation in turn.

And copies of checkpoints, against the rule that makes their cliques.
"""

import re
from dataclasses import replace
from itertools import islice, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import placer
from placer import read_topology, testing
from placer.api.check import check
from placer.base.errors import CheckError, InputError
from placer.job.axes import Parallelism
from placer.job.model import Job
from placer.job.rules import Rules
from placer.job.traffic import Group
from placer.placement.build import build_plan
from placer.placement.check import violations
from placer.placement.placement import Placement
from placer.placement.robust import Copies, cliques, copy_faults, parse_copies
from placer.testing.oracle import groups_of
from placer.testing.strategies import placed, tiny, tiny_plan
from tests.emit.readback import CONTIGUOUS, plan_of
from tests.texts import table


def naive(topology, job, placement):
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
        for group in groups_of(job, axis):
            bad += len({topology.domain_of_node[t, seat[r][0]] for r in group}) > 1
        if bad:
            found.add(f"{bad} {axis}")
    if job.launcher == "node-contiguous":
        seen = []
        for node, _ in seat:
            if node in seen and seen[-1] != node:
                found.add("contiguous")
            seen.append(node)
        if any(a[0] == b[0] and a[1] > b[1] for a, b in pairwise(seat)):
            found.add("order")
    return found


def kinds(sentences):
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


@given(placed(), st.data())
def test_agrees_with_a_naive_checker(case, data):
    """Placement and plan break exactly the rules that plain loops find broken.

    Two ranks sent to one GPU are found whatever else is wrong.
    """
    topology, job, placement = case
    expected = naive(topology, job, placement)
    assert kinds(violations(placement, topology, job)) == expected
    plan = build_plan(topology, job, placement)
    assert kinds(violations(plan, topology, job)) == expected
    rank, gpus = st.integers(0, job.world_size - 1), placement.gpu_of_rank.copy()
    gpus[data.draw(rank)] = gpus[data.draw(rank)]
    crowded = Placement(gpus)
    expected = naive(topology, job, crowded)
    assert kinds(violations(crowded, topology, job)) == expected


def tiny_but(change):
    """The tiny plan with a rank elsewhere, two ranks swapped or other sections."""
    tiny = tiny_plan()
    at, nodes, gpus = np.arange(16), tiny.node_of_rank.copy(), tiny.gpu_of_rank.copy()
    if "rank" in change:
        nodes[5], gpus[5] = change.pop("rank")
    if swapped := change.pop("swapped", None):
        at[swapped] = swapped[::-1]
    ranks = {"node_of_rank": nodes[at], "gpu_of_rank": gpus[at]}
    ranks |= {key: np.array(change.pop(key)) for key in ranks if key in change}
    job = tiny.job | change.pop("job", {})
    return replace(tiny, job=job, **ranks, **change)


@pytest.mark.parametrize(*table("placement/check.yaml", "each_violation_is_named"))
def test_each_violation_is_named(change, wanted):
    """One broken promise gives a sentence with its count and first offender."""
    topology, job = tiny()
    plan = tiny_but(dict(change))
    assert any(text.startswith(wanted) for text in violations(plan, topology, job))
    with pytest.raises(CheckError, match=re.escape(wanted)):
        check(plan, topology, job)


@pytest.mark.parametrize(*table("placement/check.yaml", "each_requirement_is_named"))
def test_each_requirement_is_named(require, wanted):
    """A requirement that does not hold names axis, tier, count and first group."""
    topology, job = tiny()
    groups = (("other", ((0, 15),)), ("mine", ((0, 1, 2), (3, 9))))
    own = tuple(Group(name, "send_recv", 1, 1, False, rows) for name, rows in groups)
    ruled = replace(job, require=require, groups=own)
    found = violations(tiny_plan(), topology, ruled)
    assert [text for text in found if text.startswith(wanted)]
    assert len(found) == 1


@pytest.mark.parametrize(
    ("racks", "parts"),
    [
        ("aaaabbbb", ""),
        ("aabbccdd", ""),
        ("aaabbbbb", "3 + 5"),
        ("aabbaacc", "2 + 2 + 2 + 2"),
    ],
)
def test_groups_lie_in_equal_parts(racks, parts):
    """Parts are of one length, of consecutive ranks, and a rack holds one of them."""
    even = Job("even", Parallelism(ep=8, dp=8), require={"ep/even": "rack"})
    gpus = [8 * "abcd".index(rack) + rank for rank, rack in enumerate(racks)]
    machine = read_topology("rack:4 node:8 gpu:1")
    found = violations(Placement(np.array(gpus)), machine, even)
    says = "1 of 1 ep group does not lie in equal parts, one a rack: the first is ep"
    assert found == ([f"{says} group 0 ({parts})"] if parts else [])


def test_what_must_not_be_used_is_refused():
    """GPUs that the topology lacks, nodes of which a reason is told, parts apart."""
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
    for gpu in (-1, 16):
        gpus = np.arange(16)
        gpus[7] = gpu
        assert violations(Placement(gpus), topology, job) == [
            "1 of 16 ranks uses a GPU that the topology does not have: "
            f"the first is rank 7 (index {gpu})"
        ]
        own = tiny_plan().gpu_of_rank.copy()
        own[0] = gpu
        assert violations(replace(tiny_plan(), gpu_of_rank=own), topology, job) == [
            "1 of 16 ranks uses a GPU that the node does not have: "
            f"the first is rank 0 (index {gpu})"
        ]
    *inner, block, cluster = topology.tiers
    apart = replace(topology, tiers=(*inner, replace(block, apart=True), cluster))
    found = violations(Placement(np.arange(16)), apart, job)
    assert found == ["ranks lie in 2 domains of block, which nothing joins: b0 and b1"]


# Two racks of three nodes of two GPUs; four replicas of two ranks, one a node.
MACHINE = read_topology("rack:2 node:3 gpu:2")
JOB = Job(
    "job",
    Parallelism(tp=2, dp=4, order=("tp", "cp", "ep", "pp", "dp")),
    weights={"tp": 1.0},
)
NODES = np.array([0, 0, 1, 1, 3, 3, 4, 4])  # racks 1 1 2 2, nodes 3 and 6 are free
PLACEMENT = Placement.on_nodes(MACHINE, NODES)


def under(rules):
    return replace(JOB, rules=rules)


@pytest.mark.parametrize(*table("placement/rules.yaml", "broken_rules"))
def test_broken_rules(rules, expected):
    """A broken rule is named with its first offender."""
    ruled = under(testing.job(dp=8, weights={"dp": 1}, rules=rules).rules)
    found = violations(PLACEMENT, MACHINE, ruled)
    assert len(found) == 1
    assert expected in found[0]


def test_a_plan_keeps_the_rules_it_was_made_under():
    """Rules that were added to the job's are in the plan and are checked."""
    plan = build_plan(MACHINE, under(Rules(at_most={"rack": 2})), PLACEMENT)
    assert violations(plan, MACHINE, JOB) == []
    for told, change in (
        ("more than 1 replicas", {"rules": {"at_most": {"rack": 1}}}),
        ("dp groups leave", {"bound": {"require": {"dp": "rack"}}}),
    ):
        found = violations(replace(plan, **change), MACHINE, JOB)
        assert any(told in text for text in found)


def test_a_plan_names_its_spares():
    """The spare nodes of a plan are free nodes of the allocation, and are checked."""
    job = under(Rules(spares={"rack": 1}))
    plan = build_plan(MACHINE, job, PLACEMENT)
    assert plan.rules["spare_nodes"] == ["r1-n3", "r2-n3"]
    for kept, expected in (
        (["r1-n3"], "1 of 2 racks keeps fewer than 1 node free"),
        (["r1-n3", "r2-n3", "r1-n1"], "node r1-n1 is said to be kept free, but holds"),
        (["r1-n3", "r2-n3", "zz"], "node zz is said to be kept free, but is no usable"),
    ):
        other = replace(plan, rules={**plan.rules, "spare_nodes": kept})
        assert any(expected in text for text in violations(other, MACHINE, job)), kept


def test_a_plan_names_the_avoided_hosts_it_uses():
    """A plan says which hosts to avoid it uses, and the checker counts them again."""
    job = under(Rules(avoid=("r1-n1", "r1-n3")))
    plan = build_plan(MACHINE, job, PLACEMENT)
    assert plan.rules["avoided_nodes"] == ["r1-n1"]
    assert violations(plan, MACHINE, job) == []
    silent = replace(plan, rules={**plan.rules, "avoided_nodes": []})
    assert violations(silent, MACHINE, job) == [
        "the plan says that 0 of 2 hosts to avoid are used, 1 are: r1-n1 differs"
    ]


def by_the_package(jump, factor, ranks):
    """Every jump-th rank from each start on, then so many at a time."""
    found = []
    for start in range(jump):
        rest = iter(range(start, ranks, jump))
        found += iter(lambda rest=rest: tuple(islice(rest, factor)), ())
    return sorted(found)


@pytest.mark.parametrize(
    ("ranks", "copies"), [(16, (4, 2)), (24, (2, 3)), (8, (1, 2)), (64, (16, 4))]
)
def test_cliques(ranks, copies):
    """They are those of nvidia-resiliency-ext."""
    found = sorted(map(tuple, cliques(ranks, Copies(*copies))))
    assert found == by_the_package(*copies, ranks)


def racks(*names):
    """Four nodes of two ranks each, in these racks."""
    return replace(plan_of(CONTIGUOUS), domains={"rack": names})


@pytest.mark.parametrize(*table("placement/rules.yaml", "copies_leave_what_fails"))
def test_copies_leave_what_fails(names, copies, fault):
    """The rack, and where there is one alone the node; with a jump that does."""
    found = copy_faults(racks(*names), parse_copies(copies))
    assert len(found) == bool(fault)
    assert re.search(fault, "".join(found))


@pytest.mark.parametrize("copies", ["", "x", "0", "2:1", "2:0", "-4", "2:2:2", "3"])
def test_what_are_no_copies(copies):
    """Words that are none, and jumps that do not divide the ranks."""
    with pytest.raises(InputError, match="copies: "):
        copy_faults(racks("a", "a", "b", "b"), parse_copies(copies))


def test_the_library_checks_them():
    """With all else that a plan promises."""
    plan = placer.place("dgx-h100-4x8", "quickstart", time_limit=5).plan
    placer.check(plan, copies="8")
    with pytest.raises(CheckError, match="copies 4 apart share a node"):
        placer.check(plan, copies="4:2")
