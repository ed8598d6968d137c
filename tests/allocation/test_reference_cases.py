"""Published cases of choosing nodes, with the right answers.

Kueue's are from ``pkg/cache/scheduler/tas_cache_test.go`` (kubernetes-sigs/kueue,
ff69552e, by line), ``keps/2724-topology-aware-scheduling`` and its issues, KAI's from
``allocateTopology_test.go`` (d5bc503a); a pod is a rank, the pods a host can take are
its GPUs, slices are required axes. Others name their source. How an answer is known may
stand beside: forced by the rules, or the optimum of the measure it names.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

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
from tests.allocation.machines import racks, training
from tests.conformance.machines import Host, job, machine, varied

if TYPE_CHECKING:
    from collections.abc import Sequence

    from placer.allocation.allocation import Allocation
    from placer.topology.model import Topology

SEEDS = range(2)


def blocks(content: dict[str, dict[str, Sequence[int]]], seed: int = 0) -> Topology:
    """Blocks of racks of hosts, by the pods that each can take."""
    hosts = [
        Host(f"{rack}-{block}-{i}", pods, (f"{block}/{rack}", block))
        for block, inside in content.items()
        for rack, own in inside.items()
        for i, pods in enumerate(own)
    ]
    return machine(("node", "rack", "block", "cluster"), varied(hosts, seed))


def ring(world: int, **require: str) -> Job:
    """Pods in a ring, in slices ``tp`` where they have a size."""
    sizes = {axis: int(v) for axis, v in require.items() if v.isdigit()}
    rules = {axis: v for axis, v in require.items() if not v.isdigit()}
    rules = {axis.removesuffix("_in"): tier for axis, tier in rules.items()}
    inner = 1
    for size in sizes.values():
        inner *= size
    return job(rules, dp=world // inner, **sizes)


def pods_by(topology: Topology, found: Allocation, tier: str) -> list[int]:
    """Pods that each used domain of a tier holds, most first."""
    plan = found.jobs[0].plan
    t = topology.tier_index(tier)
    index = {name: n for n, name in enumerate(topology.node_names)}
    domain = [
        int(topology.domain_of_node[t, index[plan.nodes[n]]]) for n in plan.node_of_rank
    ]
    return sorted(Counter(domain).values(), reverse=True)


def free_in(topology: Topology, found: Allocation, tier: str) -> list[int]:
    """Free nodes of the domains of a tier that have any, most first."""
    del topology
    counts = found.left["free_by_domain"][tier].values()
    return sorted((n for n in counts if n), reverse=True)


D = {"b1": {"r1": [1], "r2": [1, 1, 1]}, "b2": {"r1": [1], "r2": [2]}}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    ("content", "request_", "tier", "held"),
    [
        # Line 593: racks, then hosts.
        (
            {"b": {"r1": [2], "r2": [2], "r3": [1, 1, 1, 1]}},
            ring(4, dp_in="block"),
            "rack",
            [4],
        ),
        # 1078: the tight host, not the rack of three.
        (D, ring(2, dp_in="rack"), "node", [2]),
        # 2322: the hosts that are filled.
        ({"b": {"r": [3, 2, 2]}}, ring(4, tp="2", tp_in="node"), "node", [2, 2]),
        # 2512: no block has two slices.
        (D, ring(4, tp="2", tp_in="rack"), "rack", [2, 2]),
        # 2619: three hosts at least.
        (
            {"b1": {"r1": [3, 3, 3]}, "b2": {"r2": [6]}},
            ring(12, tp="3", tp_in="node"),
            "node",
            [6, 3, 3],
        ),
        # 4453: both blocks have six free.
        (
            {
                "b1": {"r1": [2], "r2": [2], "r3": [2]},
                "b2": {"r1": [3], "r2": [3]},
            },
            ring(6, tp="3", tp_in="rack", dp_in="block"),
            "rack",
            [3, 3],
        ),
        # 6793: slices of four in a rack, of two in a host; the host of one is unused.
        (
            {"b": {"r1": [1, 4], "r2": [3, 4]}},
            ring(8, tp="2", cp="2", tp_in="node", cp_in="rack"),
            "node",
            [4, 4],
        ),
    ],
)
def test_kueue(content, request_, tier, held, seed):
    """The domains that are asked for hold what they should."""
    topology = blocks(content, seed)
    found = allocate(topology, request_)
    assert pods_by(topology, found, tier) == held
    assert found.status == "optimal"


@pytest.mark.parametrize("seed", SEEDS)
def test_two_blocks_leave_the_third_whole(seed):
    """Line 1023: five pods take the blocks of four and one."""
    content = {"b1": {"r": [1] * 2}, "b2": {"r": [1]}, "b3": {"r": [1] * 4}}
    topology = blocks(content, seed)
    found = allocate(topology, ring(5))
    assert pods_by(topology, found, "block") == [4, 1]
    assert free_in(topology, found, "block") == [2]


def test_two_jobs_of_which_one_blocks_the_other():
    """Issue 4474: loose pods leave the host of two to the job that needs it."""
    topology = blocks({"b": {"r": [2, 1, 1]}})
    loose, tight = ring(2), job({"tp": "node"}, tp=2)
    found = allocate(topology, [loose, tight])
    sizes = dict(zip(topology.node_names, topology.gpus_of_node.tolist(), strict=True))
    of_job = [[sizes[host] for host in expand(one.hosts)] for one in found.jobs]
    assert of_job == [[1, 1], [2]]


def test_broken_racks_first():
    """PR 10406: a job of any nodes takes those of racks that are broken already."""
    sizes = {f"r{i}": 4 for i in range(6)}
    topology = racks(sizes, gpus=1)
    broken = ["r001", "r101", "r102", "r201", "r202", "r203"]
    found = allocate(topology, loose(6), busy=broken)
    whole = [n for n in found.left["free_by_domain"]["rack"].values() if n == 4]
    assert len(whole) == 3


def loose(nodes: int, gpus: int = 1) -> Job:
    """A job that sends nothing."""
    return Job("loose", Parallelism(dp=nodes * gpus), weights={"dp": 0.0})


def test_a_job_of_no_traffic_strands_no_more_than_it_must():
    """marin-community/marin issue 8249: 64 nodes of 12 domains touch four, not nine."""
    topology = racks({f"r{i:02}": 18 for i in range(12)})
    found = allocate(topology, loose(64, 4))
    untouched = [n for n in found.left["free_by_domain"]["rack"].values() if n == 18]
    assert len(untouched) == 8


@pytest.mark.parametrize("gang", [16, 17, 20, 24, 32, 48, 64])
def test_gangs_are_even_on_the_fewest_racks(gang):
    """marin issue 7225, racks of 16; of 17, which they refuse, the halves are 9 and 8.

    Their answer is balance on the fewest racks: 10 + 10, 12 + 12, 16 + 16.
    """
    topology = racks({f"r{i}": 16 for i in range(5)})
    found = allocate(topology, training(tp=4, dp=gang))
    fewest = -(-gang // 16)
    held = sorted(found.jobs[0].nodes_by_domain.values())
    assert held == [(gang + i) // fewest for i in range(fewest)]
    assert found.status == "optimal"


def test_the_rest_of_the_worked_example():
    """Of racks with 18, 18, 16, 10 and 6 free, those of 16 and 18: 18 stay together."""
    topology = racks({"A": 18, "B": 18, "C": 16, "D": 10, "E": 6})
    require = {"tp": "node", "cp": "rack", "pp": "rack"}
    case = training(tp=4, cp=2, pp=8, vp=8, dp=2, require=require)
    found = allocate(topology, case)
    held = found.jobs[0].nodes_by_domain
    assert sorted(held.values()) == [16, 16]
    assert held["C"] == 16
    assert found.left["useful_nodes"] == pytest.approx(22.8)
    assert found.left["stranded_nodes"] == pytest.approx(13.2)
    assert found.left["largest_free"] == {"rack": 18}


@pytest.mark.parametrize(
    ("nodes", "segment", "held"),
    [(32, 16, [16, 16]), (48, 8, [8, 8, 16, 16]), (51, 3, None), (48, 3, None)],
)
def test_segments_on_four_blocks(nodes, segment, held):
    """Azure/cyclecloud-slurm issue 415: blocks with 18, 16, 9 and 8 free nodes."""
    topology = racks({"a": 18, "b": 16, "c": 9, "d": 8}, gpus=1)
    request_ = job({"tp": "rack"}, tp=segment, dp=nodes // segment)
    if nodes == 51:
        with pytest.raises(InfeasibleError, match="16"):
            allocate(topology, request_)
        return
    found = allocate(topology, request_)
    counts = sorted(found.jobs[0].nodes_by_domain.values())
    assert all(count % segment == 0 for count in counts)
    assert held is None or counts == held


@pytest.mark.parametrize(
    ("busy", "value"),
    [
        ("r[0-7]0[1-4]", 160),
        ("", 0),
        ("r001", 61),
        ("r00[1-4]", 64),
        ("r00[1-2],r10[1-2]", 68),
        ("r00[1-2],r40[1-2]", 92),
    ],
)
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


def test_a_rack_in_use_is_taken_before_a_whole_one_of_smaller_hosts():
    """Hosts of other sizes than the one that was found first may leave more."""
    topology = blocks({"b": {"r0": [2, 2, 4], "r1": [1, 2], "r2": [2, 4, 4]}})
    found = allocate(topology, job(dp=1), busy=["r2-b-1"])
    assert found.left["whole_domains"]["rack"] == 2


@pytest.mark.parametrize(
    ("content", "request_", "held"),
    [
        # KEP 2724, balanced: 13 and 12, not 15 and 10 (optimum: the fewest on a host).
        ({"r1": [15], "r2": [15]}, training(tp=1, dp=25), [13, 12]),
        # A third host would bring the fewest down to 7.
        ({"r": [15, 13, 10]}, training(tp=1, dp=23), [12, 11]),
        # The first rack gives 10 at the best.
        ({"r1": [20, 10], "r2": [15, 15]}, training(tp=1, dp=22), [11, 11]),
        # Line 2833: slices of 5; 15 and 10 are as even as 20 with another, and full.
        (
            {"r": [20, 15, 10]},
            training(tp=5, dp=5, require={"tp": "node"}),
            [15, 10],
        ),
        # Other sizes.
        ({"r1": [9, 8, 9]}, training(tp=1, dp=20), [7, 7, 6]),
        ({"r1": [6, 6, 6]}, training(tp=1, dp=13), [5, 4, 4]),
    ],
)
def test_gradients_ask_for_balance(content, request_, held):
    """The ring of all ranks has the cards of the host with the fewest: no option."""
    topology = racks(content, joined=False)
    found = allocate(topology, request_)
    pods = pods_by(topology, found, "node")
    assert (len(pods), pods[-1]) == (len(held), held[-1])
    assert len(held) > 2 or pods == held


@pytest.mark.parametrize("wanted", [ring(20), loose(20), training(tp=1, dp=20)])
@pytest.mark.parametrize("names", ["abc", "cab", "bca"])
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


@pytest.mark.parametrize("size", [3, 5])
def test_a_rack_in_use_is_filled_first(size):
    """KAI, pack: of two racks the one that is in use (optimum: the tight one)."""
    topology = racks({"a": size, "b": size}, gpus=1)
    wanted = job({"dp": "rack"}, dp=size - 1)
    found = allocate(topology, wanted, busy=["b02"])
    assert found.jobs[0].nodes_by_domain == {"b": size - 1}


@pytest.mark.parametrize("seed", SEEDS)
def test_a_pair_or_a_spine_of_three(seed):
    """KAI keeps the spine of three whole; most whole racks keep the pair.

    The measures disagree, so what is left of both tiers is told.
    """
    topology = blocks({"s1": {"a": [1], "b": [1], "c": [1]}, "s2": {"d": [1, 1]}}, seed)
    found = allocate(topology, loose(1))
    assert found.left["whole_domains"] == {"rack": 3, "block": 1}
    assert found.left["largest_free"] == {"rack": 2, "block": 2}


def written(require: dict[str, str], **sizes: int) -> Job:
    """A job with weights, as a file has it: a plan can be replaced."""
    weights = {"tp": 4000, "cp": 400, "pp": 40, "dp": 4}
    given = {"weights": weights, "require": require, **sizes}
    return testing.job("slices", launcher="free", **given)


def moves(before: placer.Plan, after: placer.Plan) -> dict[str, Counter[str]]:
    """Where the ranks of each host that changed went."""
    found: dict[str, Counter[str]] = {}
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
