"""Which parts of groups each replica has where every node holds one run of ranks.

A replica that takes ``T`` or less has a *pattern* that does: for each stage the least
part of its groups, whole ones included. What comes before a group matters to it only by
the ranks of the run that is open at its first. So a stage is a matrix, from the ranks
in the open run before it to those after it, of the least price of the runs that end in
it, and a replica a product of them (sums for products, minima for sums). Prices stand
for nodes (`priced_runs.py`): where the cheapest runs cost more than all nodes are
worth, no placement takes ``T``. See docs/method.md, "Parts that runs leave a replica".

Where the ranks of a stage of all replicas follow each other, only patterns that are the
same for all replicas are tried, and what does not fit proves nothing.

Shapes: K patterns, P stages, V levels of the least part, L ranks of the longest run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from placer.arrays import FloatArray, IntArray
from placer.solve.bounds.groups.priced_runs import (
    cheapest_runs,
    first_fitting,
    fitting_runs,
)

Way = TypeVar("Way")

MOST_PATTERNS = 1 << 13  # with more of them levels are left out
MOST = 1 << 13  # ranks


@dataclass(frozen=True, eq=False)
class RunPatterns:
    """Patterns of the replicas of a job.

    Attributes
    ----------
    gpus : ndarray, shape (N,)
        Of each node.
    size : int
        Ranks of a group.
    groups : int
        That follow each other in a stage.
    repeats : int
        How often all stages follow each other: replicas, or 1 where all replicas have
        the same pattern.
    levels : tuple of int
        Least parts, the smallest first; the last stands for the best there is.
    patterns : ndarray, shape (K, P)
        All patterns, by level.
    seconds : ndarray, shape (K,), s
        Pipeline time of each.
    """

    gpus: IntArray
    size: int
    groups: int
    repeats: int
    levels: tuple[int, ...]
    patterns: IntArray
    seconds: FloatArray

    def least_s(self) -> float:
        """Least time of the slowest pipeline, s."""
        return float(self._values[self._first])

    def lengths(self) -> IntArray | None:
        """Lengths of runs with which pipelines take little more; None if unknown."""
        for value in self._values[self._first :].tolist():
            lengths = self.fitting(value)[1]
            if lengths is not None:
                return lengths
        return None

    def fitting(self, seconds: float) -> tuple[bool, IntArray | None]:
        """Whether runs may be such that no pipeline takes longer, and their lengths.

        Parameters
        ----------
        seconds : float, s
        """
        ways = self._fewest(seconds)
        return fitting_runs(
            self.gpus,
            lambda price: self._cheapest(ways, price),
            lambda lengths: (
                self.slowest_s(np.repeat(np.arange(len(lengths)), lengths)) <= seconds
            ),
        )

    def slowest_s(self, node: IntArray) -> float:
        """Pipeline time of the slowest replica, s.

        Parameters
        ----------
        node : ndarray, shape (R,)
            Of each rank, each with one run.
        """
        level = slot_levels(node, self.size, self.groups, self.levels)
        rows = level.reshape(self.repeats, self.patterns.shape[1])
        return float(seconds_of(rows, len(self.levels), self.seconds).max())

    @cached_property
    def _values(self) -> FloatArray:
        return np.unique(self.seconds)

    @cached_property
    def _first(self) -> int:
        """The first value that is not refuted."""
        return first_fitting(self._values, self.fitting)

    def _fewest(self, seconds: float) -> IntArray:
        """Patterns that take no longer, but for those that ask more than another."""
        stages = self.patterns.shape[1]
        grid = (self.seconds <= seconds).reshape((len(self.levels),) * stages)
        least = grid.copy()
        for axis in range(stages):
            lower = np.zeros_like(np.take(grid, [0], axis))
            before = np.concatenate((lower, np.delete(grid, -1, axis)), axis)
            least &= ~before
        return self.patterns[least.ravel()]

    def _cheapest(self, ways: IntArray, price: FloatArray) -> IntArray | None:
        """Lengths of the cheapest runs of replicas with such patterns."""
        one = [through(self.size, level, price).price for level in self.levels]
        stage = np.array([repeated(matrix, self.groups, times) for matrix in one])
        all_stages = stage[ways[:, 0]]
        for level in ways.T[1:]:
            all_stages = times(all_stages, stage[level])
        least, way = all_stages.min(axis=0), all_stages.argmin(axis=0)
        total, before = np.full(len(price), np.inf), []
        total[0] = 0.0
        for _ in range(self.repeats):
            ends = total[:, None] + least
            before.append(ends.argmin(axis=0))
            total = ends.min(axis=0)
        if not np.isfinite(total[0]):
            return None
        at, chosen = 0, []
        for states in before[::-1]:
            chosen.append(ways[way[states[at], at]])
            at = int(states[at])
        level_of_group = np.repeat(np.concatenate(chosen[::-1]), self.groups)
        parts = np.array(self.levels)[level_of_group]
        serves = self._serves(parts, len(price))
        return cheapest_runs(np.where(serves, price, np.inf))

    def _serves(self, parts: IntArray, longest: int) -> npt.NDArray[np.bool_]:
        """Whether runs of each length leave no smaller parts of groups than these."""
        world = len(parts) * self.size
        begin = np.arange(world)[:, None]
        end = begin + np.arange(1, longest + 1)
        is_inside = end <= world
        end = np.minimum(end, world)
        head = np.minimum(-begin % self.size, end - begin)
        tail = np.minimum(end % self.size, end - begin)
        needed = parts[begin // self.size], parts[(end - 1) // self.size]
        enough = ((head == 0) | (head >= needed[0])) & (
            (tail == 0) | (tail >= needed[1])
        )
        return np.asarray(enough & is_inside)


def patterns_of(
    levels: int, stages: int, seconds: Callable[[IntArray], FloatArray]
) -> tuple[IntArray, FloatArray]:
    """All patterns of so many levels, (K, P), and the time of each, (K,)."""
    patterns = np.indices((levels,) * stages).reshape(stages, -1).T
    return patterns, seconds(patterns)


def seconds_of(rows: IntArray, levels: int, seconds: FloatArray) -> FloatArray:
    """Time of some patterns, a row each, out of that of all (`patterns_of`); (n,)."""
    shape = (levels,) * rows.shape[1]
    return np.asarray(seconds[np.ravel_multi_index(tuple(rows.T), shape)])


def slot_levels(
    node: IntArray, size: int, groups: int, levels: tuple[int, ...]
) -> IntArray:
    """Level of the least part of each so many groups that follow each other.

    Parameters
    ----------
    node : ndarray, shape (R,)
        Of each rank, each with one run.
    size, groups : int
        Ranks of a group, and groups of a slot.
    levels : tuple of int
        Least parts, the smallest first.
    """
    of_group = node.reshape(-1, size)
    parts = (of_group[:, :, None] == of_group[:, None]).sum(axis=2).min(axis=1)
    least = parts.reshape(-1, groups).min(axis=1)
    return np.asarray(np.searchsorted(levels, least, side="right") - 1)


class Runs(NamedTuple):
    """The cheapest runs, by ranks in the run that is open before and after.

    Attributes
    ----------
    price : ndarray, shape (L, L)
    counts : ndarray, shape (L, L, C)
        What they use.
    """

    price: FloatArray
    counts: FloatArray


def through(
    size: int, least: int, price: FloatArray, rows: FloatArray | None = None
) -> Runs:
    """The cheapest runs that end in a group.

    Parameters
    ----------
    size, least : int
        Ranks of the group, and of a part of it.
    price : ndarray, shape (L,)
        Of a run of each length, from 1 on.
    rows : ndarray, shape (L, C), optional
        What it uses.
    """
    longest = len(price)
    rows = np.zeros((longest, 0)) if rows is None else rows

    def ahead(begun: int, cut: int) -> Runs:
        """What is paid from a cut on, with so many ranks in the open run there."""
        found = Runs(np.full(longest, np.inf), np.zeros((longest, rows.shape[1])))
        held = begun + size - cut
        if size - cut >= least or cut == 0:
            found.price[held : held + 1] = 0.0
            if held <= longest:
                found.price[0], found.counts[0] = price[held - 1], rows[held - 1]
        last = min(size - least, cut + longest - begun)
        for end in range(cut + least, last + 1):
            length = begun + end - cut - 1
            more = price[length] + after[end].price, rows[length] + after[end].counts
            found = cheaper(found, Runs(*more))
        return found

    after: dict[int, Runs] = {}
    for cut in range(size - 1, 0, -1):
        after[cut] = ahead(0, cut)
    ways = [ahead(begun, 0) for begun in range(longest)]
    return Runs(np.array([w.price for w in ways]), np.array([w.counts for w in ways]))


def cheaper(one: Runs, other: Runs) -> Runs:
    """The cheaper of both, entry by entry."""
    is_less = other.price < one.price
    return Runs(
        np.where(is_less, other.price, one.price),
        np.where(is_less[..., None], other.counts, one.counts),
    )


def times(left: FloatArray, right: FloatArray) -> FloatArray:
    """Matrices one after the other: sums for products, minima for sums."""
    found = np.full(np.broadcast_shapes(left.shape, right.shape), np.inf)
    for middle in range(left.shape[-1]):
        more = left[..., :, middle, None] + right[..., None, middle, :]
        np.minimum(found, more, out=found)
    return found


def repeated(one: Way, number: int, then: Callable[[Way, Way], Way]) -> Way:
    """The same so many times one after the other, at least once."""
    if number == 1:
        return one
    half = repeated(one, number // 2, then)
    whole = then(half, half)
    return then(whole, one) if number % 2 else whole
