"""``placer.replace``: the library call after failures."""

from dataclasses import replace as changed
from typing import TYPE_CHECKING

import numpy as np
import pytest

import placer
from placer import testing
from placer.job.rules import Pin, Rules
from placer.placement.build import build_plan
from placer.placement.placement import Placement
from placer.placement.plan_file import encode_plan
from placer.report.moves import match

if TYPE_CHECKING:
    from placer.job.model import Job
    from placer.placement.plan import Plan
    from placer.topology.model import Topology

AZURE = ("azure-gb200-mlperf-v6", "llama3.1-405b-mlperf-v6")
SMALL = "rack:4 node:5 gpu:4"
Case = tuple["Topology", "Job", "Plan"]


@pytest.fixture(scope="module")
def azure():
    topology, job = placer.read_topology(AZURE[0]), placer.read_job(AZURE[1])
    return topology, job, placer.place(topology, job).plan


@pytest.fixture(scope="module")
def small():
    """Four racks of five trays, each with a pipeline over four of them."""
    weights, require = {"tp": 100, "pp": 10, "dp": 1}, {"tp": "node", "pp": "rack"}
    axes = {"tp": 4, "pp": 4, "dp": 4, "order": "tp-cp-ep-pp-dp"}
    job = testing.job("small", **axes, weights=weights, require=require)
    topology = placer.read_topology(SMALL)
    return topology, job, placer.place(topology, job).plan


def in_rack(plan, rack, count):
    """Nodes of the plan in its rack number ``rack``."""
    racks = np.array(plan.domains["rack"])
    name = list(dict.fromkeys(racks.tolist()))[rack]
    return [plan.nodes[node] for node in np.flatnonzero(racks == name)[:count]]


def seats(plan):
    return list(zip(plan.host_of_rank, plan.gpu_of_rank.tolist(), strict=True))


def test_no_failure_changes_nothing(small):
    """Without a failure every rank stays, even those of a poor plan."""
    topology, job, plan = small
    poor = build_plan(topology, job, Placement(np.arange(topology.num_gpus)[-64:]))
    for old in (plan, poor):
        found = placer.replace(old, topology, changed(job, require={}))
        assert seats(found.plan) == seats(old)
        assert found.diff().moved == ()
        assert found.plan.previous["moved"] == 0
    assert placer.replace(plan, topology, job).diff().is_empty


def test_two_runs_give_the_same_bytes(small):
    """Outside the solver's section a second run writes the same plan."""
    topology, job, plan = small
    failed = [*in_rack(plan, 0, 1), *in_rack(plan, 2, 1)]
    texts = [
        encode_plan(
            changed(placer.replace(plan, topology, job, failed=failed).plan, solver={})
        )
        for _ in range(2)
    ]
    assert texts[0] == texts[1]


def test_stays_inside_the_allocation(small):
    """Neither failed hosts nor, unless added, hosts outside the allocation are used."""
    topology, job, plan = small
    owned = placer.place(topology, job, hosts=plan.nodes).plan
    failed = in_rack(owned, 1, 1)
    with pytest.raises(placer.InfeasibleError):
        placer.replace(owned, failed=failed)
    rack = dict(zip(owned.nodes, owned.domains["rack"], strict=True))[failed[0]]
    spare = [name for name in topology.node_names if name not in owned.nodes]
    near = [name for name in spare if name.startswith(rack)]
    found = placer.replace(owned, failed=failed, added=near)
    assert set(found.plan.nodes) == {*owned.nodes, *near} - set(failed)
    assert found.plan.previous["moved"] == 4
    placer.check(found.plan)


def test_hosts_to_add_are_told(small):
    """Those that are new, whether any is used, and those that the job had."""
    topology, job, _ = small
    hosts = [name for name in topology.node_names if not name.endswith("n5")]
    plan = placer.place(topology, job, hosts=hosts).plan
    result = placer.replace(plan, failed=hosts[0], added=["r1-n5", "r2-n5", hosts[1]])
    added, had = result.plan.previous["added"], result.plan.previous["had"]
    assert (added, had) == (["r1-n5,r2-n5"], [hosts[1]])
    told = " ".join(result.summary().split())
    assert "added: r[1-2]-n[5], 1 of 2 used" in told
    assert f"not added, in the allocation before: {hosts[1]}" in told
    alone = changed(plan, inputs={})
    again = placer.replace(alone, topology, job, failed=hosts[0], added="r1-n5")
    assert "had" not in again.plan.previous


def test_a_repair_is_not_measured_at_other_links():
    """It is compared with the plan before, which is no order in use."""
    job = placer.read_job("llama3.1-405b-256")
    plan = placer.place("rack:4 node:18 gpu:4", job, time_limit=5).plan
    assert plan.what_if
    assert not placer.replace(plan, failed=plan.nodes[0]).plan.what_if


def test_stays_on_the_machine_of_the_plan(small):
    """A plan of every node owns those of its own machine, not what was built since."""
    _, job, _ = small
    plan = placer.place("rack:4 node:4 gpu:4", job).plan
    failed = in_rack(plan, 0, 1)
    larger = placer.read_topology("rack:5 node:4 gpu:4")
    with pytest.raises(placer.InfeasibleError):
        placer.replace(plan, larger, failed=failed, force=True)
    more = ["r5-n1", "r5-n2", "r5-n3", "r5-n4"]
    found = placer.replace(plan, larger, failed=failed, added=more, force=True).plan
    assert {*more} < {*found.nodes}


def test_a_topology_that_calls_hosts_unavailable(small):
    """Hosts of the plan that the topology no longer offers have failed."""
    topology, job, plan = small
    host = plan.nodes[5]
    index = topology.node_names.index(host)
    left = changed(
        topology.select(np.delete(np.arange(topology.num_nodes), index)),
        unavailable={host: "xid 79"},
    )
    found = placer.replace(plan, left, job)
    assert found.plan.previous["failed"] == [host]
    assert found.plan.previous["moved"] == 4


