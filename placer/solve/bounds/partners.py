"""Who needs partners near: who receives over NVLink needs senders in its domain.

A rank whose NIC alone would take too long for all that it receives must have the rest
from ranks in its own scale-up domain, and a sender likewise. So each time of the
transfers asks for a number of partners near; how many of both sides domains then hold
is counted (`transfers`). By hand: a rank gets 1 GB from each of four over a NIC of
1 GB/s. In 4 s it needs nobody near, in 3 s one of them, and in less than 1 s all four.
Shapes: F flows, S sets, R ranks.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from placer.base.arrays import FloatArray, IntArray
from placer.cost.links import weighted_counts
from placer.solve.problem.colocation import join

if TYPE_CHECKING:
    from placer.solve.bounds.network.ideal import IdealNetwork

# Of times at which needs change.
ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class Partners:
    """One direction of all flows: who needs partners, and who they are.

    Attributes
    ----------
    rate, near_rate : float, B/s
        Of the best NIC, and of the best link inside a domain.
    label : ndarray, shape (R,)
        Set of each rank; a set lies in one scale-up domain.
    rank, partner : ndarray, shape (F,)
        A rank that needs partners, and the set of one, largest messages first. Ranks
        are in order, no set has both needs and partners.
    size_bytes : ndarray, shape (F,)
    pair_s : ndarray, shape (F,), s
        What the largest message of a rank to a partner takes on a NIC, the longest of
        its partners first.
    wait_s : ndarray, shape (R,)
        Least latency of all messages of a rank.
    more_s : float, s
        What a message waits longer when it leaves the domain.
    """

    rate: float
    near_rate: float
    label: IntArray
    rank: IntArray
    partner: IntArray
    size_bytes: FloatArray
    pair_s: FloatArray
    wait_s: FloatArray
    more_s: float

    @classmethod
    def of(
        cls,
        network: IdealNetwork,
        ranks: IntArray,
        others: IntArray,
        size: FloatArray,
        pair_share: float = 1.0,
    ) -> Partners | None:
        """Who needs ``others`` near; None where nobody does."""
        fabric, tier = network.fabric, network.fabric.scale_up_tier
        outer = fabric.bandwidth[tier + 1 :]
        if tier < 0 or not len(outer):
            return None
        label = network.label[tier]
        apart = (label[ranks] != label[others]) & ~np.isin(label[ranks], label[others])
        if not apart.any():
            return None
        count = int(label.max()) + 1
        keys, which = np.unique(
            ranks[apart] * count + label[others[apart]], return_inverse=True
        )
        total = weighted_counts(which, size[apart], len(keys))
        rank, partner = keys // count, keys % count
        largest = np.zeros(len(keys))
        np.maximum.at(largest, which, size[apart])
        order, rate = np.lexsort((-total, rank)), float(outer.max())
        lowest = float(fabric.latency.min())
        return cls(
            rate,
            float(fabric.bandwidth[: tier + 1].max()),
            label,
            rank[order],
            partner[order],
            total[order],
            largest[np.lexsort((-largest, rank))] / rate / pair_share,
            weighted_counts(ranks, np.full(len(ranks), lowest), len(label)),
            float(fabric.latency[tier + 1 :].min()) - lowest,
        )

    @cached_property
    def _ports_s(self) -> FloatArray:
        """What the port of each rank needs with no partner near, s; shape (R,)."""
        total = weighted_counts(self.rank, self.size_bytes, len(self.label))
        far = np.bincount(self.rank, minlength=len(self.label))
        return np.asarray(total / self.rate + self.wait_s + far * self.more_s)

    @cached_property
    def _pairs_s(self) -> FloatArray:
        """What the longest message to each partner needs, s; shape (F,)."""
        return np.asarray(self.pair_s + self.wait_s[self.rank] + self.more_s)

    @cached_property
    def _alone_s(self) -> FloatArray:
        """Least seconds of each rank with no partner near; shape (R,)."""
        found = self._ports_s.copy()
        np.maximum.at(found, self.rank, self._pairs_s)
        return found

    @cached_property
    def _rest_s(self) -> FloatArray:
        """Least seconds of a rank with this partner and those before near; (F,).

        The others take the port, and the longest of their messages a part of it.
        """
        pace = self.size_bytes / self.rate + self.more_s
        taken = np.cumsum(pace)
        taken = taken - (taken - pace)[np.searchsorted(self.rank, self.rank)]
        following = np.append(self._pairs_s[1:], 0.0)
        following[np.append(self.rank[1:] != self.rank[:-1], True)] = 0.0
        rest: FloatArray = np.maximum(self._ports_s[self.rank] - taken, following)
        return rest

    @cached_property
    def near_s(self) -> FloatArray:
        """Least seconds of each rank with all partners near; shape (R,)."""
        total = weighted_counts(self.rank, self.size_bytes, len(self.label))
        return np.asarray(total / self.near_rate + self.wait_s)

    @cached_property
    def levels(self) -> FloatArray:
        """Times, s, from which some rank can do with a partner less or more near."""
        every = self._rest_s, self._alone_s, self.near_s[self.rank]
        found = np.unique(np.concatenate(every))
        found = found[found > 0]
        return found[np.diff(found, prepend=-1.0) > ROUNDING * found]

    @cached_property
    def members(self) -> IntArray:
        """Ranks of each set; shape (S,)."""
        return np.bincount(self.label)

    @property
    def sets(self) -> IntArray:
        """All sets; shape (S,)."""
        return np.arange(len(self.members))

    @cached_property
    def partners(self) -> IntArray:
        """Sets that some rank has as a partner, in order; shape (P,)."""
        return np.unique(self.partner)

    @cached_property
    def component(self) -> IntArray:
        """Component of each set; shape (S,)."""
        pairs = np.stack((self.label[self.rank], self.partner), axis=1)
        return join(self.sets, np.unique(pairs, axis=0))

    def needs(self, seconds: float) -> IntArray:
        """Ranks of partners that each set needs near, to take no longer; shape (S,)."""
        allowed = seconds + ROUNDING * self._alone_s
        late = self._rest_s > allowed[self.rank]
        near = weighted_counts(self.rank, late, len(self.label))
        near += self._alone_s > allowed
        # The ranks of a set may all count the same partners, as often as any has.
        most, asked = np.zeros((2, len(self.members)))
        np.maximum.at(most, self.label, near)
        np.add.at(asked, self.label, near)
        sets = np.maximum(most, np.ceil(asked / self._shared))
        smallest = int(self.members[self.partners].min())
        return np.asarray(sets.astype(np.int64) * smallest)

    @cached_property
    def _shared(self) -> IntArray:
        """Most ranks of each set that have a partner in common; shape (S,)."""
        count = len(self.members)
        keys, times = np.unique(
            self.label[self.rank] * count + self.partner, return_counts=True
        )
        most = np.ones(count, dtype=np.int64)
        np.maximum.at(most, keys // count, times)
        return most
