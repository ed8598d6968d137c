"""Groups of ranks as groups of atoms: those that lie alike wherever atoms are, once.

Shapes: g groups of n ranks, k groups of atoms, A atoms.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from placer.base.arrays import IntArray


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of entries: row i is ``entry[start[i]:start[i + 1]]``."""

    start: IntArray
    entry: IntArray

    @classmethod
    def of(cls, rows: Iterable[Sequence[int] | IntArray]) -> Rows:
        """The rows of some sequences."""
        parts = [np.asarray(row, dtype=np.int64) for row in rows]
        start = np.cumsum([0, *(len(part) for part in parts)])
        return cls(start, np.concatenate([*parts, np.zeros(0, np.int64)]))

    @classmethod
    def pairs(cls, row: IntArray, entry: IntArray, count: int) -> Rows:
        """Rows 0 to ``count`` of pairs (row, entry); equal pairs count once."""
        span = int(entry.max(initial=0)) + 1
        keys = np.unique(row * span + entry)
        start = np.searchsorted(keys, np.arange(count + 1) * span)
        return cls(start, keys % span)


@dataclass(frozen=True, eq=False)
class AtomGroups:
    """Groups of atoms."""

    members: Rows  # atoms of each group
    weight: IntArray  # (members,): how many of an atom's ranks are members
    lanes: IntArray  # (k,): groups of ranks that each stands for
    of_row: IntArray  # (g,): which one stands for each group of ranks

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
    rows, width = atoms.shape
    if every:
        row, entry = np.repeat(np.arange(rows), width), atoms.ravel()
        weight = np.ones(atoms.size, dtype=np.int64)
    else:
        span = int(atoms.max(initial=0)) + 1
        keys, first, weight = np.unique(
            atoms + np.arange(rows)[:, None] * span,
            return_index=True,
            return_counts=True,
        )
        if in_turn:
            turn = np.argsort(first)
            keys, weight = keys[turn], weight[turn]
        row, entry = np.divmod(keys, span)
    start = np.searchsorted(row, np.arange(rows + 1))
    found: dict[bytes, int] = {}
    of_row = np.empty(rows, dtype=np.int64)
    for i, (a, b) in enumerate(
        zip(start[:-1].tolist(), start[1:].tolist(), strict=True)
    ):
        key = entry[a:b].tobytes() + weight[a:b].tobytes()
        of_row[i] = found.setdefault(key, len(found))
    kept = np.unique(of_row, return_index=True)[1]
    is_kept = np.isin(row, kept)
    size = np.diff(start)[kept]
    members = Rows(np.append(0, np.cumsum(size)), entry[is_kept])
    return AtomGroups(members, weight[is_kept], np.bincount(of_row), of_row)


def pairs_of_atoms(senders: IntArray, receivers: IntArray) -> AtomGroups:
    """Groups of messages, flat: groups of a sender and its receiver."""
    span = int(max(senders.max(initial=0), receivers.max(initial=0))) + 1
    keys, of_row, many = np.unique(
        senders * span + receivers, return_inverse=True, return_counts=True
    )
    ends = np.stack(np.divmod(keys, span), axis=1).ravel()
    members = Rows(np.arange(0, ends.size + 1, 2), ends)
    return AtomGroups(members, np.ones_like(ends), many, of_row.reshape(-1))
