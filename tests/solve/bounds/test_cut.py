"""The cut bound reaches the published bounds, and its parts keep their promises."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest

from benchmarks.cluster_jobs import drawn
from benchmarks.instances import load, place_in_order, replica_major
from placer.base.errors import InfeasibleError
from placer.cost.hop_cost import hop_cost
from placer.job.axes import Parallelism
from placer.job.model import Job
from placer.placement.placement import Placement
from placer.solve.bounds.hops import isoperimetric
from placer.solve.bounds.hops.isoperimetric import Product, copies_floor, replica_floor
from placer.solve.bounds.hops.tier_cut import cheapest_sizes
from placer.solve.problem.axes import Axis
from tests.solve.bounds.hop_bound import cut_bound

# Placement benchmark definitions, lower bounds and where they are tight.
PUBLISHED = {
    "A": (35_307_520, True),
    "Araw": (34_508_800, False),
    "B": (35_521_952, False),
    "C": (72_038_400, True),
    "D": (45_072_384, True),
    "E": (22_462_464, True),
    "F": (436_600_832, True),
    "G": (440_082_688, False),
    "H": (42_928_768, False),
}
# Costs of known placements of the open instances, from the same source.
KNOWN_COST = {
    "Araw": 34_551_808,
    "B": 35_623_456,
    "G": 440_716_256,
    "H": 42_938_240,
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_published_bound_is_reached(name: str) -> None:
    """Equal where it is tight; no more is worked out than that takes."""
    published, tight = PUBLISHED[name]
    bound = cut_bound(*load(name), incumbent=published)
    assert bound.value == published if tight else bound.value >= published


@pytest.mark.slow
@pytest.mark.parametrize("name", KNOWN_COST)
def test_full_bound_stays_below_known_costs(name: str) -> None:
    """Worked out to the end the bound exceeds no known cost of a placement."""
    value = cut_bound(*load(name)).value
    assert PUBLISHED[name][0] <= value <= KNOWN_COST[name]


@pytest.mark.parametrize("name", ["S64", "S128", "S256", "S512"])
def test_toys_are_proved_optimal(name: str) -> None:
    """On the toys the bound equals the cost of the replica-major order."""
    topology, job = load(name)
    cost = hop_cost(topology, job, replica_major(topology, job))
    assert cut_bound(topology, job).value == cost


def test_raw_weights_are_proved_optimal() -> None:
    """On Araw tp x dp16 in racks and cp x dp4 of those in blocks is optimal."""
    topology, job = load("Araw")
    at = job.parallelism.coordinates
    keys = (at["tp"], at["dp"] % 16, at["dp"] // 16 % 4, at["cp"], at["dp"] // 64)
    placement = place_in_order(topology, np.lexsort((*keys, at["pp"])))
    cost = hop_cost(topology, job, placement)
    assert cut_bound(topology, job, incumbent=cost).value == cost


def test_hosts_down_are_proved_optimal() -> None:
    """On H only 3 replicas need to cross units, where 2 + 2 spare hosts meet."""
    topology, job = load("H")
    unit_of_host = topology.domain_of_node[1]
    hosts_of_unit = [np.flatnonzero(unit_of_host == unit) for unit in range(48)]
    odd = [hosts for hosts in hosts_of_unit if len(hosts) % 4 == 2][:6]
    whole = [
        hosts[: len(hosts) // 4 * 4]
        for hosts in hosts_of_unit
        if not any(hosts is other for other in odd)
    ]
    hosts = np.concatenate([*whole, *odd])
    at = job.parallelism.coordinates
    gpu_of_rank = np.empty(job.world_size, dtype=np.int64)
    gpu_of_rank[np.lexsort((at["tp"], at["pp"], at["dp"]))] = (
        topology.first_gpu_of_node[hosts][:, None] + np.arange(8)
    ).ravel()
    cost = hop_cost(topology, job, Placement(gpu_of_rank))
    assert cost < KNOWN_COST["H"]
    assert cut_bound(topology, job).value == cost


def test_prices_on_the_ends_of_pipelines_go_either_way() -> None:
    """A negative price on both ends finds a fifth more edges between racks."""
    draw = drawn(8)
    assert cut_bound(draw.topology, draw.job).cut_per_tier[1] >= 3_016


def test_too_many_ranks() -> None:
    """A job with more ranks than GPUs is refused with both counts."""
    topology, _ = load("S64")
    job = Job(name="j", parallelism=Parallelism(dp=65), weights={"dp": 1})
    with pytest.raises(InfeasibleError, match="65 ranks, the machine 64 GPUs"):
        cut_bound(topology, job)


def test_no_weights() -> None:
    """A job without weights has the bound 0."""
    topology, _ = load("S64")
    job = Job(name="j", parallelism=Parallelism(dp=64))
    assert cut_bound(topology, job).value == 0.0


def plain_boundary_floor(shape: Product, prices: list[float]) -> list[float]:
    """Least boundary plus prices over all subsets of the product, one by one."""
    first, second = shape.stage
    lengths = (first.size, second.size, shape.chain.size, shape.copies.size)
    vertices = list(product(*(range(n) for n in lengths)))
    edges = []
    for a, b in combinations(vertices, 2):
        differ = [i for i in range(4) if a[i] != b[i]]
        if len(differ) != 1:
            continue
        i = differ[0]
        axis = (first, second, shape.chain, shape.copies)[i]
        gap = abs(a[i] - b[i])
        closes = i != 2 and gap == lengths[i] - 1
        if gap == 1 or axis.is_clique or closes:
            edges.append((a, b, axis.weight))
    least = [float("inf")] * (len(vertices) + 1)
    for mask in range(1 << len(vertices)):
        inside = {v for i, v in enumerate(vertices) if mask >> i & 1}
        cost = sum(w for a, b, w in edges if (a in inside) != (b in inside))
        cost += sum(prices[v[2]] for v in inside)
        least[len(inside)] = min(least[len(inside)], cost)
    return least


def axis(size: int, weight: float, name: str = "cp") -> Axis:
    """An axis by its size and weight alone, in a clique when it is ep."""
    return Axis(name, size, weight, True, np.arange(size))


SHAPES = [
    Product((axis(3, 5.0), axis(1, 0.0)), axis(2, 2.0), axis(2, 1.0)),
    Product((axis(2, 5.0), axis(1, 0.0)), axis(3, 2.0), axis(2, 3.0)),
    Product((axis(2, 1.0), axis(2, 3.0)), axis(1, 2.0), axis(3, 2.0)),
    Product((axis(3, 2.0, "ep"), axis(1, 0.0)), axis(2, 3.0), axis(2, 1.0)),
    Product((axis(2, 2.0, "ep"), axis(2, 0.0)), axis(3, 3.0), axis(1, 1.0)),
    Product((axis(1, 0.0), axis(1, 0.0)), axis(3, 3.0), axis(4, 1.0)),
]


@pytest.mark.parametrize("work", [isoperimetric.RING_WORK, 0])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_floor_is_at_most_every_boundary(
    shape: Product, work: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No subset of a small product has a smaller boundary, prices included."""
    monkeypatch.setattr(isoperimetric, "RING_WORK", work)
    monkeypatch.setattr(isoperimetric, "PACKING_WORK", work)
    ends = [1.5, *([0.0] * (shape.chain.size - 2)), 1.5][: shape.chain.size]
    for prices in ([0.0] * shape.chain.size, ends, [-1.0, 2.0, 0.5][: len(ends)]):
        plain = plain_boundary_floor(shape, prices)
        replica = replica_floor(shape, np.array([prices]), len(plain) - 1)
        floor = copies_floor(replica, shape.copies, len(plain) - 1)[0]
        assert (floor <= np.array(plain) + 1e-9).all()


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_floor_without_prices_is_exact_where_slices_nest(shape: Product) -> None:
    """Without prices the floor of half of these small products is attained."""
    plain = plain_boundary_floor(shape, [0.0] * shape.chain.size)
    zero = np.zeros((1, shape.chain.size))
    replica = replica_floor(shape, zero, len(plain) - 1)
    floor = copies_floor(replica, shape.copies, len(plain) - 1)[0]
    assert floor[0] == floor[-1] == 0.0
    assert np.isclose(floor, plain).mean() >= 0.5


