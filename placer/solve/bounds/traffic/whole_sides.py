"""Two sides over uplinks where pieces add up to whole components: an exact count.

What domains send of any pieces (`two_sides`) takes a piece of a component as often as
it helps. Where few components are larger than a domain that is far too good. Here each
domain holds some of either side of every component, by name, and the counts of all
domains add up to the components. The contents that an uplink carries in a time are
listed for each domain, and sums of contents domain by domain. If no sum is all ranks
the time is ruled out.

By hand: two components, in each of which 4 ranks send 1 GB to each of 4 others, on two
domains of 8 whose uplinks carry 1 GB/s. Each holds a component: nothing leaves. Domains
of 6, 6 and 4 part both. With 2 and 2 of a component in the last one, another holds 2
and 2 of it beside 1 and 1 of the other: 4 GB and 3 GB leave it, 7 s. With 1 and 1 of
both in the last one 6 GB leave that: 6 s, and no counts take less. By themselves the
domains send 3, 3 and 4 GB.

Shapes: D domains, K components, N contents.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import inf
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from placer.arrays import FloatArray, IntArray

if TYPE_CHECKING:
    from placer.solve.run.budget import Budget

ROUNDING = 1e-9
# Of codes: sums of two fit 64.
BITS = 62


class Contents(NamedTuple):
    """What a domain may hold.

    Attributes
    ----------
    code : ndarray, shape (N,)
        Counts of each side of each component, as digits of one number.
    busy : ndarray, shape (N,), s
        Of its uplink.
    """

    code: IntArray
    busy: FloatArray


@dataclass(frozen=True, eq=False)
class WholeSides:
    """Components, and the domains that hold all of them.

    Attributes
    ----------
    tables : list of ndarray, shape (3, s + 1, r + 1), bytes
        What goes out at least, comes in, and half of both, by ranks of either side of
        a component.
    room : ndarray, shape (D,)
    capacity : ndarray, shape (D,), B/s
    work : int
        Entries that are looked at for a domain at most.
    """

    tables: Sequence[FloatArray]
    room: IntArray
    capacity: FloatArray
    work: int

    def least_busy(self, least: float, budget: Budget) -> float:
        """Least seconds in which domains hold all ranks.

        Less where that is too much work, or the budget ends first.

        Parameters
        ----------
        least : float
            No placement is faster.
        budget : Budget
        """
        if least <= 0 or float(np.log2(2 * self._sides + 1).sum()) > BITS:
            return least
        while True:
            until = 2 * least
            contents = None if budget.is_over() else self._contents(until)
            if contents is None:
                return least
            busy = np.concatenate([one.busy for one in contents])
            times = np.unique(busy[busy > least * (1 + ROUNDING)]).tolist()
            times = [least, *times]
            may_hold = partial(self._may_hold, contents, budget)
            first = bisect_left(times, True, key=may_hold)
            if first < len(times):
                return float(times[first])
            slowest = self.capacity[self.capacity > 0].min(initial=inf)
            if until * slowest > sum(table.max() for table in self.tables):
                return least  # uplinks carry all there is
            least = until

    @property
    def _sides(self) -> IntArray:
        """Ranks of each side of each component; shape (2 K,)."""
        return np.concatenate([np.array(table.shape[1:]) - 1 for table in self.tables])

    @property
    def _unit(self) -> IntArray:
        """What a rank of each side counts in codes; digits of two add up."""
        return np.cumprod(np.append(1, 2 * self._sides[:-1] + 1))

    def _contents(self, seconds: float) -> list[Contents] | None:
        """What each domain may hold in a time; None where that is too much."""
        own = np.stack((self.room.astype(np.float64), self.capacity))
        kinds, which = np.unique(own, axis=1, return_inverse=True)
        found: list[Contents] = []
        for room, capacity in kinds.T:
            one = self._of_domain(int(room), float(capacity), seconds)
            if one is None:
                return None
            found.append(one)
        return [found[kind] for kind in which.ravel()]

    def _of_domain(self, room: int, capacity: float, seconds: float) -> Contents | None:
        """What a domain may hold in a time; None where that is too much."""
        most = capacity * seconds * (1 + ROUNDING)
        # The others have no room for more, and components still to come fill no more.
        fewest = int(self._sides.sum() - self.room.sum()) + room
        sent, held, code = np.zeros((3, 1)), np.zeros(1, int), np.zeros(1, int)
        left = int(self._sides.sum())
        for number, table in enumerate(self.tables):
            unit = self._unit[2 * number : 2 * number + 2]
            left -= sum(table.shape[1:]) - 2
            digits = np.indices(table.shape[1:]).reshape(2, -1)
            added = table.reshape(3, -1)
            fits = (added.max(axis=0) <= most) & (digits.sum(axis=0) <= room)
            added, digits = added[:, fits], digits[:, fits]
            if len(held) * digits.shape[1] > self.work:
                return None
            total = held[:, None] + digits.sum(axis=0)
            old, new = np.nonzero((total <= room) & (total + left >= fewest))
            sums = sent[:, old] + added[:, new]
            kept = sums.max(axis=0) <= most
            old, new, sent = old[kept], new[kept], sums[:, kept]
            held, code = total[old, new], code[old] + (unit @ digits)[new]
        busy = sent.max(axis=0)
        return Contents(code, busy / capacity if capacity else busy)

    def _may_hold(
        self, contents: Sequence[Contents], budget: Budget, seconds: float
    ) -> bool:
        """Whether domains hold all ranks in a time; False is certain."""
        allowed = [one.code[one.busy <= seconds * (1 + ROUNDING)] for one in contents]
        order = sorted(range(len(allowed)), key=lambda domain: len(allowed[domain]))
        sides, unit = self._sides, self._unit
        left = int(self.room.sum())
        sums = np.zeros(1, dtype=np.int64)
        for domain in order[:-1]:
            left -= int(self.room[domain])
            if budget.is_over() or len(sums) * len(allowed[domain]) > self.work:
                return True
            sums = np.unique(sums[:, None] + allowed[domain])
            digits = sums[:, None] // unit % (2 * sides + 1)
            held = (digits <= sides).all(axis=1)
            sums = sums[held & (digits.sum(axis=1) + left >= sides.sum())]
        rest = int(unit @ sides) - sums
        return bool(np.isin(rest, allowed[order[-1]]).any())
