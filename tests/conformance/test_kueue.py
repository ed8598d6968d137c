"""Cases of Kueue's topology-aware scheduling (kubernetes-sigs/kueue).

Those of ``pkg/cache/scheduler/tas_cache_test.go`` at commit ff69552e79; a pod is a
rank, the pods a host can take are its GPUs, nested slices are required axes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pytest

from placer.base.errors import InfeasibleError
from placer.job.axes import Parallelism
from placer.job.model import Job
from placer.job.traffic import Group
from placer.solve.tree.fill import fill
from tests.conformance.machines import (
    Host,
    crossings,
    domains_of,
    job,
    machine,
    ranks_in,
    varied,
)
from tests.solve.solving import solve

if TYPE_CHECKING:
    from placer.topology.model import Topology

VARIATIONS = range(4)


def zones(hosts_in_rack: int) -> list[Host]:
    """2 zones of 2 blocks of 2 racks."""
    return [
        Host(f"n{n}", 1, (f"r{n // h}", f"b{n // h // 2}", f"z{n // h // 4}"))
        for h in [hosts_in_rack]
        for n in range(8 * h)
    ]


@pytest.mark.slow
@pytest.mark.parametrize("seed", VARIATIONS)
@pytest.mark.parametrize(("hosts", "slice_size"), [(18, 16), (5, 4), (16, 16)])
def test_slices_of_racks_inside_slices_of_zones(
    seed: int, hosts: int, slice_size: int
) -> None:
    """Six racks are filled with a slice each, three of them in each zone."""
    tiers = ("node", "rack", "block", "zone", "centre")
    topology = machine(tiers, varied(zones(hosts), seed))
    case = job({"tp": "rack", "cp": "zone"}, tp=slice_size, cp=3, dp=2)
    placement = solve(topology, case, time_limit=5.0).placement
    assert list(ranks_in(topology, placement, "rack").values()) == [slice_size] * 6
    assert list(ranks_in(topology, placement, "zone").values()) == [3 * slice_size] * 2


def racks_and_hosts(racks: Sequence[Sequence[int]]) -> list[Host]:
    """Hosts of racks, by the pods they can take."""
    return domains_of({f"r{i}": pods for i, pods in enumerate(racks)})


TWO_LEVELS = [
    # racks, axes (host slice, host slices of a rack slice, rack slices), counts
    ([(3, 3)], (2, 3, 1), {"node": (3, 2), "rack": (1, 0)}),
    ([(7, 4), (7, 3)], (4, 2, 2), {"node": (4, 3), "rack": (2, 1)}),
    ([(4,), (4,), (4,)], (2, 3, 2), {"node": (6, 6), "rack": (2, 0)}),
]


@pytest.mark.parametrize("seed", VARIATIONS)
@pytest.mark.parametrize(("racks", "axes", "counts"), TWO_LEVELS)
def test_the_capacity_suffices_but_the_nesting_does_not(
    seed: int,
    racks: list[tuple[int, ...]],
    axes: tuple[int, int, int],
    counts: dict[str, tuple[int, int]],
) -> None:
    """Infeasible, with the slices needed and the slices that fit at every level."""
    hosts = varied(racks_and_hosts(racks), seed)
    topology = machine(("node", "rack", "cluster"), hosts)
    tp, cp, dp = axes
    assert topology.num_gpus >= tp * cp * dp
    with pytest.raises(InfeasibleError) as caught:
        solve(topology, job({"tp": "node", "cp": "rack"}, tp=tp, cp=cp, dp=dp))
    check_counts(str(caught.value), counts)


@pytest.mark.parametrize("seed", VARIATIONS)
def test_three_levels_of_nesting_fail(seed: int) -> None:
    """A weak rack costs its hosts, its own slice and that of its block."""
    racks = {("r0", "b0"): 4, ("r1", "b0"): 4, ("r2", "b1"): 4, ("r3", "b1"): 1}
    hosts = [
        Host(f"n{rack}-{i}", pods, (rack, block))
        for (rack, block), pods in racks.items()
        for i in range(2)
    ]
    topology = machine(("node", "rack", "block", "cluster"), varied(hosts, seed))
    require = {"tp": "node", "cp": "rack", "pp": "block"}
    with pytest.raises(InfeasibleError) as caught:
        solve(topology, job(require, tp=3, cp=2, pp=2, dp=2))
    counts = {"node": (8, 6), "rack": (4, 3), "block": (2, 1)}
    check_counts(str(caught.value), counts)


def check_counts(text: str, counts: dict[str, tuple[int, int]]) -> None:
    """Each level has a line with the parts needed and the parts that fit."""
    for tier, (needed, fit) in counts.items():
        line = next(line for line in text.splitlines() if f"in one {tier}:" in line)
        assert f"{needed} such parts are needed, {fit} fit" in line


def test_the_host_slices_fit_once_capacity_is_there() -> None:
    """The first failing case fits when the empty host has room for a slice."""
    topology = machine(("node", "rack", "cluster"), racks_and_hosts([(3, 3, 2)]))
    case = job({"tp": "node", "cp": "rack"}, tp=2, cp=3)
    assert solve(topology, case).status == "optimal"


def domains(sizes: Sequence[int], seed: int) -> Topology:
    """Domains of so many one-GPU nodes."""
    hosts = domains_of({f"d{i}": [1] * size for i, size in enumerate(sizes)})
    return machine(("node", "domain", "cluster"), varied(hosts, seed))


@pytest.mark.parametrize("seed", VARIATIONS)
@pytest.mark.parametrize(
    ("sizes", "pods", "used"),
    [
        ([19, 10, 10], 20, [10, 10]),
        ([19, 10, 10, 1], 20, [19, 1]),
        ([30, 12, 9, 8], 20, [30]),
        ([12, 11, 7, 7, 6], 25, [12, 7, 6]),
    ],
)
def test_domains_that_fit_best_are_filled(
    seed: int, sizes: list[int], pods: int, used: list[int]
) -> None:
    """As few domains as can be, and of those the ones with the least left over.

    Source: issue 10574, where the largest domain first leaves 9 unused. The last two
    rows are ours; either of two pairs without rest would do in the second.
    """
    topology = domains(sizes, seed)
    nodes = fill(topology, topology.gpus_of_node, np.arange(pods), (1, 1, 1))
    assert nodes is not None
    row = topology.domain_of_node[1]
    held = np.bincount(row[nodes], minlength=len(sizes))
    room = np.bincount(row, minlength=len(sizes))
    assert room[held > 0].sum() == sum(used)
    assert np.count_nonzero(held) == len(used)
    found = solve(topology, job(dp=pods))
    assert found.status == "optimal"
    crossed = crossings(topology, job(dp=pods), found.placement, "domain")["dp"]
    assert crossed == (len(used) if len(used) > 1 else 0)


@pytest.mark.parametrize("seed", VARIATIONS)
@pytest.mark.parametrize(
    ("sizes", "ranks", "crossed"),
    [([4, 4, 4], 10, 3), ([3, 2], 5, 2), ([4, 4, 3], 10, 3), ([5, 5, 4, 1], 15, 4)],
)
def test_a_ring_crosses_as_often_as_it_has_domains(
    seed: int, sizes: list[int], ranks: int, crossed: int
) -> None:
    """A ring over the fewest domains crosses once for each of them.

    Sources: issue 3533 (10 ranks, 3 racks of 4) and volcano-sh/volcano issue 4233
    (5 ranks on 3 + 2 nodes, whatever the order of the node list).
    """
    topology = domains(sizes, seed)
    case = job(dp=ranks)
    found = solve(topology, case)
    assert found.status == "optimal"
    assert crossings(topology, case, found.placement, "domain") == {"dp": crossed}


def shape_job(sizes: Sequence[int]) -> Job:
    """Groups of so many ranks, each of which must lie in one rack."""
    ends = np.cumsum(sizes).tolist()
    groups = tuple(
        Group(f"part{i}", "all_to_all", 1e6, 1.0, False, (tuple(range(end - n, end)),))
        for i, (n, end) in enumerate(zip(sizes, ends, strict=True))
    )
    return Job(
        "shape",
        Parallelism(dp=sum(sizes)),
        launcher="free",
        groups=groups,
        require={group.name: "rack" for group in groups},
    )


@pytest.mark.parametrize("seed", VARIATIONS)
@pytest.mark.parametrize("racks", [[4, 3, 1], [3, 4, 2], [1, 1, 4, 3, 2]])
def test_an_exact_uneven_shape(racks: list[int], seed: int) -> None:
    """Parts of 1, 3 and 4 nodes on racks that leave no other choice.

    Source: issue 13416, where the shape must divide evenly.
    """
    hosts = domains_of({f"r{i}": [1] * size for i, size in enumerate(racks)})
    topology = machine(("node", "rack", "cluster"), varied(hosts, seed))
    found = solve(topology, shape_job([1, 3, 4]))
    rack = topology.domain_of_gpu[1][found.placement.gpu_of_rank]
    assert len(np.unique(rack[1:4])) == len(np.unique(rack[4:])) == 1
    assert rack[1] != rack[4]
    assert found.status == "optimal"


def test_an_uneven_shape_that_does_not_fit() -> None:
    """No rack of 3 takes the part of 4, and the message says so with the counts."""
    hosts = domains_of({f"r{i}": [1] * 3 for i in range(3)})
    topology = machine(("node", "rack", "cluster"), hosts)
    with pytest.raises(InfeasibleError) as caught:
        solve(topology, shape_job([1, 3, 4]))
    text = str(caught.value)
    assert "part2 ties 4 ranks together in one rack" in text
    assert "the roomiest rack can take 3 ranks" in text
