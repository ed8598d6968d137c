"""Published cases of choosing nodes, with the right answers.

Kueue's are from ``pkg/cache/scheduler/tas_cache_test.go`` (kubernetes-sigs/kueue,
ff69552e, by line), ``keps/2724-topology-aware-scheduling`` and its issues, KAI's from
``allocateTopology_test.go`` (d5bc503a); a pod is a rank, the pods a host can take are
its GPUs, slices are required axes. Others name their source. How an answer is known may
stand beside: forced by the rules, or the optimum of the measure it names.
"""

from collections import Counter

import numpy as np
import pytest

import placer
from placer import testing
from placer.api.allocate import allocate
from placer.api.allocation_plans import slurm_fragmentation
from placer.base.errors import InfeasibleError
from placer.base.hostlist import expand
from placer.job.axes import Parallelism
from placer.job.model import Job
from placer.placement.build import build_plan
from placer.placement.placement import Placement
from tests.allocate.machines import racks, training
from tests.conformance.machines import Host, job, machine, varied
from tests.marks import slow
from tests.texts import cases, table

SEEDS = range(2)


def blocks(content, seed=0):
    """Blocks of racks of hosts, by the pods that each can take."""
    hosts = [
        Host(f"{rack}-{block}-{i}", pods, (f"{block}/{rack}", block))
        for block, inside in content.items()
        for rack, own in inside.items()
        for i, pods in enumerate(own)
    ]
    return machine(("node", "rack", "block", "cluster"), varied(hosts, seed))


