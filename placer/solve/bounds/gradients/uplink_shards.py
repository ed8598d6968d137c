"""Shard groups and groups of equal shards behind thin uplinks: one of them crosses.

Ranks that hold the same parameters are a grid: a row is a shard group of ``n`` ranks,
a column the ``m`` ranks of a shard. In a domain with less room than a grid needs ``a``
rows and ``b`` columns leave it. How many ranks may these be?

* rows whole, no column whole: all columns leave, and at most ``m - 1`` rows are there
* columns whole, no row whole: all rows leave, at most ``n - 1`` columns are there
* neither whole: at most ``a b`` ranks
* both: what is missing lies in the rows and columns that leave, ``a b`` ranks at most

Uplinks carry so many rings of either in a time; all domains must hold all ranks.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from placer.arrays import IntArray, row_of_number
from placer.cost.gradients import REPLICATE
from placer.solve.bounds.gradients.uplink_trees import Known, least_in_trees
from placer.solve.bounds.network.limit import Limit

if TYPE_CHECKING:
    from placer.solve.bounds.gradients.uplink_room import UplinkRoom

MARKS = 16  # paces of shard groups that are told apart


@dataclass(frozen=True, eq=False)
class ShardGrids:
    """Parameters of one sort that several shard groups hold.

    Attributes
    ----------
    rows, columns : ndarray, shape (g, n) and (h, m)
        Shard groups; groups of equal shards.
    room : UplinkRoom
    """

    rows: IntArray
    columns: IntArray
    room: UplinkRoom

    @classmethod
    def of(cls, groups: dict[str, IntArray], room: UplinkRoom) -> list[ShardGrids]:
        """One for each sort of parameters that is sharded so, of gradient groups."""
        return [
            cls(rows, groups[axis + REPLICATE], room)
            for axis, rows in groups.items()
            if axis + REPLICATE in groups and rows.shape[1] > 1
        ]

    def limits(self) -> Iterator[list[Limit]]:
        """What holds rows and columns back; every placement has one of these."""
        size = self.rows.shape[1]
        paces = self.room.paces(self.rows, together=self._alike)
        marks = np.unique(np.linspace(0, len(paces) - 1, MARKS).astype(np.int64))
        # Rings slower than a mark and faster than the next have the pace before it.
        for mark, beyond in zip(marks, [*marks[1:], len(paces)], strict=True):
            rows = self.room.carried(float(paces[beyond - 1]))
            ways: list[tuple[Limit, int | None]]
            ways = [(Limit(self.rows, size, float(paces[mark])), None)]
            if not rows.any():
                # All rows in scale-up domains, or some in two of them.
                ways = [(Limit(self.rows, size), self._together_in_rows)]
                if size > 1 and self.room.tier - 1 > self._scale_up:
                    ways.append((Limit(self.rows, size // 2), None))
            for of_rows, together in ways:
                of_columns = self._of_columns(rows, together)
                if of_columns is not None:
                    yield [of_rows, of_columns]

    def held(self, rows: IntArray, columns: IntArray) -> IntArray:
        """Most ranks of each domain that so many rows and columns leave; (C,)."""
        n, m = self.rows.shape[1], self.columns.shape[1]
        # Of grids that lie alike in a domain each has its part.
        alike = self._alike
        ranks, rows, columns = self.room.ranks // alike, rows // alike, columns // alike
        left = ranks % (n * m)
        most = np.zeros_like(left)
        for with_rows in range(3):
            for with_columns in range(3):
                more_rows = rows - with_columns * m
                more_columns = columns - with_rows * n
                here = with_rows * n * (m - 1) + with_columns * m * (n - 1)
                fits = (more_rows >= 0) & (more_columns >= 0)
                here = np.where(fits, here + more_rows * more_columns, 0)
                most = np.maximum(most, here)
        may_have_both = rows * columns >= n * m - left
        beside = np.where(may_have_both, left, np.minimum(left, most))
        return np.asarray((ranks - left + beside) * alike)

    def _of_columns(self, rows: IntArray, together: int | None) -> Limit | None:
        """What holds columns back where so many rows leave domains; None for no room.

        Parameters
        ----------
        rows : ndarray, shape (C,)
        together : int, optional
            Most ranks of a column in a scale-up domain; 0 where no row fits.
        """
        rings = self._pace(rows)
        trees = self._pace(rows, in_trees=True)
        if rings is None or trees is None or together == 0:
            return None
        if not rows.any():
            trees = max(trees, self._trees_of_whole(together))
        return Limit(self.columns, self.columns.shape[1], rings, trees_pace=trees)

    def _trees_of_whole(self, together: int | None) -> float:
        """Least seconds a byte of the buffer of columns where no row leaves domains."""
        n, m = self.rows.shape[1], self.columns.shape[1]
        grids = self._grids_of_a_set(self.room.tier - 1)
        # Wherever there are ranks all columns leave, if they do not fit. Those of a
        # grid drive as many NICs each where rows are in one scale-up domain.
        leave = np.where(self.room.ranks < grids * n * m, grids * n, 0)
        alike = n if together is not None else 1
        rooms = np.sort(self.room.ranks // (grids * n))[::-1]
        domains = int(np.searchsorted(np.cumsum(rooms), m)) + 1
        known = Known(domains, together, leave, alike)
        return least_in_trees(self.room, self.columns, known)

    def _pace(self, rows: IntArray, *, in_trees: bool = False) -> float | None:
        """Least pace of columns with which domains hold all ranks; None with none.

        Parameters
        ----------
        rows : ndarray, shape (C,)
            That leave each domain.
        in_trees : bool
            Whether of the buffer, in rings or trees.
        """
        room, groups = self.room, self.columns
        paces = room.paces(groups, in_trees=in_trees)

        def is_enough(pace: float) -> bool:
            columns = room.reduced(pace, groups) if in_trees else room.carried(pace)
            return bool(self.held(rows, columns).sum() >= groups.size)

        first = bisect_left(paces, True, key=is_enough)
        return float(paces[first]) if first < len(paces) else None

    @property
    def _scale_up(self) -> int:
        return self.room.network.fabric.scale_up_tier

    @cached_property
    def _together_in_rows(self) -> int:
        """Most members of a column in a scale-up domain where all rows are in one."""
        if self._scale_up < 0:
            return 0
        room = self.room.network.capacities[self._scale_up]
        in_a_row = int(self.rows.shape[1]) * self._grids_of_a_set(self._scale_up)
        return int(room.max()) // in_a_row

    @cached_property
    def _alike(self) -> int:
        """Grids that lie alike in all domains; 1 where none are known to.

        Each set has ranks of so many grids, and of each of them the same ones, by row
        and column. So it takes them all to the same domain.
        """
        sets = self.room.sets
        number = self._grids_of_a_set(self.room.tier - 1)
        if number == 1 or sets.shape[1] % number:
            return 1
        grid, cell = self._cells
        order = np.lexsort((cell[sets], grid[sets]), axis=1)
        ranks = np.take_along_axis(sets, order, axis=1).reshape(len(sets), number, -1)
        grids, cells = grid[ranks], cell[ranks]
        is_alike = (grids == grids[..., :1]).all() and (cells == cells[:, :1]).all()
        together = np.unique(grids[..., 0], axis=0)
        return number if is_alike and together.size == int(grid.max()) + 1 else 1

    @cached_property
    def _cells(self) -> tuple[IntArray, IntArray]:
        """Grid of each rank, and its row and column there in one number; (R,) each."""
        n, m = self.rows.shape[1], self.columns.shape[1]
        grid, row = np.divmod(row_of_number(self.rows), m)
        return grid, row * n + row_of_number(self.columns) % n

    def _grids_of_a_set(self, tier: int) -> int:
        """Grids of which a domain of a tier holds as many ranks together, at least."""
        pairs = np.stack((self.room.network.label[tier], self._cells[0]))
        (of_set, _), ranks = np.unique(pairs, axis=1, return_counts=True)
        if (ranks != ranks[0]).any():
            return 1
        return int(np.unique(of_set, return_counts=True)[1].min())
