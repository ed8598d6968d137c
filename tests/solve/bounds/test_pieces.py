"""Parts of the bounds of large machines: of all ways that there are none is less."""

import random
from itertools import combinations, pairwise, product

import numpy as np
import pytest

from placer.job.axes import Parallelism
from placer.job.model import Job
from placer.placement import hop_bound
from placer.solve.bounds import hop_floors
from placer.solve.bounds.hop_floors import Product, copies_floor, replica_floor
from placer.solve.bounds.limits import most_in_runs
from placer.solve.bounds.nics import fewest_runs
from placer.solve.problem.axes import Axis

SIZES = [sizes for sizes in product((1, 2, 3, 4, 5), repeat=4) if np.prod(sizes) <= 12]


def product_of(rng):
    """Two rings or a clique, a chain and a ring of copies."""
    names = (rng.choice(("cp", "ep")), "cp", "pp", "dp")
    weights = [rng.choice((0.0, 1.0, 2.0, 5.0)) for _ in names]
    rows = zip(names, rng.choice(SIZES), weights, strict=True)
    first, second, *others = [Axis(n, s, w, True, np.arange(s)) for n, s, w in rows]
    return Product((first, second), *others)


def job_of(shape):
    """The job that has the edges of a product without cliques."""
    axes = (*shape.stage, shape.chain, shape.copies)
    named = [*zip(("tp", "cp", "pp", "dp"), axes, strict=True)]
    sizes = {name: axis.size for name, axis in named}
    weights = {name: axis.weight for name, axis in named}
    return Job("j", Parallelism(**sizes), weights=weights, launcher="free")


def least_boundary(shape, prices):
    """Edges out of a set and the prices of its ranks, the least of all sets by size."""
    axes = (*shape.stage, shape.chain, shape.copies)
    at = np.array([*product(*(range(axis.size) for axis in axes))])
    inside = np.array([*product((0, 1), repeat=len(at))])
    cost = inside @ np.array(prices)[at[:, 2]]
    for one, other in combinations(range(len(at)), 2):
        apart = np.flatnonzero(at[one] != at[other])
        axis, gap = axes[apart[0]], int(abs(at[other] - at[one])[apart[0]])
        closes = axis is not shape.chain and gap == axis.size - 1
        if len(apart) == 1 and (gap == 1 or axis.is_clique or closes):
            cost += axis.weight * (inside[:, one] != inside[:, other])
    least = np.full(len(at) + 1, np.inf)
    np.minimum.at(least, inside.sum(axis=1), cost)
    return least


@pytest.mark.parametrize("too_large", [False, True])
@pytest.mark.parametrize("seed", range(60))
def test_no_set_of_ranks_has_fewer_edges(seed, too_large, monkeypatch):
    """Of small products, as if they were large too; many floors are attained."""
    shape = product_of(random.Random(seed))
    if too_large:
        monkeypatch.setattr(hop_floors, "WORK", 0)
        monkeypatch.setattr(hop_bound, "RING_WORK", 0)
    for end in (0.0, 1.5, -1.0):
        prices = [end, *[0.0] * (shape.chain.size - 2), end][: shape.chain.size]
        least = least_boundary(shape, prices)
        replica = replica_floor(shape, np.array([prices]), shape.vertices)
        floor = copies_floor(replica, shape.copies, shape.vertices)[0]
        assert (floor <= least + 1e-9).all()
        assert too_large or end or np.isclose(floor, least).mean() >= 0.5
        if shape.stage[0].name == "cp":
            one = sum(prices) / 2  # a stage that is first and last pays both
            ranks = np.arange(shape.vertices)[:, None]
            grids = hop_bound.grids_of(job_of(shape), ranks)
            again = hop_bound.least_edges(grids, shape.vertices, one)
            assert (floor - 1e-9 <= again).all()
            assert (again <= least + 1e-9).all()


@pytest.mark.parametrize("seed", range(20))
def test_no_run_of_ranks_has_more_members(seed):
    rng = random.Random(seed)
    world = rng.randint(2, 24)
    rows = np.array(rng.sample(range(world), world // 2 * 2)).reshape(2, -1)
    within = rows[:, :, None] - np.arange(world)
    assert most_in_runs(rows, np.arange(world + 1)).tolist() == [
        ((within >= 0) & (within < length)).sum(axis=1).max()
        for length in range(world + 1)
    ]


@pytest.mark.parametrize("seed", range(40))
def test_no_cuts_of_a_ring_leave_fewer_runs(seed):
    """Of stages that must fit a room, run by run; one more than stages if none do."""
    rng = random.Random(seed)
    ranks = [rng.choice((1, 1, 2, 3)) for _ in range(rng.randint(2, 6))]
    room, stages, numbers = rng.randint(2, 6), len(ranks), [len(ranks) + 1]
    for count in range(stages + 1):
        for ends in combinations(range(stages), count):
            starts = [*ends, ends[0] + stages] if ends else [0, stages]
            runs = [sum((ranks + ranks)[a:b]) for a, b in pairwise(starts)]
            if max(runs) <= room:
                numbers.append(count)
    assert fewest_runs(np.array(ranks), room) == min(numbers)
