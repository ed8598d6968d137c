"""One struck leaf: its atoms, and which sets of them may leave it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import comb, inf
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from placer.solve.replace.ground import Ground

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

# Sets of atoms that are listed for a leaf, times atoms, at most about.
MOST_LISTED = 300_000
# Sets that grow atom by atom, and segments of one sort, at most.
MOST_GROWN, MOST_SEGMENTS = 64, 512


@dataclass(frozen=True, eq=False)
class Leaf:
    """Atoms of a leaf that lost ranks.

    Attributes
    ----------
    number : int
        The leaf.
    atoms : tuple of ndarray
        Ranks of each atom, ascending.
    size, lost : ndarray, shape (A,), ranks
        All of each atom, and those whose seats are gone.
    cells, lost_cells : ndarray, shape (A,)
        The same in cells.
    inside : ndarray, shape (A, A)
        Weight of the edges between two atoms.
    gain : ndarray, shape (A,)
        The most that each atom can save by leaving.
    """

    number: int
    atoms: tuple[IntArray, ...]
    size: IntArray
    lost: IntArray
    cells: IntArray
    lost_cells: IntArray
    inside: FloatArray
    gain: FloatArray

    @property
    def kept(self) -> IntArray:
        """Ranks of each atom that have a seat, and lose it when the atom leaves."""
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
        """Atoms of a set, those that have edges with each other together."""
        left = chosen.copy()
        found = []
        while left.any():
            piece, reached = [], [int(left.argmax())]
            left[reached[0]] = False
            while reached:
                atom = reached.pop()
                piece.append(atom)
                near = np.flatnonzero((self.inside[atom] > 0) & left)
                left[near] = False
                reached += near.tolist()
            found.append(np.array(sorted(piece)))
        return found

    @cached_property
    def most_others(self) -> int:
        """Atoms with seats up to which every set is among those of `few`.

        -1 where there are too many sets of lost atoms alone.
        """
        free = int((self.lost == 0).sum())
        touched = len(self.atoms) - free
        sets, most = 2 ** min(touched, 40), -1
        while sets * len(self.atoms) <= MOST_LISTED and most < free:
            most += 1
            sets = 2**touched * sum(comb(free, n) for n in range(most + 2))
        return most

    def few(self) -> BoolArray:
        """Every set with at most `most_others` atoms that lost nothing; (S, A)."""
        if self.most_others < 0:
            return np.zeros((0, len(self.atoms)), dtype=bool)
        free = np.flatnonzero(self.lost == 0)
        touched = np.flatnonzero(self.lost > 0)
        lost = (np.arange(2 ** len(touched))[:, None] >> np.arange(len(touched))) & 1
        rows = []
        for n in range(self.most_others + 1):
            for others in combinations(free.tolist(), n):
                block = np.zeros((len(lost), len(self.atoms)), dtype=bool)
                block[:, touched] = lost
                block[:, others] = True
                rows.append(block)
        return np.concatenate(rows)

    def grown(self, rise: float, cells: int) -> Iterator[BoolArray]:
        """Sets that grow atom by atom, the one that costs least each time.

        First from what is lost whole, then from nothing; from ``cells`` cells on.
        """
        degree = self.inside.sum(axis=1)
        for start in (self.kept == 0, np.zeros(len(self.atoms), dtype=bool)):
            chosen, told = start.copy(), 0
            joined = self.inside @ chosen
            while told < MOST_GROWN:
                if chosen @ self.cells >= cells:
                    told += 1
                    yield chosen.copy()
                if chosen.all():
                    break
                added = rise * (degree - 2 * joined) - self.gain
                atom = int(np.where(chosen, inf, added).argmin())
                chosen[atom] = True
                joined = joined + self.inside[atom]

    def closed(self) -> Iterator[BoolArray]:
        """Sets that no edge of some weight or more leaves: segments, replicas."""
        for weight in np.unique(self.inside[self.inside > 0])[::-1]:
            label = np.arange(len(self.atoms))
            for a, b in np.argwhere(self.inside >= weight):
                label[label == label[b]] = label[a]
            kinds = np.unique(label)
            if len(kinds) <= MOST_SEGMENTS:
                yield from (label == kind for kind in kinds)
            yield np.isin(label, label[self.lost > 0])


def leaves_of(ground: Ground, atom: IntArray) -> list[Leaf]:
    """The struck leaves, when ranks are tied into atoms as ``atom`` says."""
    ranks = ground.residents
    ranks = ranks[np.lexsort((ranks, atom[ranks], ground.home[ranks]))]
    home = ground.home[ranks]
    starts = np.flatnonzero(np.diff(home, prepend=-1))
    return [_leaf(ground, atom, own) for own in np.split(ranks, starts[1:]) if len(own)]


def _leaf(ground: Ground, atom: IntArray, ranks: IntArray) -> Leaf:
    """The leaf of ``ranks``, sorted by atom."""
    _, first, which = np.unique(atom[ranks], return_index=True, return_inverse=True)
    count = len(first)
    is_lost = ground.before.is_lost[ranks]
    _, cell_first = np.unique(ground.cell[ranks], return_index=True)
    number = int(ground.home[ranks[0]])
    index = np.full(len(ground.home), -1, dtype=np.int64)
    index[ranks] = which
    source, target, weight = ground.edges_of(ranks)
    stays = ground.home[target] == number
    inside = np.zeros((count, count))
    np.add.at(inside, (index[source[stays]], index[target[stays]]), weight[stays])
    np.fill_diagonal(inside, 0.0)
    nearest = float(ground.hops.distance.min())
    saved = weight * (ground.distances(source, target) - nearest)
    gain = np.bincount(index[source[~stays]], saved[~stays], count).astype(float)
    return Leaf(
        number=number,
        atoms=tuple(np.split(ranks, first[1:])),
        size=np.bincount(which, minlength=count),
        lost=np.bincount(which, is_lost, count).astype(np.int64),
        cells=np.bincount(which[cell_first], minlength=count),
        lost_cells=np.bincount(which[cell_first], is_lost[cell_first], count).astype(
            np.int64
        ),
        inside=inside,
        gain=gain,
    )
