"""More published cases: balance, exact shapes, nested groups, repairs in place.

Sources: Kueue ff69552e (``pkg/cache/scheduler/tas_cache_test.go`` by line,
``keps/2724-topology-aware-scheduling``, issues), KAI scheduler d5bc503a
(``allocateTopology_test.go``). How an answer is known stands at each: forced by the
rules, or the optimum of the measure it names.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
import pytest

import placer
from placer.api.allocate import allocate
from placer.base.errors import InfeasibleError
from placer.documents import parse_document
from placer.job.read import decode_job
from placer.placement.build import build_plan
from placer.placement.placement import Placement
from placer.topology.read import parse_topology
from tests.allocation.machines import racks, training
from tests.allocation.test_reference_cases import blocks, loose, pods_by, ring
from tests.conformance.machines import Host, job, machine, varied

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from placer.job.model import Job
    from placer.topology.model import Topology

SEEDS = range(2)


def hosts(content: Mapping[str, Mapping[str, Sequence[int]]]) -> Topology:
    """Blocks of racks of hosts with so many GPUs, each with a network card."""
    inner = {"bandwidth": 900e9, "latency": 1e-6, "scale_up": True}
    outer = {"rack": 5e-6, "block": 7e-6, "cluster": 9e-6}
    document = {
        "format": "placer/topology",
        "version": 1,
        "name": "hosts",
        "tiers": [
            {"name": "node", "size": 1, **inner},
            *(
                {"name": name, "bandwidth": 50e9, "latency": latency}
                for name, latency in outer.items()
            ),
        ],
        "nodes": [
            {"names": f"{block}{rack}h{i}", "gpus": gpus, "rack": rack, "block": block}
            for block, inside in content.items()
            for rack, own in inside.items()
            for i, gpus in enumerate(own)
        ],
    }
    return parse_topology(json.dumps(document), "hosts.json")


@pytest.mark.parametrize(
    ("content", "request_", "held"),
    [
        # KEP 2724, balanced: 13 and 12, not 15 and 10 (optimum: the fewest on a host).
        ({"b": {"r1": [15], "r2": [15]}}, training(tp=1, dp=25), [13, 12]),
        # A third host would bring the fewest down to 7.
        ({"b": {"r": [15, 13, 10]}}, training(tp=1, dp=23), [12, 11]),
        # The first rack gives 10 at the best.
        ({"b": {"r1": [20, 10], "r2": [15, 15]}}, training(tp=1, dp=22), [11, 11]),
        # Line 2833: slices of 5; 15 and 10 are as even as 20 with another, and full.
        (
            {"b": {"r": [20, 15, 10]}},
            training(tp=5, dp=5, require={"tp": "node"}),
            [15, 10],
        ),
        # Other sizes.
        ({"b": {"r1": [9, 8, 9]}}, training(tp=1, dp=20), [7, 7, 6]),
        ({"b": {"r1": [6, 6, 6]}}, training(tp=1, dp=13), [5, 4, 4]),
    ],
)
def test_gradients_ask_for_balance(content, request_, held):
    """The ring of all ranks has the cards of the host with the fewest: no option."""
    topology = hosts(content)
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


def written(require: Mapping[str, str], **sizes: int) -> Job:
    """A job with weights, as a file has it: a plan can be replaced."""
    content = {
        "format": "placer/job",
        "version": 1,
        "name": "slices",
        "parallelism": sizes,
        "weights": {"tp": 4000, "cp": 400, "pp": 40, "dp": 4},
        "require": dict(require),
        "launcher": {"ranks": "free"},
    }
    return decode_job(parse_document(json.dumps(content), "job.json"))


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
