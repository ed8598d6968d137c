"""Local search on the hop cost."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from benchmarks.cases import case
from placer.cost.hop_cost import HopCost
from placer.job.axes import Parallelism
from placer.job.model import Job
from placer.placement.baselines import baseline
from placer.solve.improve.anneal import annealed, better
from placer.solve.improve.hop_search import HopSearch, Links, links_between
from placer.solve.improve.region import MoveRegion, hop_region
from placer.solve.problem.compiled import Problem
from placer.solve.problem.rules import obeys
from placer.solve.run.budget import Budget
from placer.topology.model import Tier, Topology
from tests.marks import slow
from tests.solve.random_cases import machine_of
from tests.solve.solving import known, solve

PIPELINES_FIRST = ("tp", "cp", "ep", "pp", "dp")


def _machine(gpus: list[int], rows: list[list[int]], distances: list[int]) -> Topology:
    names = ("node", "rack", "block", "cluster")[: len(distances)]
    tiers = [
        Tier(name, 1e9, 1e-6, t == 0, 1.0, 1.0, float(distance))
        for t, (name, distance) in enumerate(zip(names, distances, strict=True))
    ]
    return machine_of(gpus, [*rows, [0] * len(gpus)], tiers)


def _job(
    launcher: str = "free", require: dict[str, str] | None = None, **axes: Any
) -> Job:
    weights = {"tp": 50.0, "cp": 20.0, "pp": 5.0, "dp": 9.0}
    return Job(
        "job",
        Parallelism(**axes),
        launcher=launcher,
        weights=weights,
        require=require or {},
    )


def _problem(topology: Topology, job: Job, seed: int = 0) -> Problem:
    """To be annealed with little work."""
    return Problem.of(topology, job, "hop-cost", seed).with_params(anneal_work=2e5)


def _start(topology: Topology, job: Job) -> np.ndarray:
    return baseline("given-order", topology, job, 0).gpu_of_rank


def _shuffled(topology: Topology, job: Job) -> np.ndarray:
    """A legal placement with units in random domains."""
    problem, rng = _problem(topology, job), np.random.default_rng(0)
    start = _start(topology, job)
    region = hop_region(problem, start)
    assert region is not None
    (home,) = region.homes([start])
    while True:
        order = rng.permutation(len(home))
        mixed = home[order]
        if (region.enclosure[mixed] == region.enclosure[home]).all():
            return region.gpu_of_rank(mixed)


CASES = {
    "racks": (
        _machine([4, 3, 4, 2, 4, 4], [[0, 0, 1, 1, 2, 2]], [1, 5, 8]),
        _job(tp=1, pp=2, dp=9),
    ),
    "blocks of ranks": (
        _machine([4, 4, 4, 4, 4, 4], [[0, 0, 0, 1, 1, 1]], [1, 5, 8]),
        _job("node-contiguous", tp=2, pp=2, dp=5),
    ),
    "parts in nodes": (
        _machine([4] * 8, [[0, 0, 0, 1, 1, 1, 2, 2]], [1, 1, 8]),
        _job(require={"tp": "node", "cp": "rack"}, tp=2, cp=2, dp=7),
    ),
    "parts beyond domains": (
        _machine([2, 4, 4, 4, 4, 2], [[0, 0, 0, 1, 1, 1]], [1, 5, 8]),
        _job(require={"pp": "rack"}, order=PIPELINES_FIRST, tp=1, pp=2, dp=9),
    ),
    "a unit a node": (
        _machine([2] * 9, [[0, 0, 0, 0, 1, 1, 1, 2, 2]], [1, 5, 8]),
        _job(tp=2, pp=2, dp=4),
    ),
}


def _improved(topology: Topology, job: Job) -> list[np.ndarray]:
    problem = _problem(topology, job)
    start = known(problem, _shuffled(topology, job))
    return list(better(problem, start, Budget(60.0)))


@pytest.mark.parametrize("name", CASES)
def test_every_placement_is_legal_and_better_than_the_one_before(name: str) -> None:
    """Requirements and launchers hold, each GPU is used once, cost only falls."""
    topology, job = CASES[name]
    hops = HopCost(topology, job)
    value = hops.cost(_shuffled(topology, job))
    found = _improved(topology, job)
    assert found
    for gpu_of_rank in found:
        assert obeys(topology, job, gpu_of_rank)
        assert len(np.unique(gpu_of_rank)) == job.world_size
        assert hops.cost(gpu_of_rank) < value
        value = hops.cost(gpu_of_rank)


@pytest.mark.parametrize("name", CASES)
def test_a_region_gives_back_the_domains_it_was_given(name: str) -> None:
    """Units laid out on GPUs are found in the domains they were put in."""
    topology, job = CASES[name]
    problem = _problem(topology, job)
    start = _start(topology, job)
    region = hop_region(problem, start)
    assert region is not None
    (home,) = region.homes([start])
    (again,) = region.homes([region.gpu_of_rank(home)])
    np.testing.assert_array_equal(again, home)


def test_the_same_seed_gives_the_same_placements() -> None:
    """Nothing depends on the clock or on chance outside the seed."""
    topology, job = CASES["racks"]
    assert _improved(topology, job)
    for first, second in zip(
        _improved(topology, job), _improved(topology, job), strict=True
    ):
        np.testing.assert_array_equal(first, second)


def test_the_method_improves_the_incumbent() -> None:
    """What annealing finds is kept, under its name, and its moves are counted."""
    topology, job = CASES["racks"]
    problem = _problem(topology, job)
    incumbent = known(problem, _shuffled(topology, job))
    before = incumbent.value
    annealed(problem, incumbent, Budget(60.0))
    assert incumbent.value < before
    assert incumbent.method == "annealed, from start"
    assert set(incumbent.moves.as_dict()) == {"move unit", "swap units"}


def _search(name: str) -> tuple[HopSearch, MoveRegion]:
    topology, job = CASES[name]
    problem, start = _problem(topology, job), _shuffled(topology, job)
    region = hop_region(problem, start)
    assert region is not None
    links = links_between(problem.hops.axes, region.label)
    return HopSearch(problem, region, links, [start]), region


def test_units_that_send_nothing_are_left_alone() -> None:
    """Without edges between units there is nothing to walk for."""
    topology, job = CASES["racks"]
    problem, start = _problem(topology, job), _shuffled(topology, job)
    region = hop_region(problem, start)
    assert region is not None
    none = np.zeros((0, 2), dtype=np.int64)
    search = HopSearch(problem, region, Links(none, np.zeros(0), np.zeros(0)), [start])
    assert not list(search.walks())


def test_it_begins_with_axes_along_the_tree() -> None:
    """Before anything is annealed, units laid along the tree beat random ones."""
    assert _search("racks")[0].best is not None
    # Not where that would break a requirement.
    assert _search("parts beyond domains")[0].best is None


def test_what_heavy_axes_tie_moves_as_one() -> None:
    """Units move alone first, then with those that share a domain with them."""
    search, region = _search("racks")
    alone, tied = (state for state, _ in zip(search.walks(), range(2), strict=False))
    assert alone.graph.size.max() == region.size
    assert tied.graph.size.max() > region.size
    assert tied.graph.size.sum() == alone.graph.size.sum()


def test_the_better_half_goes_on() -> None:
    """After a cycle the dearer copies give way to the cheaper ones, the best first."""
    search, _ = _search("racks")
    walks = search.walks()
    for _ in np.unique(search.links.of_axis):
        search.take(next(walks))
    costs = np.linspace(3.0, 2.0, len(search.cost)) * search.cost.min()
    search.cost = costs
    next(walks)
    assert search.cost.max() <= np.median(costs)
    assert search.cost.argmin() == 0


def test_it_ends_when_asked_to() -> None:
    """A request to stop at once leaves the placements as they are."""
    topology, job = CASES["racks"]
    problem = _problem(topology, job)
    start = _start(topology, job)
    budget = Budget(60.0, lambda: True)
    assert not list(better(problem, known(problem, start), budget))


def test_full_nodes_are_sorted_out_by_swaps() -> None:
    """Data-parallel pairs cut by the start come together, though no GPU is free.

    By hand: two pipeline edges of weight 5 at distance 1 and two data-parallel edges of
    weight 9 at distance 4 make 82; the other way round they make 18 + 40 = 58.
    """
    topology = _machine([2, 2], [], [1, 4])
    job = _job(pp=2, dp=2)
    problem = _problem(topology, job)
    # Ranks 0 and 1 are the pair of stage 0, ranks 0 and 2 a pipeline.
    start = np.array([0, 2, 1, 3])
    assert problem.hops.cost(start) == 82
    *_, last = better(problem, known(problem, start), Budget(60.0))
    assert problem.hops.cost(last) == 58


@pytest.mark.parametrize("seed", [0, 1, *slow(range(2, 12))])
def test_small_uneven_machines_are_solved(seed: int) -> None:
    """On machines small enough to try all homes, the least cost is found."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 5, 4)
    sizes[0] += max(0, 8 - int(sizes.sum()))
    topology = _machine(sizes.tolist(), [[0, 0, 1, 1]], [1, 5, 7])
    job = _job(pp=2, dp=4)
    hops = HopCost(topology, job)
    improved = _improved(topology, job)
    best = hops.cost(improved[-1] if improved else _shuffled(topology, job))
    assert best == _least(topology, job)


def _least(topology: Topology, job: Job) -> float:
    """Least hop cost over all homes of all ranks, by plain loops."""
    distance = [tier.distance for tier in topology.tiers]
    domains = topology.domain_of_node
    room = topology.gpus_of_node.tolist()
    tier = [
        [int((domains[:, a] != domains[:, b]).sum()) for b in range(4)]
        for a in range(4)
    ]
    edges = [
        (int(a), int(b), axis.weight)
        for axis in HopCost(topology, job).axes
        for a, b in axis.edges
    ]
    return min(
        sum(weight * distance[tier[home[a]][home[b]]] for a, b, weight in edges)
        for home in product(range(4), repeat=job.world_size)
        if all(home.count(node) <= room[node] for node in range(4))
    )


def test_rings_that_outweigh_pipelines_on_uneven_racks() -> None:
    """On hosts of one tensor parallel group each, the search reaches its bound."""
    topology, job = case("random-42", "hop-cost")
    solution = solve(topology, job, objective="hop-cost")
    assert solution.status == "optimal"
