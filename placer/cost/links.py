"""Bytes on uplinks and links, and the seconds that the fullest of them needs.

Bottleneck rule for flows that run together: each takes as long as its most loaded link,
loads counted per direction (max-min bound; Bertsekas and Gallager, *Data Networks*,
6.5). Links are those that a machine names: what all traffic between two domains shares.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property, reduce
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from placer.base.arrays import FloatArray, IntArray
from placer.topology.machine import Machine

if TYPE_CHECKING:
    from placer.cost.fabric import Fabric

StrArray = npt.NDArray[np.str_]


class LinkLoad(dict[tuple[str, int], FloatArray]):
    """Bytes on every uplink and every link of the tiers above NVLink.

    ``"up", t``: what leaves each child domain of tier ``t``; ``"down", t``: what enters
    it; ``"between", t``: on its links, each direction by itself (`PairLinks`).
    """

    def times(self, factor: float | FloatArray) -> LinkLoad:
        """The load of ``factor`` such rounds."""
        return LinkLoad((way, sent * factor) for way, sent in self.items())

    def plus(self, other: LinkLoad) -> LinkLoad:
        """Both loads together."""
        return LinkLoad((way, sent + other[way]) for way, sent in self.items())

    def reversed(self) -> LinkLoad:
        """As many bytes the other way."""
        back = {"up": "down", "down": "up"}
        return LinkLoad(
            ((back[way], t), sent)
            if way in back
            else ((way, t), np.roll(sent, len(sent) // 2))
            for (way, t), sent in self.items()
        )


@dataclass(frozen=True, eq=False)
class Traffic:
    """Bytes of an operation, or of one axis and step.

    They are worked out when they are asked for: most prices are of seconds alone.
    """

    work_out: Callable[[], tuple[FloatArray, LinkLoad]]

    @cached_property
    def _sent(self) -> tuple[FloatArray, LinkLoad]:
        return self.work_out()

    @property
    def bytes_by_tier(self) -> FloatArray:
        """Bytes sent by all ranks, by the tier of the hop; shape (T,)."""
        return self._sent[0]

    @property
    def load(self) -> LinkLoad:
        """What they put on uplinks and links."""
        return self._sent[1]

    def times(self, rounds: float) -> Traffic:
        """So many rounds of it."""
        return Traffic(lambda: (self.bytes_by_tier * rounds, self.load.times(rounds)))

    def plus(self, other: Traffic) -> Traffic:
        """Both together."""
        return Traffic(
            lambda: (
                self.bytes_by_tier + other.bytes_by_tier,
                self.load.plus(other.load),
            )
        )

    def reversed(self) -> Traffic:
        """The answers: as many bytes the other way."""
        return Traffic(lambda: (self.bytes_by_tier, self.load.reversed()))


# That of networks which say seconds alone.
NO_TRAFFIC = Traffic(lambda: (np.zeros(1), LinkLoad()))


@dataclass(frozen=True, eq=False)
class Cost:
    """What operations that run at once cost."""

    seconds: FloatArray  # of each group, or of each message
    traffic: Traffic = NO_TRAFFIC
    algorithms: StrArray = field(default_factory=lambda: np.zeros(0, dtype=str))  # (g,)


@dataclass(frozen=True, eq=False)
class PairLinks:
    """The links between child domains of one tier, L of them, each in two directions.

    ``l`` goes from the first domain to the second, ``l + L`` back.
    """

    # sources and targets, (2L,): child domains at both ends.
    sources: IntArray
    targets: IntArray
    capacity: FloatArray  # (2L,), B/s
    more_latency: FloatArray  # (2L,), s: what a hop takes longer than the tier says
    children: int  # child domains of the tier

    @classmethod
    def by_tier(cls, topology: Machine) -> dict[int, PairLinks]:
        """The links of a machine by the index of the tier in which domains meet."""
        found = {}
        for t, tier in enumerate(topology.tiers[1:], start=1):
            inside = topology.tiers[t - 1].name
            links = [link for link in topology.links if link.tier == inside]
            if not links:
                continue
            names = topology.domain_names[t - 1]
            index = {name: child for child, name in enumerate(names)}
            ends = np.array([[index[name] for name in link.between] for link in links])
            rate = np.array([link.bandwidth for link in links]) * tier.efficiency
            more = np.array([link.latency for link in links]) - tier.latency
            found[t] = cls(
                ends.T.ravel(),
                ends[:, ::-1].T.ravel(),
                np.tile(rate, 2),
                np.tile(more, 2),
                len(names),
            )
        return found

    def find(self, here: IntArray, there: IntArray) -> IntArray:
        """Link from a child domain to another, elementwise; -1 where there is none."""
        keys, order = self._keys
        wanted = here * self.children + there
        place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        return np.where(keys[place] == wanted, order[place], -1)

    def load(self, link: IntArray, size_bytes: npt.ArrayLike) -> FloatArray:
        """Bytes on each link, given the link of every flow or -1; shape (2L,)."""
        on = link >= 0
        sizes = np.broadcast_to(size_bytes, link.shape)[on]
        return weighted_counts(link[on], sizes, len(self.capacity))

    @cached_property
    def _keys(self) -> tuple[IntArray, IntArray]:
        """Both ends as one number, ascending, and the link of each."""
        keys = self.sources * self.children + self.targets
        order = np.argsort(keys)
        return keys[order], order


def weighted_counts(index: IntArray, weights: npt.ArrayLike, length: int) -> FloatArray:
    """Sum of the weights of each index below ``length``; shape (length,)."""
    counts = np.bincount(np.ravel(index), np.ravel(weights), length)
    return counts.astype(np.float64, copy=False)


def flow_load(
    fabric: Fabric,
    sources: IntArray,
    targets: IntArray,
    tiers: IntArray,
    size_bytes: FloatArray,
) -> LinkLoad:
    """The load of flows between GPUs; all arguments broadcast to one flow an entry."""
    load = LinkLoad()
    for t in fabric.scale_out_tiers:
        child = fabric.child_domain_of_gpu(t)
        crosses = tiers >= t
        sizes = np.broadcast_to(size_bytes, tiers.shape)[crosses]
        for way, ends in (("up", sources), ("down", targets)):
            at, count = child[ends[crosses]], len(fabric.uplink_capacity[t])
            load[way, t] = weighted_counts(at, sizes, count)
    for t, links in fabric.links.items():
        link = fabric.link_of(t, sources, targets)
        load["between", t] = links.load(link, size_bytes)
    return load


def flow_link_seconds(
    fabric: Fabric,
    load: LinkLoad,
    sources: IntArray,
    targets: IntArray,
    tiers: IntArray,
) -> FloatArray:
    """Seconds that the most loaded shared link on each flow's path needs."""
    seconds = np.zeros(tiers.shape)
    for t in fabric.scale_out_tiers:
        crosses = tiers >= t
        if not crosses.any():
            continue
        child = fabric.child_domain_of_gpu(t)
        busy_up = load["up", t] / fabric.uplink_capacity[t]
        busy_down = load["down", t] / fabric.uplink_capacity[t]
        path = np.maximum(
            busy_up[child[sources[crosses]]], busy_down[child[targets[crosses]]]
        )
        seconds[crosses] = np.maximum(seconds[crosses], path)
    for t, links in fabric.links.items():
        link = fabric.link_of(t, sources, targets)
        busy = load["between", t] / links.capacity
        seconds = np.maximum(seconds, np.where(link >= 0, busy[link], 0.0))
    return seconds


def total_load(traffic: Iterable[Traffic]) -> LinkLoad | None:
    """The load of all traffic together; None when there is none."""
    loads = [item.load for item in traffic]
    return reduce(LinkLoad.plus, loads) if loads else None


def total_traffic(traffic: Iterable[Traffic]) -> Traffic | None:
    """All traffic as one; None when there is none."""
    if not (items := list(traffic)):
        return None
    return Traffic(  # not one in the other, of thousands
        lambda: (
            reduce(np.add, [item.bytes_by_tier for item in items]),
            reduce(LinkLoad.plus, [item.load for item in items]),
        )
    )
