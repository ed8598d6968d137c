"""What runs of ranks cut inside hosts, against every way to lay them."""

from __future__ import annotations

import random
from collections import Counter
from itertools import chain, permutations
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import numpy as np
import numpy.typing as npt
import pytest

from placer.document import document_of
from placer.job.axes import Parallelism
from placer.job.edges import hop_edges
from placer.job.model import Job
from placer.solve.bounds.hops import hop_runs
from placer.solve.bounds.hops.hop_runs import HopRuns
from placer.topology.read import decode_topology
from tests.marks import slow

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from placer.topology.model import Topology

IntArray = npt.NDArray[np.int64]
ORDERS = (("tp", "cp", "ep", "pp", "dp"), ("tp", "cp", "ep", "dp", "pp"))
SHAPES = (
    (2, 1, 2, 2),
    (3, 1, 1, 3),
    (1, 2, 2, 2),
    (1, 1, 4, 2),
    (2, 2, 1, 2),
    (1, 3, 1, 3),
    (1, 1, 3, 3),
    (2, 1, 1, 4),
    (1, 1, 1, 7),
    (4, 1, 2, 1),
)


def machine(hosts: Sequence[tuple[int, ...]]) -> Topology:
    """Hosts of so many GPUs, on each island where they have several."""
    tiers: list[dict[str, Any]] = [
        {"name": "node", "size": max(map(max, hosts)), "bandwidth": 4e11},
        {"name": "cluster", "bandwidth": 5e10},
    ]
    if len(hosts[0]) > 1:
        tiers[0]["name"] = "island"
        tiers.insert(1, {"name": "node", "size": len(hosts[0]), "bandwidth": 1e11})
    nodes = [
        {"names": f"h{at}", "gpus": list(gpus) if len(gpus) > 1 else gpus[0]}
        for at, gpus in enumerate(hosts)
    ]
    content = {"format": "placer/topology", "version": 1, "name": "hosts"}
    return decode_topology(
        document_of({**content, "tiers": tiers, "nodes": nodes}, "hosts")
    ).by_island


def held(gpus: tuple[int, ...], left: int) -> Iterator[list[int]]:
    """Ranks of each island of a host that takes no more than are left."""
    if not gpus:
        yield []
        return
    for length in range(min(gpus[0], left) + 1):
        for others in held(gpus[1:], left - length):
            yield [length, *others]


def along(order: list[tuple[int, ...]], left: int) -> Iterator[list[list[int]]]:
    """Ranks of each island of hosts that hold all ranks, one after the other."""
    if not left:
        yield []
    elif order:
        for one in held(order[0], left):
            for others in along(order[1:], left - sum(one)):
                yield [one, *others]


def paid(job: Job, rises: list[float], way: list[list[int]]) -> float:
    """The rises of all edges, island by island and host by host."""
    cost = 0.0
    host = np.repeat(range(len(way)), [sum(one) for one in way])
    lengths = [length for one in way for length in one]
    island = np.repeat(range(len(lengths)), lengths)
    for rise, home in zip(rises, (island, host), strict=True):
        for _, weight, edges in hop_edges(job):
            cost += (
                rise * weight * float((home[edges[:, 0]] != home[edges[:, 1]]).sum())
            )
    return cost


@pytest.mark.parametrize("seed", [*range(20), *slow(range(20, 120))])
def test_no_runs_cut_less(seed: int) -> None:
    """The least is that of all ways, and the hosts that are told pay it."""
    rng = random.Random(f"hop runs {seed}")
    tp, cp, pp, dp = rng.choice(SHAPES)
    world = tp * cp * pp * dp
    islands = rng.choice((1, 2, 2))
    most = 3 if islands > 1 else 6
    while True:
        number = rng.choice((2, 3, 3) if islands > 1 else (3, 4))
        hosts = [
            tuple(rng.randint(1, most) for _ in range(islands)) for _ in range(number)
        ]
        if world <= sum(map(sum, hosts)):
            break
    weights = {
        axis: float(rng.choice((1, 4, 40, 400))) for axis in ("tp", "cp", "pp", "dp")
    }
    axes = Parallelism(tp=tp, cp=cp, pp=pp, dp=dp, order=rng.choice(ORDERS))
    job = Job("j", axes, weights=weights, launcher="node-contiguous")
    rises = [rng.choice((1.0, 6.0)), rng.choice((0.0, 2.0, 8.0))][: 1 + (islands > 1)]
    known = machine(hosts), job, np.array([*rises, 0.0]), np.arange(world)
    runs = HopRuns.of(*known)
    assert runs is not None
    both = rises if islands > 1 else [rises[0], 0.0]
    orders = map(list, set(permutations(hosts)))
    ways = chain.from_iterable(along(order, world) for order in orders)
    least = min(paid(job, both, way) for way in ways)
    assert runs.least <= least * (1 + 1e-9)
    assert runs.least == pytest.approx(least) or len(runs.near) < world
    with patch.object(hop_runs, "MOST", rng.choice((12, 24, 48))):
        endless = HopRuns.of(*known)
    assert endless is None or endless.least <= least * (1 + 1e-9)
    asked = runs.hosts_in_turn()
    if asked is not None:
        told = [list(lengths) for _, lengths in asked]
        assert Counter(sort for sort, _ in asked) <= Counter(hosts)
        assert paid(job, both, told) == pytest.approx(runs.least)


def test_chains_on_islands_of_unlike_hosts() -> None:
    """Islands of 4 take a chain of 4 ranks each, the last chain 3 and 1 GPUs."""
    hosts = [(4, 3), (3, 4), (4, 4)]
    job = Job(
        "j",
        Parallelism(pp=4, dp=5, order=ORDERS[0]),
        weights={"pp": 40.0},
        launcher="node-contiguous",
    )
    runs = HopRuns.of(machine(hosts), job, np.array([6.0, 2.0, 0.0]), np.arange(20))
    assert runs is not None
    assert runs.tiers == (0, 1)
    assert runs.least == 40 * (6 + 2)
    asked = runs.hosts_in_turn()
    assert asked is not None
    told = [list(lengths) for _, lengths in asked]
    assert paid(job, [6.0, 2.0], told) == 40 * (6 + 2)


def test_groups_too_long_for_a_program_have_no_end() -> None:
    """Chains of 50 pairs on hosts of 7 and 8: all but an edge in 50 counts."""
    hosts = [(7,)] * 15 + [(8,)] * 13
    axes = Parallelism(tp=2, pp=50, dp=2, order=ORDERS[0])
    weights = {"tp": 400.0, "pp": 40.0}
    job = Job("j", axes, weights=weights, launcher="node-contiguous")
    known = machine(hosts), job, np.array([6.0, 0.0]), np.arange(200)
    exact = HopRuns.of(*known)
    with patch.object(hop_runs, "MOST", 200):
        runs = HopRuns.of(*known)
    assert runs is not None
    assert exact is not None
    assert len(runs.near) == 2 < len(exact.near)
    assert 0.95 < runs.least / exact.least <= 1 + 1e-9
