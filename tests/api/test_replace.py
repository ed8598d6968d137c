"""``placer.replace``: the library call after failures."""

from dataclasses import replace as changed

import numpy as np
import pytest

import placer
from placer import testing
from placer.job.rules import Pin, Rules
from placer.placement.build import build_plan
from placer.placement.placement import Placement

SMALL = "rack:4 node:5 gpu:4"


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
        assert found.diff().moved == []
        assert found.plan.previous["moved"] == 0
    assert placer.replace(plan, topology, job).diff().is_empty


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
    """A limit below the fewest moves is refused with the numbers.

    The cost may lie above the one before by the share that is given.
    """
    topology, job, plan = small
    failed = in_rack(plan, 0, 1)
    found = placer.replace(plan, topology, job, failed=failed, max_moves=4, within=0.5)
    about, before = found.plan.previous, plan.bound["value"]
    assert about["moved"] == 4
    assert (about["reference"], about["value_before"]) == ("before", before)
    assert (about["within"], about["budget"]) == (0.5, 1.5 * before)
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
    assert {*found.plan.host_of_rank[:4]} == {*pin.hosts} - {host}
    (left,) = {*pin.hosts} - {host}
    kept = {"pin": [{"ranks": "0-3", "nodes": left}], "avoid": [spare[1]]}
    assert found.plan.rules == kept | {"avoided_nodes": []}
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
    assert found.diff().restart["ranks_stopped"] == 16
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
    wrong = {"max_moves": -1, "within": -1.0, "time_limit": -1.0, "seed": -1}
    with pytest.raises(placer.InputError) as error:
        placer.replace(plan, topology, job, **wrong)
    assert [problem.key for problem in error.value.problems] == list(wrong)
