"""The bound that heavy messages set which cannot all stay in scale-up domains.

Where traffic takes no longer than T, no rank sends, or receives, more between domains
than takes T. So some ranks share a domain, and that goes on from one to the next:

- A rank and a set of ranks that do, if what it sends the set takes longer than T.
- Two ranks with partners in common. In different domains each partner is far from one
  of them, so if the lesser of what both send it adds up to more than 2 T they are not.

Sets of ranks so joined are whole, and domains must have room for all of them: for every
k, a domain with room for c ranks holds c // k sets of k ranks or more. The least T that
passes is a bound on the step.

By hand: two ranks each send 1 s to the same eight. In less than 4 s they share a
domain: apart, one of them is far from four. Then all of a receiver's 2 s come from that
domain, so in less than 2 s all ten are in it. See docs/method.md, "Heavy messages".
Shapes: R ranks; P ports, two of each; B bundles, what a port sends a set.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING

import numpy as np

from placer.arrays import FloatArray, IntArray
from placer.cost.links import weighted_counts
from placer.solve.problem.colocation import join

if TYPE_CHECKING:
    from placer.job.model import RankTraffic
    from placer.solve.bounds.network.ideal import IdealNetwork
    from placer.solve.problem.params import Params
    from placer.solve.run.budget import Budget

ROUNDING = 1e-12


def least_of_heavy(
    network: IdealNetwork, traffic: RankTraffic, params: Params, budget: Budget
) -> float:
    """Least seconds that the heaviest messages allow.

    Parameters
    ----------
    network : IdealNetwork
        The best one for every placement.
    traffic : RankTraffic
    params : Params
    budget : Budget
        When it ends, the times ruled out so far are all.
    """
    fabric = network.fabric
    if fabric.scale_up_tier < 0 or not fabric.can_leave_scale_up:
        return 0.0
    ports = Ports.of(network, traffic, params.common_work)
    room = network.capacities[fabric.scale_up_tier]
    low, high = 0.0, float(ports.alone_s.max(initial=0.0))
    while low < high and not budget.is_over():
        for seconds in ((low + high) / 2, low):
            joined, until = ports.joined(seconds)
            if _fit(joined, room):
                high = seconds
            else:
                low = max(low, until)
    return low


@dataclass(frozen=True, eq=False)
class Ports:
    """What ranks send and receive, and what that takes between domains.

    Attributes
    ----------
    label : ndarray, shape (R,)
        Set of each rank, by its first one.
    port, other : ndarray, shape (B,)
        Rank r sends by port r and receives by port R + r; the rank at the other end.
    far_s : ndarray, shape (B,), s
        What such messages add when they leave the domain.
    wait_s : ndarray, shape (P,), s
        What all messages of a port wait when none of them does.
    work : float
        Products of ports and sets to compare at most.
    """

    label: IntArray
    port: IntArray
    other: IntArray
    far_s: FloatArray
    wait_s: FloatArray
    work: float

    @classmethod
    def of(cls, network: IdealNetwork, traffic: RankTraffic, work: float) -> Ports:
        """The ports of all ranks on the best network."""
        fabric, first = network.fabric, network.fabric.scale_up_tier + 1
        _, one, which = np.unique(
            network.label[first - 1], return_index=True, return_inverse=True
        )
        label, ranks = one[which], len(which)
        lowest = float(fabric.latency.min())
        far_s = traffic.size_bytes / float(fabric.bandwidth[first:].max())
        far_s = far_s + (float(fabric.latency[first:].min()) - lowest)
        port = np.concatenate((traffic.senders, traffic.receivers + ranks))
        other = np.concatenate((traffic.receivers, traffic.senders))
        wait_s = weighted_counts(port, np.full(len(port), lowest), 2 * ranks)
        port, other, far_s = _bundled(port, other, np.tile(far_s, 2), ranks)
        return cls(label, port, other, far_s, wait_s, work)

    @property
    def alone_s(self) -> FloatArray:
        """Least seconds of each port with all partners far; shape (P,)."""
        return self.wait_s + weighted_counts(self.port, self.far_s, len(self.wait_s))

    def joined(self, seconds: float) -> tuple[IntArray, float]:
        """Sets of ranks that share a domain where traffic takes no longer.

        Returns
        -------
        ndarray, shape (R,)
        float, s
            Until when: in any time before that these sets are whole, too.
        """
        label, until, ranks = self.label, inf, len(self.label)
        port, other, far_s = self.port, self.other, self.far_s
        while True:
            apart = label[port % ranks] != label[other]
            port, other, far_s = _bundled(
                port[apart], label[other[apart]], far_s[apart], ranks
            )
            pairs = np.stack((port % ranks, other), axis=1)
            needed = far_s + self.wait_s[port]
            late = needed > seconds * (1 + ROUNDING)
            if not late.any():
                pairs, needed = self._in_common(label, port, other, far_s)
                late = needed > seconds * (1 + ROUNDING)
            if not late.any():
                return label, until
            until = min(until, float(needed[late].min()))
            label = join(label, pairs[late])

    def _in_common(
        self, label: IntArray, port: IntArray, other: IntArray, far_s: FloatArray
    ) -> tuple[IntArray, FloatArray]:
        """Ranks of two sets each, and what both need in the mean where they are apart.

        Of each set the ranks that send, and receive, most beyond it.

        Returns
        -------
        ndarray, shape (pairs, 2)
        ndarray, shape (pairs,), s
        """
        ranks = len(label)
        total = weighted_counts(port, far_s, 2 * ranks)
        some = np.argsort(-total, kind="stable")[: np.count_nonzero(total)]
        way = label[some % ranks] + some // ranks * ranks
        some = some[np.unique(way, return_index=True)[1]]
        sets, column = np.unique(label, return_inverse=True)
        levels = np.unique(far_s)
        if len(levels) * len(some) ** 2 * len(sets) > self.work:
            return np.zeros((0, 2), dtype=np.int64), np.zeros(0)
        row = np.full(2 * ranks, -1)
        row[some] = np.arange(len(some))
        kept = row[port] >= 0
        sent = np.zeros((len(some), len(sets)))
        sent[row[port[kept]], column[other[kept]]] = far_s[kept]
        lesser = np.zeros((len(some), len(some)))
        for step, level in zip(np.diff(levels, prepend=0.0), levels, strict=True):
            above = (sent >= level).astype(np.float32)
            lesser += step * (above @ above.T)
        # What one has in the set of the other is far, too.
        own = column[some % ranks]
        lesser += sent[:, own] + sent[:, own].T
        both = (lesser + self.wait_s[some] + self.wait_s[some][:, None]) / 2
        one, two = np.nonzero(np.triu(own != own[:, None]))
        return np.stack((some[one], some[two]), axis=1) % ranks, both[one, two]


def _bundled(
    port: IntArray, other: IntArray, far_s: FloatArray, ranks: int
) -> tuple[IntArray, IntArray, FloatArray]:
    """What each port sends each other rank or set, as one."""
    keys, which = np.unique(port * ranks + other, return_inverse=True)
    return keys // ranks, keys % ranks, weighted_counts(which, far_s, len(keys))


def _fit(label: IntArray, room: IntArray) -> bool:
    """Whether domains may have room for all sets."""
    size = np.unique(label, return_counts=True)[1]
    held = np.bincount(size)
    many = np.cumsum(held[::-1])[::-1]
    return all(many[k] <= (room // k).sum() for k in np.unique(size).tolist())