def test_max_moves(small):
    """A limit below the fewest moves is refused with the numbers."""
    topology, job, plan = small
    failed = in_rack(plan, 0, 1)
    found = placer.replace(plan, topology, job, failed=failed, max_moves=4)
    assert found.plan.previous["moved"] == 4
    with pytest.raises(placer.InfeasibleError, match="moves at most 3 ranks"):
        placer.replace(plan, topology, job, failed=failed, max_moves=3, shrink=True)


def test_rules_hold_again(small):
    """Pins and hosts to avoid are kept, spares may be used."""
    topology, job, plan = small
    spare = [name for name in topology.node_names if name not in plan.nodes]
    pin = Pin((0, 1, 2, 3), (plan.nodes[0], spare[0]))
    ruled = placer.place(
        topology, job, rules=Rules(pin=(pin,), avoid=(spare[1],), spares={"rack": 1})
    ).plan
    assert ruled.rules["spare_nodes"]
    host = ruled.host_of_rank[0]
    found = placer.replace(ruled, topology, job, failed=[host])
    assert set(found.plan.host_of_rank[:4]) == {*pin.hosts} - {host}
    assert "spares" not in found.plan.rules
    assert spare[1] not in found.plan.nodes
    placer.check(found.plan, topology, job)
    with pytest.raises(placer.InfeasibleError, match="all of these hosts have failed"):
        placer.replace(ruled, topology, job, failed=list(pin.hosts))


def test_shrinking_gives_up_the_most_damaged(small):
    """Of two replicas that cannot stay the machine loses no more than it must."""
    topology, job, plan = small
    failed = [*in_rack(plan, 1, 2), *in_rack(plan, 3, 1)]
    found = placer.replace(plan, topology, job, failed=failed, shrink=True)
    assert found.plan.previous["given_up"] == [1]
    assert found.plan.previous["moved"] == 4
    assert found.plan.world_size == 48
    assert found.old is plan
    assert found.diff().to_dict()["ranks_moved"] == 4
    assert found.diff().restart.stopped == 16
    placer.check(found.plan, topology, found.job)


def test_what_cannot_be(small):
    """Unknown hosts, hosts both failed and added, another job, no hosts: all named."""
    topology, job, plan = small
    host = plan.nodes[0]
    with pytest.raises(placer.InputError) as error:
        placer.replace(plan, topology, job, failed=["nowhere", host], added=[host])
    texts = [str(problem) for problem in error.value.problems]
    assert len(texts) == 2
    assert 'no host "nowhere"' in texts[0]
    assert "to have failed and to be added" in texts[1]
    axes = changed(job.parallelism, dp=2)
    with pytest.raises(placer.InputError, match="another job: dp 4 against 2"):
        placer.replace(plan, topology, changed(job, parallelism=axes))
    with pytest.raises(placer.InfeasibleError, match="every host has failed"):
        placer.replace(plan, topology, job, failed=topology.node_names)
    wrong = {
        "max_moves": -1,
        "within": -1.0,
        "time_limit": -1.0,
        "seed": -1,
    }
    with pytest.raises(placer.InputError) as error:
        placer.replace(plan, topology, job, **wrong)
    assert [problem.key for problem in error.value.problems] == list(wrong)


def test_hosts_that_do_not_count_are_named(small):
    """What does not fit says how many hosts failed and how many may not be used."""
    topology, job, plan = small
    owned = placer.place(topology, job, hosts=plan.nodes).plan
    lost = in_rack(owned, 0, 2)
    with pytest.raises(
        placer.InfeasibleError,
        match=r"left out: 2 x failed, \d+ x outside the allocation",
    ):
        placer.replace(owned, failed=lost)


@pytest.mark.parametrize("within", [0.01, 1.0])
def test_nothing_moves_that_need_not(small, within):
    """A plan far from the best is not made better by the way: the lost ranks move."""
    topology, job, _ = small
    tiers = zip(topology.tiers, (1.0, 2.0, 20.0), strict=True)
    far = tuple(changed(tier, distance=distance) for tier, distance in tiers)
    topology = changed(topology, tiers=far)
    rng = np.random.default_rng(3)
    job = changed(job, require={"tp": "node"})
    nodes = rng.permutation(topology.num_nodes)[:16]
    seats = (nodes[:, None] * 4 + np.arange(4)).ravel()
    poor = build_plan(topology, job, Placement(seats))
    failed = [poor.nodes[0]]
    found = placer.replace(poor, topology, job, failed=failed, within=within)
    best = placer.place(topology, job).bound["value"]
    assert found.plan.previous["value_before"] > 1.2 * best
    assert found.plan.previous["moved"] == found.plan.previous["fewest"] == 4
    assert found.plan.previous["reference"] == "before"


@pytest.mark.parametrize("gone", [0, 1, 3])
def test_difference_after_shrinking(small, gone):
    """Replicas are compared with themselves, whatever numbers they have now."""
    topology, job, plan = small
    failed = in_rack(plan, gone, 5)
    found = placer.replace(plan, topology, job, failed=failed, shrink=True)
    there, back = placer.diff(plan, found.plan), placer.diff(found.plan, plan)
    assert found.plan.previous["given_up"] == [gone]
    assert found.plan.previous["moved"] == len(there.moved) == len(back.moved) == 0
    assert (there.restart.stopped, back.restart.started) == (16, 16)
    dp = job.parallelism.coordinates["dp"]
    kept = np.flatnonzero(dp != gone)
    assert match(plan, found.plan).old_rank.tolist() == kept.tolist()
