"""Cuts of pipelines: how few there may be, and what they cost at the least."""

from __future__ import annotations

import random
from itertools import product

import numpy as np
import pytest

from placer.solve.bounds.crossings import Crossings, Need, fewest_cuts


def runs(cuts: tuple[bool, ...]) -> list[list[int]]:
    """Stages of every run of a closed ring."""
    stages = len(cuts)
    ends = [s for s in range(stages) if cuts[s]]
    if not ends:
        return [list(range(stages))]
    return [
        [s % stages for s in range(before + 1, end + 1)]
        for before, end in zip([ends[-1] - stages, *ends[:-1]], ends, strict=True)
    ]


def fit(cuts: tuple[bool, ...], wanted: Need) -> bool:
    return all(wanted.ranks[run].sum() <= wanted.room for run in runs(cuts))


def random_need(rng: random.Random, stages: int) -> Need:
    ranks = [rng.choice((1, 1, 2, 3)) for _ in range(stages)]
    return Need(np.array(ranks), rng.randint(2, 6))


def all_sets(stages: int) -> Crossings:
    """Every set of cuts of a closed ring, a second for each cut, less for the last."""
    rows = [row for row in product((False, True), repeat=stages) if sum(row) != 1]
    cuts = np.array(rows)
    return Crossings(cuts, cuts @ np.linspace(1.0, 0.8, stages))


def test_four_stages_of_two_ranks() -> None:
    """Rooms of 8, 4 and 3 ranks need 0, 2 and 4 cuts; stages of 2 never fit 1."""
    assert fewest_cuts(Need(np.array([2, 2, 2, 2]), 8)) == 0
    assert fewest_cuts(Need(np.array([2, 2, 2, 2]), 4)) == 2
    assert fewest_cuts(Need(np.array([2, 2, 2, 2]), 3)) == 4
    assert fewest_cuts(Need(np.array([2, 2, 2, 2]), 1)) is None


@pytest.mark.parametrize("seed", range(40))
def test_fewest_cuts_and_least_seconds(seed: int) -> None:
    """Both are those of the best of all sets of cuts that fit."""
    rng = random.Random(seed)
    stages = rng.randint(2, 6)
    wanted = random_need(rng, stages)
    every = all_sets(stages)
    good = [fit(tuple(row), wanted) for row in every.cuts.tolist()]
    assert every.fits(wanted).tolist() == good
    fewest = fewest_cuts(wanted)
    if fewest is None:
        assert not any(good)
        return
    counts = every.cuts.sum(axis=1)
    assert fewest <= min(counts[good])
    assert fewest == min(counts[good]) or fewest == 1
    at_least = rng.choice((0, 2))
    best = min(every.seconds[good & (counts >= at_least)])
    assert every.least_seconds(wanted, at_least) == pytest.approx(best)


@pytest.mark.parametrize("seed", range(40))
def test_untimed_numbers_of_cuts(seed: int) -> None:
    """Where some numbers of cuts are not timed the bound is lower, never higher."""
    rng = random.Random(seed)
    stages = rng.randint(4, 6)
    wanted = random_need(rng, stages)
    every = all_sets(stages)
    timed = rng.sample(range(2, stages + 1), 2)
    some = np.isin(every.cuts.sum(axis=1), [0, *timed])
    few = Crossings(every.cuts[some], every.seconds[some])
    for at_least in (0, 2):
        exact = every.least_seconds(wanted, at_least)
        assert few.least_seconds(wanted, at_least) <= exact