def ring(world, **require):
    """Pods in a ring, in slices ``tp`` where they have a size."""
    sizes = {axis: int(v) for axis, v in require.items() if v.isdigit()}
    rules = {axis: v for axis, v in require.items() if not v.isdigit()}
    rules = {axis.removesuffix("_in"): tier for axis, tier in rules.items()}
    inner = 1
    for size in sizes.values():
        inner *= size
    return job(rules, dp=world // inner, **sizes)


def pods_by(topology, found, tier):
    """Pods that each used domain of a tier holds, most first."""
    plan = found.jobs[0].plan
    t = topology.tier_index(tier)
    index = {name: n for n, name in enumerate(topology.node_names)}
    domain = [
        int(topology.domain_of_node[t, index[plan.nodes[n]]]) for n in plan.node_of_rank
    ]
    return sorted(Counter(domain).values(), reverse=True)


def loose(nodes, gpus=1):
    """A job that sends nothing."""
    return Job("loose", Parallelism(dp=nodes * gpus), weights={"dp": 0.0})


MAKERS = {
    "ring": ring,
    "loose": loose,
    "training": training,
    "job": lambda require, **sizes: job(require, **sizes),
}


def question(case, seed):
    """The machine and the job of a case."""
    if "blocks" in case:
        topology = blocks(case["blocks"], seed)
    else:
        topology = racks(case["racks"], case.get("gpus", 4), case.get("joined", True))
    ((make, keys),) = ((MAKERS[key], case[key]) for key in MAKERS if key in case)
    return topology, make(**keys)


@pytest.mark.parametrize("case", cases("allocate/cases"))
def test_published_cases(case):
    """Domains hold what they should, and as much is left."""
    for seed in SEEDS if "blocks" in case and "busy" not in case else [0]:
        topology, wanted = question(case, seed)
        if "refused" in case:
            with pytest.raises(InfeasibleError, match=case["refused"]):
                allocate(topology, wanted)
            continue
        found = allocate(topology, wanted, busy=case.get("busy", ""))
        own, free = found.jobs[0].nodes_by_domain, found.left["free_by_domain"]
        for tier, held in case.get("held", {}).items():
            assert pods_by(topology, found, tier) == held
        for tier, counts in case.get("free", {}).items():
            assert sorted(n for n in free[tier].values() if n) == counts
        if "nodes" in case:
            assert sorted(own.values()) == case["nodes"]
        if "fewest" in case:
            pods = pods_by(topology, found, "node")
            assert [len(pods), pods[-1]] == case["fewest"]
        assert own == own | case.get("domains", {})
        assert not any(n % case.get("multiples", 1) for n in own.values())
        for key, value in case.get("left", {}).items():
            assert found.left[key] == pytest.approx(value)
        assert found.status == "optimal" or "proved" not in case


def test_two_jobs_of_which_one_blocks_the_other():
    """Issue 4474: loose pods leave the host of two to the job that needs it."""
    topology = blocks({"b": {"r": [2, 1, 1]}})
    loose, tight = ring(2), job({"tp": "node"}, tp=2)
    found = allocate(topology, [loose, tight])
    sizes = dict(zip(topology.node_names, topology.gpus_of_node.tolist(), strict=True))
    of_job = [[sizes[host] for host in expand(one.hosts)] for one in found.jobs]
    assert of_job == [[1, 1], [2]]


@pytest.mark.parametrize(*table("allocate/tables.yaml", "slurms_fragmentation"))
def test_slurms_fragmentation(busy, value):
    """Slurm's ``test_topology.c``: 8 blocks of 4 nodes in blocks of 8, 16 and 32."""
    hosts = [
        Host(f"r{n // 4}{n % 4 + 1:02}", 1, (f"b{n // 4}", f"c{n // 8}", f"d{n // 16}"))
        for n in range(32)
    ]
    topology = machine(("node", "b4", "b8", "b16", "cluster"), hosts)
    taken = set(expand(busy))
    free = np.array([name not in taken for name in topology.node_names])
    assert slurm_fragmentation(topology, free) == value


@pytest.mark.parametrize("wanted", [ring(20), loose(20), training(tp=1, dp=20)])
@pytest.mark.parametrize("names", ["abc", *slow(["cab", "bca"])])
def test_two_full_racks_leave_the_third_whole(names, wanted):
    """Issue 10574: 20 of 19, 10 and 10 are 10 + 10 (optimum: nothing left over)."""
    topology = racks(dict(zip(names, (19, 10, 10), strict=True)), gpus=1)
    found = allocate(topology, wanted)
    assert sorted(found.jobs[0].nodes_by_domain.values()) == [10, 10]
    assert found.left["largest_free"] == {"rack": 19}


@pytest.mark.parametrize("free", [(3, 5, 4), (4, 3, 1), (9, 9, 9), (3, 3, 3)])
def test_an_exact_shape_is_a_job_for_each_part(free):
    """Issue 13416: 1, 3 and 4 nodes in three racks (forced; racks of 3 are too small).

    Parts are jobs that share no rack.
    """
    topology = racks(dict(zip("abc", free, strict=True)), gpus=1)
    parts = [training(f"of-{n}", tp=1, dp=n, require={"dp": "rack"}) for n in (1, 3, 4)]
    if max(free) < 4:
        with pytest.raises(InfeasibleError, match="4"):
            allocate(topology, parts, apart="rack")
        return
    found = allocate(topology, parts, apart="rack")
    held = [one.nodes_by_domain for one in found.jobs]
    assert [sum(own.values()) for own in held] == [1, 3, 4]
    assert len({rack for own in held for rack in own}) == 3


def test_a_rest_that_fills_no_slice_is_placed_too():
    """PR 15640: 1,000 pods are 62 slices of 16 and a rest of 8, none of them lost."""
    topology = racks({f"r{i}": 16 for i in range(63)}, gpus=1)
    slices = training("slices", tp=1, pp=16, dp=62, require={"pp": "rack"})
    rest = training("rest", tp=1, pp=8, require={"pp": "rack"})
    found = allocate(topology, [slices, rest])
    held = [sorted(one.nodes_by_domain.values()) for one in found.jobs]
    assert held == [[16] * 62, [8]]


def written(require, **sizes):
    """A job with weights, as a file has it: a plan can be replaced."""
    weights = {"tp": 4000, "cp": 400, "pp": 40, "dp": 4}
    given = {"weights": weights, "require": require, **sizes}
    return testing.job("slices", launcher="free", **given)


def moves(before, after):
    """Where the ranks of each host that changed went."""
    found = {}
    for rank, node in enumerate(before.node_of_rank):
        old, new = before.nodes[node], after.nodes[after.node_of_rank[rank]]
        if old != new:
            found.setdefault(old, Counter())[new] += 1
    return found


@pytest.mark.parametrize("seed", SEEDS)
def test_a_slice_is_repaired_in_its_rack(seed):
    """Line 8511: slices of two in a rack, one pod dies: three do not move (forced)."""
    content = [Host(f"x{i}", 1, ("r1" if i < 3 else "r2",)) for i in range(1, 6)]
    topology = machine(("node", "rack", "cluster"), varied(content, seed))
    wanted = written({"tp": "rack"}, tp=2, dp=2)
    row = topology.domain_of_node[1]
    large = max(set(row.tolist()), key=row.tolist().count)
    inside = [n for n, r in zip(topology.node_names, row, strict=True) if r == large]
    idle = inside[-1]
    plan = placer.place(topology, wanted, exclude=[idle]).plan
    after = placer.replace(plan, failed=[inside[0]], added=[idle]).plan
    assert moves(plan, after) == {inside[0]: Counter({idle: 1})}


@pytest.mark.parametrize("seats", [4, 6])
@pytest.mark.parametrize("failed", [0, 1, 2, 3])
def test_nested_slices_are_repaired_in_their_switch(seats, failed):
    """Line 8609: a host dies; its pair goes to the other host of its switch (forced).

    Slices of 8 in a rack, of 4 under a switch, of 2 on a host. A third switch has a
    host with just the room of the pair.
    """
    tiers = ("node", "switch", "rack", "cluster")
    content = [Host(f"s{s}h{h}", seats, (f"s{s}", "rack")) for s in "12" for h in "12"]
    topology = machine(tiers, [*content, Host("s3h1", 2, ("s3", "rack"))])
    wanted = written({"tp": "node", "cp": "switch", "pp": "rack"}, tp=2, cp=2, pp=2)
    gpus = np.array([seats * host + gpu for host in range(4) for gpu in range(2)])
    plan = build_plan(topology, wanted, Placement(gpus))
    switch, host = failed // 2 + 1, failed % 2 + 1
    dead, mate = f"s{switch}h{host}", f"s{switch}h{3 - host}"
    after = placer.replace(plan, topology, wanted, failed=[dead]).plan
    assert moves(plan, after) == {dead: Counter({mate: 2})}