def plain_sizes(floor: list[float], rooms: list[int], world: int) -> float:
    """Least sum of floors over all ways to choose the sizes, one by one."""
    return min(
        sum(floor[size] for size in chosen)
        for chosen in product(*(range(room + 1) for room in rooms))
        if sum(chosen) == world
    )


@pytest.mark.parametrize("seed", range(20))
def test_sizes_are_a_lower_bound(seed: int) -> None:
    """The bound on sizes is at most the best choice of them."""
    rng = np.random.default_rng(seed)
    rooms = rng.integers(1, 6, size=rng.integers(1, 6))
    world = int(rng.integers(1, rooms.sum() + 1))
    rises = rng.integers(0, 30, size=min(int(rooms.max()), world))
    floor = np.concatenate([[0.0], rises])
    best = plain_sizes(floor.tolist(), rooms.clip(max=world).tolist(), world)
    assert cheapest_sizes(floor, rooms, world) <= best + 1e-9


def test_sizes_are_tight_where_floors_are_convex() -> None:
    """Pairs cost 1 and threes 4: of seven ranks two rooms of three take five."""
    floor = np.array([0.0, 0.0, 1.0, 4.0])
    assert cheapest_sizes(floor, np.array([3, 3, 2]), 7) == 1 + 1 + 4
