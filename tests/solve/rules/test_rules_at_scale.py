"""Rules on machines of hundreds of nodes: what costs nothing must cost nothing."""

from dataclasses import replace
from itertools import count

import numpy as np
import pytest

from placer import place, read_job, read_topology, testing
from placer.base.errors import InfeasibleError
from placer.job.axes import REPLICA_MAJOR_ORDER, Parallelism
from placer.job.model import Job
from placer.job.rules import Pin, Rules
from placer.solve.rules.seats import MOST_CHOICES
from placer.solve.run import budget
from placer.testing import racks
from tests.solve.solving import solve
from tests.texts import table

# 64 racks of 18 nodes; a replica takes 16 nodes of a rack.
MACHINE = read_topology("block:8 rack:8 node:18 gpu:4")
JOB = Job(
    "job",
    Parallelism(tp=4, cp=2, pp=8, dp=60, order=("tp", "cp", "ep", "pp", "dp")),
    weights={"tp": 4000.0, "cp": 400.0, "pp": 40.0, "dp": 4.0},
    require={"tp": "node", "cp": "rack", "pp": "rack"},
)


@pytest.fixture(scope="module")
def unruled():
    return float(place(MACHINE, JOB).bound["value"])


def written(rules):
    """Rules as a job file has them."""
    return testing.job(dp=3840, weights={"dp": 1}, rules=rules).rules


@pytest.mark.parametrize(*table("solve/rules.yaml", "rules_that_cost_nothing"))
def test_rules_that_cost_nothing(rules, unruled):
    """On a regular machine these rules are kept at the price of none, and proved."""
    found = place(MACHINE, JOB, rules=written(rules))
    assert found.bound["value"] == pytest.approx(unruled, rel=1e-9)
    assert found.plan.rules.get("avoided_nodes", []) == []


def test_a_domain_down_to_the_last_node_is_used():
    """Where all racks are needed, as few avoided nodes are used as a replica lacks."""
    job = replace(JOB, parallelism=replace(JOB.parallelism, dp=64))
    avoid = tuple(f"b3-r3-n{n:02d}" for n in range(1, 6))
    found = place(MACHINE, job, rules=Rules(avoid=avoid))
    assert len(found.plan.rules["avoided_nodes"]) == 3  # 18 - 5 + 3 = 16


def test_pins_to_a_rack_unlike_the_others():
    """Ranks pinned to racks get there, with their first node or without."""
    every = read_topology("rack:8 node:18 gpu:4")
    machine = every.select(np.array([n for n in range(144) if n % 36]))
    job = replace(JOB, parallelism=replace(JOB.parallelism, dp=7))
    for host in ("r1-n05", "r2-n05"):
        found = place(machine, job, rules=Rules((Pin((70,), (host,)),)))
        assert found.plan.host_of_rank[70] == host


@pytest.mark.slow
@pytest.mark.parametrize(*table("solve/rules.yaml", "explains_what_cannot_be"))
def test_explains_what_cannot_be(rules, expected):
    """The error names the rules in conflict, the counts and what would fit."""
    with pytest.raises(InfeasibleError) as caught:
        place(MACHINE, JOB, rules=written(rules))
    assert expected in str(caught.value)


@pytest.mark.parametrize("seconds", [0.1, 0.5])
def test_rules_that_cannot_be_kept_are_counted_on_a_slow_machine(seconds, monkeypatch):
    """Where each look at the clock takes long, no trial that lacked time misleads."""
    clock = (seconds * number for number in count())
    monkeypatch.setattr(budget, "monotonic", lambda: next(clock))
    rules = Rules((Pin((0,), ("b1-r1-n01",)), Pin((4,), ("b1-r2-n01",))))
    with pytest.raises(InfeasibleError) as caught:
        place(MACHINE, JOB, rules=rules)
    assert str(caught.value).startswith(
        "these rules cannot be kept together:\n  - every cp group in one rack\n"
        "  - rank 0 on b1-r1-n01\n  - rank 4 on b1-r2-n01\n"
        "cp groups tie ranks 0 and 4 together in one rack"
    )
    assert "no placement was found" not in str(caught.value)


def test_blames_no_rule_that_could_stay():
    """Rules that are not to blame are not named."""
    rules = Rules(
        (Pin((0,), ("b1-r1-n01",)),), (), {"block": 7, "rack": 1}, {"rack": 1}
    )
    with pytest.raises(InfeasibleError) as caught:
        place(MACHINE, JOB, rules=rules)
    text = str(caught.value)
    assert text.startswith("this rule cannot be kept: at most 7 replicas in a block")
    assert "spare" not in text
    assert "b1-r1-n01" not in text


def test_a_large_job_none_of_whose_hosts_is_wanted_is_placed():
    """With every host to avoid and too many ranks to seat, it uses those it needs."""
    machine = read_topology("rack:4 node:16 gpu:2")
    job = replace(
        JOB, parallelism=Parallelism(tp=2, dp=60, order=JOB.parallelism.order)
    )
    assert machine.num_nodes * job.world_size > MOST_CHOICES
    found = place(machine, job, rules=Rules(avoid=machine.node_names))
    assert len(found.plan.rules["avoided_nodes"]) == 60


def in_racks(replicas, at_most):
    """Replicas of sixteen trays on eight racks of as many, so many in each at most."""
    axes = Parallelism(tp=4, cp=2, pp=8, dp=replicas, etp=4, order=REPLICA_MAJOR_ORDER)
    job = read_job("llama3.1-405b-mlperf-v6")
    job = replace(job, parallelism=axes, require={}, sha256="j")
    rules = Rules(at_most={"rack": at_most})
    return place(racks([16] * 8, nic=100e9), job, rules=rules, time_limit=60)


def test_one_replica_a_rack_is_proved():
    """Each gradient group then has one NIC in each rack, whatever else is done."""
    assert in_racks(8, 1).status == "optimal"


@pytest.mark.slow
def test_two_replicas_of_seven_a_rack():
    """Half the stages of 4, 4, 3 and 3 members a rack: three NICs or more in each.

    Seven whole replicas, two members of a gradient group a rack, are 3.8 % slower.
    """
    assert in_racks(7, 2).bound["gap"] < 0.001


SMALL = read_topology("rack:4 node:4 gpu:4")


def hops_of(rules, **degrees):
    """What is found of a free launch on four racks of four nodes."""
    axes, weights = Parallelism(**degrees), {"tp": 4000, "cp": 400, "pp": 40, "dp": 4}
    job = Job("job", axes, launcher="free", weights=weights, rules=rules)
    return solve(SMALL, job, objective="hop-cost")


@pytest.mark.parametrize("avoided", [1, 2])
def test_a_full_machine_costs_no_more_for_hosts_to_avoid(avoided):
    """They have to be used: constructions are tried on all hosts."""
    rules = Rules(avoid=tuple(SMALL.node_names[: 5 * avoided : 5]))
    found, best = (hops_of(one, tp=4, pp=4, dp=4) for one in (rules, Rules()))
    assert found.value == best.value


def test_a_seat_that_cuts_groups_is_annealed():
    """Ranks of two tp groups are pinned to one node: parts of groups move."""
    pin = Pin((1, 9), (SMALL.node_names[3],))
    found = hops_of(Rules(pin=(pin,), spares={"rack": 1}), tp=2, cp=2, pp=2, dp=5)
    assert found.value <= 1.2 * found.lower_bound
