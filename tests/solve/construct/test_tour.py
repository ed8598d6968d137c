"""Replica tours, against plain sums over their steps."""

from __future__ import annotations

import random
from itertools import permutations, product

import numpy as np
import pytest

from placer.solve.construct.chains.distances import Distances
from placer.solve.construct.chains.tour import Tour
from placer.solve.problem.params import Params
from placer.solve.run.budget import Budget

LEAVES_A_BLOCK = 3
STEPS = (17.0, 2.0)


def random_tour(rng: random.Random, replicas: int, stages: int) -> Tour:
    """Replicas on twelve leaves in four blocks."""
    leaf = np.array(
        [[rng.randrange(12) for _ in range(stages)] for _ in range(replicas)]
    )
    leaves = np.arange(12)
    domains = np.array([leaves, leaves // LEAVES_A_BLOCK])
    return Tour(leaf, Distances(domains, np.array(STEPS)), Params())


def apart(first: int, second: int) -> float:
    """Distance of two leaves."""
    if first == second:
        return 0.0
    same_block = first // LEAVES_A_BLOCK == second // LEAVES_A_BLOCK
    return STEPS[0] if same_block else sum(STEPS)


def plain_length(rows: list[list[int]]) -> float:
    """Sum over stages and steps of the closed tour."""
    return sum(
        apart(here, there)
        for i, row in enumerate(rows)
        for here, there in zip(row, rows[(i + 1) % len(rows)], strict=True)
    )


@pytest.mark.parametrize("seed", range(10))
def test_length_is_the_sum_of_its_steps(seed: int) -> None:
    """The length agrees with a plain sum, before and after the search."""
    rng = random.Random(seed)
    tour = random_tour(rng, rng.choice((2, 3, 5, 9, 40)), rng.randint(1, 5))
    assert tour.length == pytest.approx(plain_length(tour.rows.tolist()))
    tour.improve(seed, Budget(60.0))
    assert tour.length == pytest.approx(plain_length(tour.rows.tolist()))


@pytest.mark.parametrize("seed", range(10))
def test_improve_never_lengthens(seed: int) -> None:
    """The search ends on a tour that is no longer than the one it was given."""
    rng = random.Random(seed)
    tour = random_tour(rng, rng.choice((1, 2, 3, 6, 33)), rng.randint(1, 4))
    before = tour.length
    tour.improve(seed, Budget(60.0))
    assert tour.length <= before + 1e-9


@pytest.mark.parametrize("seed", range(10))
def test_replicas_are_kept_or_turned_round(seed: int) -> None:
    """Each replica is there once, its pieces in their order or in the opposite one.

    So the steps between neighbouring stages, the price of its joints, are the same.
    """
    rng = random.Random(seed)
    tour = random_tour(rng, rng.choice((3, 8, 35)), 4)
    before = tour.rows.tolist()
    tour.improve(seed, Budget(60.0))

    def either_way(row: list[int]) -> list[int]:
        return min(row, row[::-1])

    after = tour.rows.tolist()
    assert sorted(map(either_way, after)) == sorted(map(either_way, before))


@pytest.mark.parametrize("seed", range(8))
def test_six_replicas_are_in_the_best_order(seed: int) -> None:
    """No order of six replicas, any of them turned round, is shorter."""
    tour = random_tour(random.Random(seed), 6, 3)
    first, *others = tour.rows.tolist()
    best = min(
        plain_length(
            [first, *(row[::way] for row, way in zip(order, ways, strict=True))]
        )
        for order in permutations(others)
        for ways in product((1, -1), repeat=5)
    )
    tour.improve(seed, Budget(60.0))
    assert tour.length == best


def test_replicas_in_two_blocks_are_walked_block_by_block() -> None:
    """Four replicas alternating between two blocks cross twice, not four times."""
    leaf = np.array([[0], [3], [1], [4]])
    domains = np.array([np.arange(6), np.arange(6) // LEAVES_A_BLOCK])
    tour = Tour(leaf, Distances(domains, np.array(STEPS)), Params())
    assert tour.length == 4 * 19
    tour.improve(0, Budget(60.0))
    assert tour.length == 2 * 17 + 2 * 19


def test_a_turned_replica_meets_its_neighbours() -> None:
    """Of two replicas on the same leaves in opposite order one is turned round."""
    domains = np.array([np.arange(6), np.arange(6) // LEAVES_A_BLOCK])
    distances = Distances(domains, np.array(STEPS))
    tour = Tour(np.array([[0, 3], [3, 0]]), distances, Params())
    assert tour.length == 4 * 19
    tour.improve(0, Budget(60.0))
    assert tour.length == 0


def test_same_seed_same_tour() -> None:
    """Two searches from one seed give the same leaves."""
    first, second = (random_tour(random.Random(4), 40, 4) for _ in range(2))
    first.improve(5, Budget(60.0))
    second.improve(5, Budget(60.0))
    assert (first.rows == second.rows).all()


def test_asked_to_end_it_keeps_the_tour() -> None:
    """A search that is over before it starts changes nothing."""
    tour = random_tour(random.Random(1), 40, 3)
    before = tour.rows.tolist()
    tour.improve(0, Budget(60.0, lambda: True))
    assert tour.rows.tolist() == before
