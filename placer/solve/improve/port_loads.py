"""How long ports and uplinks are busy with flows, and what a change adds to that.

Traffic, all-to-alls and messages take as long as the busiest port of a GPU, or the
busiest uplink, on their way (`cost/exchange.py`). What each is busy with is a sum over
flows, so a change of places touches the ports of the flows of those that move, and no
others. Shapes: U units, F flows, L loads, D domains, K changes.

The loads, in seconds: ports outside scale-up domains, those inside, then for every tier
with thin uplinks and all flows of it that run together the uplinks, up and down.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from placer.arrays import FloatArray, IntArray
from placer.solve.improve.port_tables import Tables

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

    from placer.cost.fabric import Fabric
    from placer.solve.improve.messages import Messages
    from placer.solve.improve.region import MoveRegion

ROUNDING = 1e-9


class Added(NamedTuple):
    """What changes add to loads, an entry each time a change touches a load.

    Attributes
    ----------
    change, load : ndarray, shape (entries,)
    seconds : ndarray, shape (entries,), s
    """

    change: IntArray
    load: IntArray
    seconds: FloatArray


class _Uplinks(NamedTuple):
    """Uplinks into one tier.

    Attributes
    ----------
    first : int
        Number of the first load.
    child : ndarray, shape (D,)
        Child domain of the tier that each domain lies in.
    pace : ndarray, shape (children,), s/B
    """

    tier: int
    first: int
    child: IntArray
    pace: FloatArray


class PortLoads:
    """Loads of placements of one region.

    Parameters
    ----------
    messages : Messages
        Between its units.
    loops : module, optional
        `port_loops`, where it is compiled.

    Attributes
    ----------
    kind : ndarray, shape (L,)
        Of the communicators that each load belongs to.
    flows : ndarray, shape (2 F,)
        Of one unit after the other.
    first, degree : ndarray, shape (U + 1,)
        The first of each unit there, and how many it has; the last is nobody, -1.
    """

    def __init__(
        self,
        fabric: Fabric,
        region: MoveRegion,
        messages: Messages,
        loops: ModuleType | None = None,
    ) -> None:
        self.messages, self._fabric, self._tier = messages, fabric, region.tier
        topology = fabric.topology
        first = np.unique(topology.domain_of_node[region.tier], return_index=True)[1]
        self._above = topology.domain_of_node[region.tier : -1][:, first]
        self._factor = topology.bandwidth_factor[first]
        ports = len(messages.kind_of_port)
        kinds, self._uplinks = [messages.kind_of_port] * 2, []
        last = 2 * ports
        for tier, pace in _thin_uplinks(fabric, region.tier):
            child = self._above[tier - 1 - region.tier]
            self._uplinks.append(_Uplinks(tier, last, child, pace))
            kinds.append(np.repeat(messages.kind_of_set, 2 * len(pace)))
            last += len(kinds[-1])
        self.kind = np.concatenate(kinds)
        self.flows = np.argsort(messages.ends.ravel(), kind="stable")
        self.flows %= messages.ends.shape[1]
        self.degree = np.bincount(messages.ends.ravel(), minlength=region.units + 1)
        self.first = np.cumsum(self.degree) - self.degree
        self.loops, self.tables = loops, self._tables()

    def _tables(self) -> Tables:
        messages, fabric, uplinks = self.messages, self._fabric, self._uplinks
        # Where there are no uplinks the arrays still have their dimensions.
        by_domain = -1, len(self._factor)
        return Tables(
            ends=_whole(messages.ends),
            port=_whole(messages.ports),
            size_bytes=_real(messages.size_bytes),
            runs=_real(messages.runs),
            together=_whole(messages.together),
            flows=_whole(self.flows),
            first=_whole(self.first),
            degree=_whole(self.degree),
            ports=len(messages.kind_of_port),
            above=_whole(self._above),
            tier=self._tier,
            scale_up_tier=int(fabric.scale_up_tier),
            bandwidth=_real(fabric.bandwidth),
            latency=_real(fabric.latency),
            factor=_real(self._factor),
            uplink_tier=_whole([one.tier for one in uplinks]),
            uplink_first=_whole([one.first for one in uplinks]),
            uplink_children=_whole([len(one.pace) for one in uplinks]),
            uplink_child=_whole([one.child for one in uplinks]).reshape(by_domain),
            uplink_pace=_real([one.pace[one.child] for one in uplinks]).reshape(
                by_domain
            ),
        )

    def of(self, home: IntArray) -> FloatArray:
        """Seconds that each port and uplink is busy; shape (L,).

        A flow that waits for an uplink waits for all messages of its ports as well, so
        an uplink is busy with the longest such wait, too.
        """
        ends = self.messages.ends
        total = np.zeros(len(self.kind))
        flow = np.arange(ends.shape[1])
        for load, seconds in self._parts(flow, *home[ends]):
            total += np.bincount(load, seconds, len(total))
        if self._uplinks:
            longest = np.zeros(len(total))
            tier = self._tiers(*home[ends])
            wait = self._waits(tier)
            for load, seconds in self._on_uplinks(flow, tier, *home[ends]):
                np.maximum.at(longest, load, np.where(seconds > 0, wait, 0.0))
            total += longest
        return total

    def _waits(self, tier: IntArray) -> FloatArray:
        """Seconds of all messages at the slower port of each flow; shape (F,).

        Parameters
        ----------
        tier : ndarray, shape (F,)
            That each flow passes.
        """
        messages = self.messages
        hop = messages.runs * self._fabric.latency[tier]
        found = np.zeros(len(hop))
        for port in messages.ports:
            found = np.maximum(found, np.bincount(port, hop)[port])
        return found

    def on_way(self, values: FloatArray, home: IntArray) -> FloatArray:
        """The largest value of a load on the way of any flow of each unit; (U,)."""
        ends = self.messages.ends
        largest = np.zeros(ends.shape[1])
        flow = np.arange(len(largest))
        for load, seconds in self._parts(flow, *home[ends]):
            largest = np.maximum(largest, np.where(seconds > 0, values[load], 0.0))
        found = np.zeros(len(home))
        for end in ends:
            np.maximum.at(found, end, largest)
        return found

    def added(self, home: IntArray, units: IntArray, new: IntArray) -> Added:
        """What changes add, in each of which some units go to other domains.

        Parameters
        ----------
        home : ndarray, shape (U,)
        units, new : ndarray, shape (K, M)
            Who goes where; -1 where fewer do.
        """
        change, flow = self.touched(units)
        ends = self.messages.ends[:, flow]
        before = home[ends]
        after = before.copy()
        for who, to in zip(units.T, new.T, strict=True):
            after = np.where(ends == who[change], to[change], after)
        row = change * len(self.kind)
        keys, added = [], []
        parts = zip(self._parts(flow, *before), self._parts(flow, *after), strict=True)
        for (old, less), (now, more) in parts:
            differs = ((old != now) & (less > 0)) | (less != more)
            # Flow by flow: what it no longer adds, then what it adds.
            keys.append(np.stack((row + old, row + now), axis=1)[differs].ravel())
            added.append(np.stack((-less, more), axis=1)[differs].ravel())
        return _summed(np.concatenate(keys), np.concatenate(added), len(self.kind))

    def touched(self, units: IntArray) -> tuple[IntArray, IntArray]:
        """Changes, and a flow that each touches; shape (entries,), changes in order.

        Parameters
        ----------
        units : ndarray, shape (K, M)
            Who moves in each change; -1 where fewer do.
        """
        movers = units.ravel()
        count = self.degree[movers]
        ends = np.cumsum(count)
        place = np.arange(int(count.sum())) - np.repeat(ends - count, count)
        flow = self.flows[np.repeat(self.first[movers], count) + place]
        change = np.repeat(np.arange(len(movers)) // units.shape[1], count)
        # A flow between two that move is counted with the one who sends.
        sender = self.messages.ends[0, flow]
        once = sender == np.repeat(movers, count)
        sends = np.zeros(len(flow), dtype=bool)
        for who in units.T:
            sends |= sender == who[change]
        once |= ~sends
        return change[once], flow[once]

    def _parts(
        self, flow: IntArray, source: IntArray, target: IntArray
    ) -> Iterator[tuple[IntArray, FloatArray]]:
        """Loads, and what flows between domains add to them, elementwise."""
        fabric, messages = self._fabric, self.messages
        tier = self._tiers(source, target)
        size, runs = messages.size_bytes[flow], messages.runs[flow]
        inside = tier <= fabric.scale_up_tier
        shift = np.where(inside, len(messages.kind_of_port), 0)
        port_s, waits = size / fabric.bandwidth[tier], runs * fabric.latency[tier]
        for end, port in zip((source, target), messages.ports, strict=True):
            yield port[flow] + shift, port_s / self._factor[end] + waits
        yield from self._on_uplinks(flow, tier, source, target)

    def _on_uplinks(
        self, flow: IntArray, tier: IntArray, source: IntArray, target: IntArray
    ) -> Iterator[tuple[IntArray, FloatArray]]:
        """The same of uplinks alone, for what passes so wide a tier."""
        messages = self.messages
        size = messages.size_bytes[flow]
        for uplinks in self._uplinks:
            crosses = np.where(tier >= uplinks.tier, size, 0.0)
            children = len(uplinks.pace)
            first = uplinks.first + 2 * children * messages.together[flow]
            for way, end in enumerate((source, target)):
                child = uplinks.child[end]
                load = first + way * children + child
                yield load, crosses * uplinks.pace[child]

    def _tiers(self, source: IntArray, target: IntArray) -> IntArray:
        """Innermost tier of which one domain holds both; elementwise."""
        tier = np.full(source.shape, self._tier)
        for domain in self._above:
            tier += domain[source] != domain[target]
        return tier


def _thin_uplinks(fabric: Fabric, base: int) -> Iterator[tuple[int, FloatArray]]:
    """Tiers, and seconds of a byte on each uplink, where ports may send more."""
    topology = fabric.topology
    for tier in fabric.scale_out_tiers:
        if tier > base:
            capacity = fabric.uplink_capacity[tier]
            sent = topology.gpus_of_domain(tier - 1) * fabric.bandwidth[tier]
            if (capacity < sent * (1 - ROUNDING)).any():
                yield tier, 1 / capacity


def _summed(keys: IntArray, seconds: FloatArray, loads: int) -> Added:
    """Entries of the same change and load as one."""
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    begins = np.diff(keys, prepend=-1) > 0
    change, load = np.divmod(keys[begins], loads)
    # In order: other sums of the same seconds would round in another way.
    total = np.bincount(np.cumsum(begins) - 1, seconds[order], len(load))
    return Added(change, load, total.astype(np.float64))


def _whole(values: npt.ArrayLike) -> IntArray:
    """A copy, row by row."""
    return np.array(values, dtype=np.int64, order="C")


def _real(values: npt.ArrayLike) -> FloatArray:
    """A copy, row by row."""
    return np.array(values, dtype=np.float64, order="C")
