"""Who needs partners near: who receives over NVLink needs senders in its domain.

A rank whose NIC would be busy too long with all that it sends must have some of the
receivers in its own scale-up domain, and a receiver likewise. So a time needs a
number of partners near: as few as can be, the largest messages first. Ranks of a set
that stays together need those of each. By hand: a rank gets 1 GB from each of four over
a NIC of 1 GB/s. In 4 s it needs nobody near, in 3 s one of them, and in less than 1 s
all four. Shapes: F partners of ranks, S sets, R ranks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from placer.base.arrays import BoolArray, FloatArray, IntArray
from placer.base.rounding import EXACT
from placer.cost.links import weighted_counts
from placer.solve.bounds.ideal import IdealNetwork
from placer.solve.problem.colocation import join


@dataclass(frozen=True, eq=False)
class Pairs:
    """What each of some ranks, or sets, sends each of some others; F pairs, by rank."""

    rank: IntArray  # (F,)
    other: IntArray  # (F,)
    size_bytes: FloatArray  # (F,)
    longest_bytes: FloatArray  # (F,): of the longest message
    # far_s and near_s, (F,), s: of all messages one after the other, over a NIC, and at
    # the least over NVLink, where bytes count as nothing.
    far_s: FloatArray
    near_s: FloatArray

    @classmethod
    def of(
        cls, network: IdealNetwork, ranks: IntArray, others: IntArray, size: FloatArray
    ) -> Pairs:
        """The pairs of some messages."""
        fabric, count = network.fabric, len(network.label[0])
        outer = fabric.scale_up_tier + 1
        keys, which, messages = np.unique(
            ranks * count + others, return_inverse=True, return_counts=True
        )
        total, longest = weighted_counts(which, size, len(keys)), np.zeros(len(keys))
        np.maximum.at(longest, which, size)
        far = total / float(fabric.bandwidth[outer:].max())
        far += messages * float(fabric.latency[outer:].min())
        near = messages * float(fabric.latency.min())
        return cls(*np.divmod(keys, count), total, longest, far, near)


@dataclass(frozen=True, eq=False)
class Partners:
    """One direction of all flows: who needs partners, and who they are."""

    label: IntArray  # (R,): set of each rank; a set lies in one scale-up domain
    # rank and partner, (F,): a rank that needs partners, and the set of one, largest
    # messages first. Ranks are in order, no set has both needs and partners.
    rank: IntArray
    partner: IntArray
    gain_s: FloatArray  # (F,), s: what its port is sooner done when they are near
    # (F,), s: what the largest message to a partner takes on a NIC, the longest first.
    pair_s: FloatArray
    # ports_s and together_s, (R,), s: what the port of each rank needs with no partner
    # near, and with all.
    ports_s: FloatArray
    together_s: FloatArray

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
        if tier < 0 or tier + 1 == len(fabric.bandwidth):
            return None
        label = network.label[tier]
        apart = (label[ranks] != label[others]) & ~np.isin(label[ranks], label[others])
        if not apart.any():
            return None
        pairs = Pairs.of(network, ranks[apart], label[others[apart]], size[apart])
        inner = float(fabric.bandwidth[: tier + 1].max())
        outer = slice(tier + 1, None)
        pair_s = pairs.longest_bytes / float(fabric.bandwidth[outer].max()) / pair_share
        pair_s += float(fabric.latency[outer].min())
        gain_s = pairs.far_s - pairs.near_s
        order = np.lexsort((-gain_s, pairs.rank))
        return cls(
            label,
            pairs.rank,
            pairs.other[order],
            gain_s[order],
            pair_s[np.lexsort((-pair_s, pairs.rank))],
            weighted_counts(pairs.rank, pairs.far_s, len(label)),
            weighted_counts(
                pairs.rank, pairs.size_bytes / inner + pairs.near_s, len(label)
            ),
        )

    @cached_property
    def _alone_s(self) -> FloatArray:
        """Seconds of each rank with no partner near; shape (R,)."""
        found = self.ports_s.copy()
        np.maximum.at(found, self.rank, self.pair_s)
        return found

    @cached_property
    def _rest_s(self) -> FloatArray:
        """Seconds of a rank with this partner and those before near; shape (F,).

        The others take the port, and the longest of their messages a part of it.
        """
        taken, first = np.cumsum(self.gain_s), np.searchsorted(self.rank, self.rank)
        taken -= (taken - self.gain_s)[first]
        following = np.append(self.pair_s[1:], 0.0)
        following[np.append(self.rank[1:] != self.rank[:-1], True)] = 0.0
        rest: FloatArray = np.maximum(self.ports_s[self.rank] - taken, following)
        return rest

    @cached_property
    def levels(self) -> FloatArray:
        """Times, s, from which some rank can do with a partner less near."""
        return np.unique(np.hstack((self._rest_s, self._alone_s, self.together_s)))

    @cached_property
    def members(self) -> IntArray:
        """Ranks of each set; shape (S,)."""
        return np.bincount(self.label)

    @cached_property
    def is_partner(self) -> BoolArray:
        """Whether some rank has each set as a partner; shape (S,)."""
        return np.bincount(self.partner, minlength=len(self.members)) > 0

    @cached_property
    def component(self) -> IntArray:
        """Component of each set; shape (S,)."""
        pairs = np.stack((self.label[self.rank], self.partner), axis=1)
        return join(np.arange(len(self.members)), np.unique(pairs, axis=0))

    def needs(self, seconds: float) -> IntArray:
        """Ranks of partners that each set needs near, to take no longer; shape (S,)."""
        allowed = seconds + EXACT * self._alone_s
        late = self._rest_s > allowed[self.rank]
        near = weighted_counts(self.rank, late, len(self.label))
        near += self._alone_s > allowed
        # The ranks of a set may all count the same partners, as often as any has.
        most, total = np.zeros((2, len(self.members)))
        np.maximum.at(most, self.label, near)
        np.add.at(total, self.label, near)
        sets = np.maximum(most, np.ceil(total / self._shared))
        return np.asarray(sets.astype(np.int64) * self.members[self.is_partner].min())

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


def most_together(
    crowds: Sequence[tuple[IntArray, IntArray]], members: IntArray, room: IntArray
) -> IntArray:
    """Most members of a row in domains of such room, with the partners of each.

    Members of a component share theirs, so a domain with some of them has the least
    that one of them needs. The cheapest components are not those with the most members,
    so either sum is a bound by itself.

    ``crowds``: partners that each rank needs near, and its component, of either
    direction.
    """
    rooms, which = np.unique(room, return_inverse=True)
    found = np.full(len(rooms), members.shape[1])
    for needs, component in crowds:
        every = []
        for row in members if needs[members].any() else ():
            own = np.unique(component[row], return_inverse=True)[1]
            size = np.bincount(own)
            least = np.full(len(size), needs[row].max())
            np.minimum.at(least, own, needs[row])
            # Of one component, two and so on; shape (rooms, components).
            left = rooms[:, None] - np.cumsum(np.sort(least))
            most = np.minimum(np.cumsum(np.sort(size)[::-1]), left)
            every.append(most.max(axis=1).clip(0))
        found = np.min([found, np.max(every, axis=0)], axis=0) if every else found
    return found[which]
