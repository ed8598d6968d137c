"""Groups of ranks as groups of atoms: those that lie alike wherever atoms are, once.

Shapes: g groups of n ranks, k groups of atoms, A atoms.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from placer.base.arrays import IntArray

Numbers = npt.NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of entries, one after the other: row i is ``entry[start[i]:start[i + 1]]``.

    Attributes
    ----------
    start, entry : ndarray of int32
    """

    start: Numbers
    entry: Numbers

    @classmethod
    def of(cls, rows: Iterable[Sequence[int] | IntArray]) -> Rows:
        """The rows of some sequences."""
        parts = [np.asarray(row, dtype=np.int32) for row in rows]
        start = np.zeros(len(parts) + 1, dtype=np.int32)
        np.cumsum([len(part) for part in parts], out=start[1:])
        entry = np.concatenate(parts) if parts else np.zeros(0, np.int32)
        return cls(start, entry)

    @classmethod
    def pairs(cls, row: IntArray, entry: IntArray, count: int) -> Rows:
        """Rows 0 to ``count`` of pairs (row, entry); equal pairs count once."""
        if not len(row):
            return cls(np.zeros(count + 1, np.int32), np.zeros(0, np.int32))
        span = int(entry.max()) + 1
        keys = np.unique(np.asarray(row, np.int64) * span + entry)
        start = np.searchsorted(keys, np.arange(count + 1, dtype=np.int64) * span)
        return cls(start.astype(np.int32), (keys % span).astype(np.int32))

    def turned(self, count: int) -> Rows:
        """The rows that each of ``count`` entries is in."""
        row = np.repeat(np.arange(len(self.start) - 1), np.diff(self.start))
        return Rows.pairs(self.entry.astype(np.int64), row, count)


@dataclass(frozen=True, eq=False)
class AtomGroups:
    """Groups of atoms.

    Attributes
    ----------
    members : Rows
        Atoms of each group.
    weight : ndarray, shape (members,)
        How many of an atom's ranks are members.
    lanes : ndarray, shape (k,)
        Groups of ranks that each stands for.
    of_row : ndarray, shape (g,)
        Which one stands for each group of ranks.
    """

    members: Rows
    weight: Numbers
    lanes: Numbers
    of_row: IntArray

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.lanes)


def groups_of_atoms(atoms: IntArray, *, in_turn: bool, every: bool) -> AtomGroups:
    """Groups of atoms that stand for groups of ranks.

    Parameters
    ----------
    atoms : ndarray, shape (g, n)
        Atom of each member.
    in_turn : bool
        Whether it matters in which order the atoms first appear.
    every : bool
        Whether it matters where each member stands.
    """
    found: dict[bytes, int] = {}
    kept: list[IntArray] = []
    weights: list[IntArray] = []
    of_row = np.empty(len(atoms), dtype=np.int64)
    for i, row in enumerate(atoms):
        if every:
            names, many = row, np.ones(len(row), dtype=np.int64)
        else:
            names, first, many = np.unique(row, return_index=True, return_counts=True)
            if in_turn:
                turn = np.argsort(first)
                names, many = names[turn], many[turn]
        key = names.tobytes() + many.tobytes()
        if key not in found:
            found[key] = len(kept)
            kept.append(names)
            weights.append(many)
        of_row[i] = found[key]
    lanes = np.bincount(of_row, minlength=len(kept)).astype(np.int32)
    weight = (
        np.concatenate(weights).astype(np.int32) if weights else np.zeros(0, np.int32)
    )
    return AtomGroups(Rows.of(kept), weight, lanes, of_row)


def pairs_of_atoms(senders: IntArray, receivers: IntArray) -> AtomGroups:
    """Groups of messages, flat: groups of a sender and its receiver."""
    span = int(max(senders.max(initial=0), receivers.max(initial=0))) + 1
    keys, of_row, many = np.unique(
        senders * span + receivers, return_inverse=True, return_counts=True
    )
    entry = np.stack((keys // span, keys % span), axis=1).astype(np.int32)
    start = np.arange(0, entry.size + 1, 2, dtype=np.int32)
    return AtomGroups(
        Rows(start, entry.ravel()),
        np.ones(entry.size, dtype=np.int32),
        many.astype(np.int32),
        of_row.reshape(-1),
    )
