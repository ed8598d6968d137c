"""One affected base domain: its move groups, and which sets of them may leave it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import comb, inf
from typing import TYPE_CHECKING

import numpy as np

from placer.base.arrays import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from placer.solve.replace.state import RepairState

# Sets of move groups that are listed for a base domain, times groups, at most about: a
# limit of the bound on moves, too.
MOST_LISTED = 300_000


@dataclass(frozen=True, eq=False)
class BaseDomain:
    """A base domain that lost ranks, and its move groups.

    Attributes
    ----------
    number : int
        The base domain.
    groups : tuple of ndarray
        Ranks of each group, ascending.
    size, lost : ndarray, shape (A,), ranks
        All of each group, and those whose seats are gone.
    cells, lost_cells : ndarray, shape (A,)
        The same in cells.
    inside : ndarray, shape (A, A)
        Weight of the edges between two groups.
    gain : ndarray, shape (A,)
        The most that each group can save by leaving.
    """

    number: int
    groups: tuple[IntArray, ...]
    size: IntArray
    lost: IntArray
    cells: IntArray
    lost_cells: IntArray
    inside: FloatArray
    gain: FloatArray

    @property
    def kept(self) -> IntArray:
        """Ranks of each group that have a seat, and lose it when the group leaves."""
        return self.size - self.lost

    def losses(self, sets: BoolArray, rise: float) -> FloatArray:
        """What leaving costs each set at least; ``sets`` has shape (S, A).

        Edges between those who leave and those who stay become longer. What the set
        may gain elsewhere is taken off.
        """
        chosen = sets.astype(np.float64)
        cut = ((chosen @ self.inside) * (1.0 - chosen)).sum(axis=1)
        found: FloatArray = cut * rise - chosen @ self.gain
        return found

    def pieces(self, chosen: BoolArray) -> list[IntArray]:
        """Move groups of a set, those that have edges with each other together."""
        left = chosen.copy()
        found = []
        while left.any():
            piece, reached = [], [int(left.argmax())]
            left[reached[0]] = False
            while reached:
                group = reached.pop()
                piece.append(group)
                near = np.flatnonzero((self.inside[group] > 0) & left)
                left[near] = False
                reached += near.tolist()
            found.append(np.array(sorted(piece)))
        return found

    @cached_property
    def most_others(self) -> int:
        """Move groups with seats up to which every set is among those of `few`.

        -1 where there are too many sets of lost groups alone.
        """
        free = int((self.lost == 0).sum())
        touched = len(self.groups) - free
        sets, most = 2 ** min(touched, 40), -1
        while sets * len(self.groups) <= MOST_LISTED and most < free:
            most += 1
            sets = 2**touched * sum(comb(free, n) for n in range(most + 2))
        return most

    def few(self) -> BoolArray:
        """Every set with at most `most_others` groups that lost nothing; (S, A)."""
        if self.most_others < 0:
            return np.zeros((0, len(self.groups)), dtype=bool)
        free = np.flatnonzero(self.lost == 0)
        touched = np.flatnonzero(self.lost > 0)
        lost = (np.arange(2 ** len(touched))[:, None] >> np.arange(len(touched))) & 1
        rows = []
        for n in range(self.most_others + 1):
            for others in combinations(free.tolist(), n):
                block = np.zeros((len(lost), len(self.groups)), dtype=bool)
                block[:, touched] = lost
                block[:, others] = True
                rows.append(block)
        return np.concatenate(rows)

    def grown(self, rise: float, cells: int, most: int) -> Iterator[BoolArray]:
        """Sets that grow group by group, the one that costs least each time.

        First from what is lost whole, then from nothing; ``most`` sets each, from
        ``cells`` cells on.
        """
        degree = self.inside.sum(axis=1)
        for start in (self.kept == 0, np.zeros(len(self.groups), dtype=bool)):
            chosen, told = start.copy(), 0
            joined = self.inside @ chosen
            while told < most:
                if chosen @ self.cells >= cells:
                    told += 1
                    yield chosen.copy()
                if chosen.all():
                    break
                added = rise * (degree - 2 * joined) - self.gain
                group = int(np.where(chosen, inf, added).argmin())
                chosen[group] = True
                joined = joined + self.inside[group]

    def closed(self, most: int) -> Iterator[BoolArray]:
        """Sets that no edge of some weight or more leaves: segments, replicas.

        One by one where there are at most so many, and all that lost ranks as one.
        """
        for weight in np.unique(self.inside[self.inside > 0])[::-1]:
            label = np.arange(len(self.groups))
            for a, b in np.argwhere(self.inside >= weight):
                label[label == label[b]] = label[a]
            kinds = np.unique(label)
            if len(kinds) <= most:
                yield from (label == kind for kind in kinds)
            yield np.isin(label, label[self.lost > 0])


def base_domains(state: RepairState, group: IntArray) -> list[BaseDomain]:
    """The affected base domains, when ranks are tied into groups as ``group`` says."""
    ranks = state.residents
    ranks = ranks[np.lexsort((ranks, group[ranks], state.home[ranks]))]
    home = state.home[ranks]
    starts = np.flatnonzero(np.diff(home, prepend=-1))
    return [_base(state, group, own) for own in np.split(ranks, starts[1:]) if len(own)]


def _base(state: RepairState, group: IntArray, ranks: IntArray) -> BaseDomain:
    """The base domain of ``ranks``, sorted by group."""
    _, first, which = np.unique(group[ranks], return_index=True, return_inverse=True)
    count = len(first)
    is_lost = state.before.is_lost[ranks]
    _, cell_first = np.unique(state.cell[ranks], return_index=True)
    number = int(state.home[ranks[0]])
    index = np.full(len(state.home), -1, dtype=np.int64)
    index[ranks] = which
    source, target, weight = state.edges_of(ranks)
    stays = state.home[target] == number
    inside = np.zeros((count, count))
    np.add.at(inside, (index[source[stays]], index[target[stays]]), weight[stays])
    np.fill_diagonal(inside, 0.0)
    nearest = float(state.hops.distance.min())
    saved = weight * (state.distances(source, target) - nearest)
    gain = np.bincount(index[source[~stays]], saved[~stays], count).astype(float)
    return BaseDomain(
        number=number,
        groups=tuple(np.split(ranks, first[1:])),
        size=np.bincount(which, minlength=count),
        lost=np.bincount(which, is_lost, count).astype(np.int64),
        cells=np.bincount(which[cell_first], minlength=count),
        lost_cells=np.bincount(which[cell_first], is_lost[cell_first], count).astype(
            np.int64
        ),
        inside=inside,
        gain=gain,
    )
