"""Groups that all replicas together have cut: no launch by nodes does with fewer."""

from __future__ import annotations

import random

import numpy as np
import numpy.typing as npt
import pytest

from placer.solve.bounds.groups.run_counts import RunCounts
from placer.solve.bounds.groups.run_patterns import patterns_of
from tests.marks import slow
from tests.solve.bounds.test_run_patterns import drawn_case, wait

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
# Ranks of a group, groups of a slot, stages, replicas.
SHAPES = (
    (2, 1, 2, 2),
    (2, 1, 3, 2),
    (2, 1, 2, 3),
    (2, 2, 2, 1),
    (3, 1, 2, 2),
    (3, 2, 1, 2),
    (3, 1, 3, 1),
    (4, 1, 2, 1),
    (4, 1, 1, 3),
    (4, 1, 3, 1),
    (5, 1, 2, 1),
    (6, 1, 1, 2),
)


def slowest(
    known: RunCounts, placed: IntArray, in_turn: bool, seconds: IntArray
) -> FloatArray:
    """The slowest replica of each launch; ``placed``, (B, R), the node of each rank."""
    stages = known.patterns.shape[1]
    found = []
    for node in placed:
        of_group = node.reshape(-1, known.size)
        parts = [min(row.tolist().count(one) for one in row) for row in of_group]
        least = np.array(parts).reshape(-1, known.groups).min(axis=1)
        level = [sum(part >= one for one in known.levels) - 1 for part in least]
        rows = np.array(level).reshape((-1, stages) if in_turn else (stages, -1))
        found.append(wait(rows if in_turn else rows.T, seconds).max())
    return np.array(found)


@pytest.mark.parametrize("seed", [*range(25), *slow(range(25, 160))])
def test_no_runs_are_faster(seed: int) -> None:
    """No launch has a faster slowest replica, whichever way its stages lie."""
    rng = random.Random(f"counts {seed}")
    case = drawn_case(rng, SHAPES)
    size, groups, _, replicas = case.shape
    rooms, seconds, placed = case.rooms, case.seconds, case.placed
    in_turn = rng.random() < 0.5
    turns = (1, replicas) if in_turn else (replicas, 1)
    known = RunCounts(
        np.array(rooms), size, groups, *turns, case.levels, *case.patterns
    )
    times = slowest(known, placed, in_turn, seconds)
    assert known.least_s() <= times.min()
    assert known.least_s(floor=times.min()) == times.min()


def stages_cut(rooms: list[int], size: int, groups: int, may_wait: list[bool]) -> bool:
    """Whether runs may cut groups of some stages alone, a stage having so many."""
    patterns = np.array([[0 if may else 1 for may in may_wait]])
    stages = np.array(rooms), size, 1, groups, 1, (1, size), patterns, np.zeros(1)
    return RunCounts(*stages).may_take(0.0)


def test_a_third_stage_has_a_group_that_is_cut() -> None:
    """Two stages of four have too few nodes once 13 are full of the other two.

    Of 56 groups of 3, on 19 nodes of 8 and 5 of 7, 13 nodes hold 26 of the other 28 and
    some node the last 2 beside ranks of the second stage: 82 GPUs are left for 84
    ranks.
    """
    rooms = [8] * 19 + [7] * 5
    assert not stages_cut(rooms, 3, 14, [True, True, False, False])
    assert stages_cut(rooms, 3, 14, [True, True, True, False])


def test_replicas_cannot_all_have_few_stages_cut() -> None:
    """Where six groups of 3 are cut two replicas wait for three of them each.

    Six nodes of 8 or 7 hold 12 of 15 groups whole, so runs of 8 and 7 cut one of five.
    """
    patterns = patterns_of(2, 5, lambda rows: (rows == 0).sum(axis=1).astype(float))
    known = RunCounts(np.array([8, 7] * 3), 3, 1, 3, 1, (1, 3), *patterns)
    assert known.least_s() == 1
    tight = RunCounts(np.array([5] * 9), 3, 1, 3, 1, (1, 3), *patterns)
    assert tight.least_s() == 2
