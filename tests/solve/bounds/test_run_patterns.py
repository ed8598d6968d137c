"""Parts of groups that runs of ranks leave the slowest replica."""

from __future__ import annotations

import random
from collections.abc import Sequence
from math import prod
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pytest

from placer.solve.bounds.groups.run_patterns import RunPatterns, patterns_of
from tests.marks import slow
from tests.solve.bounds.test_cut_runs import runs

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
# Ranks of a group, groups of a stage that follow each other, stages, replicas.
SHAPES = (
    (2, 1, 2, 2),
    (2, 2, 2, 1),
    (2, 1, 3, 2),
    (3, 1, 2, 2),
    (3, 1, 3, 1),
    (4, 1, 1, 2),
    (4, 1, 2, 1),
    (4, 1, 3, 1),
    (5, 1, 2, 1),
    (6, 1, 2, 1),
)


def wait(patterns: IntArray, seconds: IntArray) -> FloatArray:
    """A pipeline's time when stage s waits ``seconds[s, v]`` at level v."""
    waits = seconds[np.arange(len(seconds)), patterns]
    return np.asarray(waits.sum(axis=1) + 3.0 * waits.max(axis=1))


def slowest(known: RunPatterns, placed: IntArray, seconds: IntArray) -> FloatArray:
    """The slowest replica of each launch; ``placed``, (B, R), the node of each rank."""
    of_group = placed.reshape(len(placed), -1, known.size)
    parts = (of_group[..., None] == of_group[:, :, None]).sum(-1).min(axis=2)
    stages = known.patterns.shape[1]
    least = parts.reshape(len(placed), known.repeats, stages, known.groups).min(axis=3)
    level = np.searchsorted(known.levels, least, side="right") - 1
    each = wait(level.reshape(-1, stages), seconds).reshape(len(placed), -1)
    return np.asarray(each.max(axis=1))


class Drawn(NamedTuple):
    """A random case: nodes that hold all ranks, levels and what they wait."""

    shape: tuple[int, ...]
    rooms: list[int]
    levels: tuple[int, ...]
    seconds: IntArray
    patterns: tuple[IntArray, FloatArray]

    @property
    def placed(self) -> IntArray:
        """The node of each rank in every launch."""
        return np.array(list(runs(self.rooms, prod(self.shape))))


def drawn_case(rng: random.Random, shapes: Sequence[tuple[int, ...]]) -> Drawn:
    """Of one of the shapes."""
    size, _groups, stages, _replicas = shape = rng.choice(shapes)
    parts = [*range(2, size // 2 + 1), size]
    levels = (1, *sorted(rng.sample(parts, rng.randint(1, len(parts)))))
    rooms = [rng.randint(1, 7) for _ in range(rng.choice((3, 4)))]
    if rng.random() < 0.5:
        rooms = [min(rooms)] * len(rooms)
    while sum(rooms) < prod(shape):
        rooms = [room + 1 for room in rooms]
    drawn = [rng.choices(range(10), k=len(levels)) for _ in range(stages)]
    seconds = -np.sort(-np.array(drawn))
    patterns = patterns_of(len(levels), stages, lambda rows: wait(rows, seconds))
    return Drawn(shape, rooms, levels, seconds, patterns)


@pytest.mark.parametrize("seed", [*range(25), *slow(range(25, 160))])
def test_no_runs_are_faster(seed: int) -> None:
    """No launch has a faster slowest replica, and the runs that are told have it."""
    rng = random.Random(f"patterns {seed}")
    case = drawn_case(rng, SHAPES)
    size, groups, _, replicas = case.shape
    rooms, seconds, placed = case.rooms, case.seconds, case.placed
    known = RunPatterns(
        np.array(rooms), size, groups, replicas, case.levels, *case.patterns
    )
    least = slowest(known, placed, seconds).min()
    assert known.least_s() <= least
    lengths = known.lengths()
    if lengths is not None:
        most = np.sort(rooms)[::-1][: len(lengths)]
        assert (np.sort(lengths)[::-1] <= most).all()
        told = np.repeat(np.arange(len(lengths)), lengths)
        assert slowest(known, told[None], seconds) >= least
    if len(set(rooms)) == 1:
        assert lengths is not None
        assert slowest(known, told[None], seconds) == least == known.least_s()


def test_a_stage_has_a_small_part() -> None:
    """Five nodes of 7 for four groups of 8 leave one a part of two ranks."""
    seconds = np.array([[9, 3, 2, 1, 0]] * 4)
    patterns = patterns_of(5, 4, lambda rows: wait(rows, seconds))
    nodes = np.array([7] * 50)
    known = RunPatterns(nodes, 8, 1, 10, (1, 2, 3, 4, 8), *patterns)
    assert known.least_s() == 3 + 2 + 2 + 1 + 3 * 3
    lengths = known.lengths()
    assert lengths is not None
    assert (np.sort(lengths.reshape(10, 5)) == [5, 6, 7, 7, 7]).all()
