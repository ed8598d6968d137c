"""Which rank of one plan does the work of which rank of another.

Shapes: R ranks compared, V groups compared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

import numpy as np

from placer.base.arrays import IntArray
from placer.base.errors import InputError
from placer.job.axes import unlike_sizes
from placer.placement.shrink import ranks_of_replicas

if TYPE_CHECKING:
    from placer.job.axes import Parallelism
    from placer.placement.plan import Plan

Coordinates = Mapping[str, IntArray]

_DENSE = ("tp", "cp", "pp", "dp")
_EXPERT = ("etp", "ep", "pp", "edp")


@dataclass(frozen=True, eq=False)
class Matching:
    """Ranks of two plans with the same coordinates."""

    # old and new: axes of the two plans; None when a plan does not record them.
    old: Parallelism | None
    new: Parallelism | None
    # Coordinates of every old and every new rank, by axis, in one numbering of the
    # replicas; empty without axes.
    work: tuple[Coordinates, Coordinates]
    # old_rank and new_rank, (R,): ranks that do the same work, ascending by old rank.
    old_rank: IntArray
    new_rank: IntArray

    @property
    def axes(self) -> tuple[str, ...]:
        """Axes with groups of two or more ranks in either plan."""
        if self.old is None or self.new is None:
            return ()
        expert = ("ep", "etp", "edp") if self.old.ep > 1 else ()
        return tuple(
            axis
            for axis in ("tp", "cp", "pp", "dp", *expert)
            if max(self.old.size(axis), self.new.size(axis)) > 1
        )

    def groups(self, axis: str) -> tuple[IntArray, IntArray]:
        """Old and new ranks of the groups of ``axis`` that both plans have.

        Two arrays of shape (V, members); row for row the groups do the same work.

        Raises `ValueError` if a plan does not record its axes.
        """
        if self.old is None or self.new is None:
            raise ValueError("the plans do not record their axes")
        fixed = [a for a in (_DENSE if axis in _DENSE else _EXPERT) if a != axis]
        rows = [p.ranks_of_group[axis] for p in (self.old, self.new)]
        firsts = [members[:, 0] for members in rows]
        _, at_old, at_new = _common(self.work, fixed, *firsts)
        return rows[0][at_old], rows[1][at_new]


def match(old: Plan, new: Plan) -> Matching:
    """How the ranks of two plans correspond.

    Ranks correspond by their coordinates, so the plans may differ in data parallel size
    and in the order of their axes; plans without axes correspond rank by rank. Where
    one plan was made by giving up replicas of the other's size, its replicas are those
    that were kept.
    """
    before, after = old.axes, new.axes
    if before is None or after is None:
        if old.world_size != new.world_size:
            raise InputError(
                f"the plans cannot be compared: {old.world_size} ranks against "
                f"{new.world_size}, and a plan does not record its axes"
            )
        every = np.arange(old.world_size)
        return Matching(None, None, ({}, {}), every, every)
    if unlike := unlike_sizes(before, after):
        raise InputError(f"the plans cannot be compared: {', '.join(unlike)}")
    work = _work(old, before, after), _work(new, after, before)
    _, old_rank, new_rank = _common(
        work, _DENSE, np.arange(old.world_size), np.arange(new.world_size)
    )
    by_rank = np.argsort(old_rank)
    return Matching(before, after, work, old_rank[by_rank], new_rank[by_rank])


def _work(plan: Plan, own: Parallelism, other: Parallelism) -> Coordinates:
    """Coordinates of the plan's ranks: the other's, if it kept replicas of that."""
    given_up = plan.previous.get("given_up")
    if not isinstance(given_up, list | tuple):
        return own.coordinates
    kept = [replica for replica in range(other.dp) if replica not in given_up]
    if len(kept) != own.dp:
        return own.coordinates
    ranks = ranks_of_replicas(other, own, kept)
    return {axis: values[ranks] for axis, values in other.coordinates.items()}


def _common(
    work: tuple[Coordinates, Coordinates],
    axes: Sequence[str],
    old_rank: IntArray,
    new_rank: IntArray,
) -> tuple[IntArray, IntArray, IntArray]:
    """Coordinates (as one key) that both lists of ranks have, and where they stand."""
    radix = [1 + max(int(side[axis].max()) for side in work) for axis in axes]
    keys = [
        reduce(
            lambda key, digit: key * digit[1] + side[digit[0]][ranks],
            zip(axes, radix, strict=True),
            np.zeros(len(ranks), dtype=np.int64),
        )
        for side, ranks in zip(work, (old_rank, new_rank), strict=True)
    ]
    return np.intersect1d(keys[0], keys[1], assume_unique=True, return_indices=True)
