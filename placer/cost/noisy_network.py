"""The network of one step in which every link is a little slower or faster.

What an operation takes is the slowest of its parts: NVLink, the NIC of each of its
members, the uplinks on its way. The parts are found once; a sample then only scales
them, which takes microseconds where placing the rings anew takes milliseconds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from placer.arrays import BoolArray, FloatArray, IntArray
from placer.cost.communicators import CollectiveCost
from placer.cost.exchange import ExchangeCost, next_in_row, slowest_of_row
from placer.cost.network import PlacedNetwork, hop_by_hop

if TYPE_CHECKING:
    from placer.cost.fabric import Fabric

Cost = TypeVar("Cost", CollectiveCost, ExchangeCost)

# What an operation is asked with: a network, a size, an algorithm.
_Ask = Callable[[PlacedNetwork, float, str], Cost]

# So much more or less oversubscribed, an uplink is always or never the slowest part.
_QUEUED = 1e9


@dataclass(frozen=True, eq=False)
class Links:
    """The links that vary: NICs of ranks, then uplinks, then links by name.

    Attributes
    ----------
    fabric : Fabric
    num_ranks : int
        R; the NIC of rank ``r`` is link ``r``.
    """

    fabric: Fabric
    num_ranks: int

    @cached_property
    def first_uplink(self) -> dict[int, int]:
        """Index of the first uplink into each scale-out tier."""
        first, found = self.num_ranks, {}
        for t in self.fabric.scale_out_tiers:
            found[t] = first
            first += len(self.fabric.uplink_capacity[t])
        return found

    @cached_property
    def first_link(self) -> dict[int, int]:
        """Index of the first link of every tier that has some."""
        uplinks = self.fabric.uplink_capacity
        first = self.num_ranks
        first += sum(len(uplinks[t]) for t in self.fabric.scale_out_tiers)
        found = {}
        for t, links in self.fabric.links.items():
            found[t] = first
            first += len(links.capacity)
        return found

    def spread(self, by_tier: FloatArray) -> FloatArray:
        """Deviation of every link, from that of every tier; shape (L,).

        NICs are the links of the innermost scale-out tier. Where that tier is not
        oversubscribed, a child's uplink is nothing but its NICs and has no noise of its
        own.
        """
        tiers = self.fabric.scale_out_tiers
        parts = [np.full(self.num_ranks, by_tier[tiers[0]] if tiers else 0.0)]
        for t in tiers:
            own = t > tiers[0] or self.fabric.topology.tiers[t].oversubscription > 1
            count = len(self.fabric.uplink_capacity[t])
            parts.append(np.full(count, by_tier[t] if own else 0.0))
        for t, links in self.fabric.links.items():
            parts.append(np.full(len(links.capacity), by_tier[t]))
        return np.concatenate(parts)


@dataclass(frozen=True, eq=False)
class _Parts:
    """The parts of the operations of one call: g of them, E parts on links.

    Attributes
    ----------
    floor : ndarray, shape (g,), s
        What no link changes.
    first : ndarray
        Where the parts of each operation begin; operations without any are left out.
    operation : ndarray
        The operations that ``first`` speaks of.
    link : ndarray, shape (E,)
    seconds : ndarray, shape (E,), s
        Of each part at nominal speed.
    """

    floor: FloatArray
    first: IntArray
    operation: IntArray
    link: IntArray
    seconds: FloatArray

    def slowest(self, slowness: FloatArray) -> FloatArray:
        """Seconds of the slowest part of each operation; shape (g,)."""
        found = self.floor.copy()
        if len(self.first):
            on_links = np.maximum.reduceat(
                self.seconds * slowness[self.link], self.first
            )
            found[self.operation] = np.maximum(found[self.operation], on_links)
        return found


class NoisyNetwork:
    """A network that answers the same questions for one sample after the other.

    The questions must come in the same order for every sample, as those of
    `StepModel.step_on` do. A collective keeps the algorithm it has without noise.

    Parameters
    ----------
    placed : PlacedNetwork
    """

    def __init__(self, placed: PlacedNetwork) -> None:
        self._placed = placed
        fabric = placed.fabric
        self.links = Links(fabric, len(placed.gpu_of_rank))
        self._free = PlacedNetwork(fabric.with_free_scale_out(), placed.gpu_of_rank)
        self._unqueued = _with_queues(placed, 1 / _QUEUED)
        self._queued = _with_queues(placed, _QUEUED)
        self._known: list[tuple[Any, _Parts, FloatArray]] = []
        self._next = 0
        self._slowness: FloatArray = np.ones(0)

    def at(self, slowness: FloatArray) -> NoisyNetwork:
        """The network when link ``l`` takes ``slowness[l]`` times as long."""
        self._slowness, self._next = slowness, 0
        return self

    def gather(
        self, members: IntArray, size_bytes: float, algorithm: str = "auto"
    ) -> CollectiveCost:
        """One reduce-scatter or all-gather in every row of ``members``."""

        def ask(network: PlacedNetwork, size: float, name: str) -> CollectiveCost:
            return network.gather(members, size, name)

        return self._answer(ask, members, size_bytes, algorithm)

    def all_reduce(
        self, members: IntArray, size_bytes: float, algorithm: str = "auto"
    ) -> CollectiveCost:
        """One all-reduce in every row of ``members``."""

        def ask(network: PlacedNetwork, size: float, name: str) -> CollectiveCost:
            return network.all_reduce(members, size, name)

        return self._answer(ask, members, size_bytes, algorithm)

    def all_to_all(
        self, members: IntArray, size_bytes: float, copies: int = 0
    ) -> ExchangeCost:
        """One all-to-all in every row of ``members``."""

        def ask(network: PlacedNetwork, size: float, _name: str) -> ExchangeCost:
            return network.all_to_all(members, size, copies)

        return self._answer(ask, members, size_bytes)

    def stays_inside(self, members: IntArray) -> BoolArray:
        """Whether each row of ``members`` lies in one scale-up domain."""
        return self._placed.stays_inside(members)

    def send(
        self, senders: IntArray, receivers: IntArray, size_bytes: float
    ) -> ExchangeCost:
        """A message from each sender to its receiver."""

        def ask(network: PlacedNetwork, size: float, _name: str) -> ExchangeCost:
            return network.send(senders, receivers, size)

        pairs = np.stack((senders.ravel(), receivers.ravel()), axis=1)
        return self._answer(ask, pairs, size_bytes, one_way=True)

    def relay(self, members: IntArray, size_bytes: float) -> list[ExchangeCost]:
        """Messages along each row of ``members``, the cost of each hop in turn."""
        return hop_by_hop(self, members, size_bytes)

    def pass_on(self, members: IntArray, size_bytes: float) -> ExchangeCost:
        """A message from each member of a row to the next one, around it."""
        return slowest_of_row(self.send(members, next_in_row(members), size_bytes))

    def flows(
        self, senders: IntArray, receivers: IntArray, size_bytes: FloatArray
    ) -> ExchangeCost:
        """Messages of any sizes between different ranks, all at once."""

        def ask(network: PlacedNetwork, size: float, _name: str) -> ExchangeCost:
            return network.flows(senders, receivers, size_bytes * size)

        pairs = np.stack((senders, receivers), axis=1)
        return self._answer(ask, pairs, 1.0, one_way=True)

    def speed(self, members: IntArray) -> FloatArray:
        """Share of the usual speed of the slowest rank of each row; shape (g,)."""
        return self._placed.speed(members)

    def _answer(
        self,
        ask: _Ask[Cost],
        members: IntArray,
        size_bytes: float,
        algorithm: str = "",
        one_way: bool = False,
    ) -> Cost:
        """What ``ask`` costs at the speeds of now."""
        if self._next == len(self._known):
            cost = ask(self._placed, size_bytes, algorithm)
            parts = self._find_parts(ask, cost, members, size_bytes, one_way)
            nominal = parts.slowest(np.ones(self._slowness.shape))
            self._known.append((cost, parts, nominal))
        known: Cost
        known, parts, nominal = self._known[self._next]
        self._next += 1
        if not len(parts.first):
            return known
        change = (parts.slowest(self._slowness) - nominal).reshape(known.seconds.shape)
        changed: dict[str, Any] = {"seconds": known.seconds + change}
        if isinstance(known, CollectiveCost):
            changed["bandwidth_seconds"] = known.bandwidth_seconds + change
        return replace(known, **changed)

    def _find_parts(
        self,
        ask: _Ask[Cost],
        cost: Cost,
        members: IntArray,
        size_bytes: float,
        one_way: bool,
    ) -> _Parts:
        """The parts of every operation; latencies belong to none of them."""
        name = cost.algorithm if isinstance(cost, CollectiveCost) else ""
        floor = _transfer(ask, self._free, size_bytes, name)
        nic = _transfer(ask, self._unqueued, size_bytes, name)
        queued: FloatArray = _transfer(ask, self._queued, size_bytes, name)
        fabric = self._placed.fabric
        gpus = self._placed.gpu_of_rank[members]
        common = fabric.common_tier(gpus)
        # NICs first: every member's may be the slowest, as NCCL splits evenly.
        rows = np.flatnonzero((common > fabric.scale_up_tier) & (nic > floor))
        factor = fabric.factor_of_gpu[gpus[rows]]
        own = nic[rows, None] * factor.min(axis=1, keepdims=True) / factor
        operation = np.repeat(rows, members.shape[1])
        entries = [_Entries(operation, members[rows].ravel(), own.ravel())]
        for t in fabric.scale_out_tiers:
            crosses = np.flatnonzero(common >= t)
            child = fabric.child_domain_of_gpu(t)[gpus[crosses]]
            up = cost.load.up[t] / fabric.uplink_capacity[t]
            down = cost.load.down[t] / fabric.uplink_capacity[t]
            busy = np.maximum(up, down)[child]
            if one_way:
                busy = np.stack((up[child[:, 0]], down[child[:, 1]]), axis=1)
            operation = np.repeat(crosses, members.shape[1])
            link = self.links.first_uplink[t] + child.ravel()
            entries.append(_Entries(operation, link, busy.ravel()))
        for t, links in fabric.links.items():
            ends = gpus[:, :1] if one_way else gpus
            found = fabric.link_of(t, ends[:, :, None], gpus[:, None, :])
            operation, *_ = np.nonzero(found >= 0)
            link = found[found >= 0]
            busy = cost.load.between[t][link] / links.capacity[link]
            entries.append(_Entries(operation, self.links.first_link[t] + link, busy))
        nics, *uplinks = entries
        return _parts(floor, [nics, *_as_slow_as(queued / _QUEUED, uplinks)])


def _with_queues(placed: PlacedNetwork, factor: float) -> PlacedNetwork:
    """The network with uplinks and links so many times as oversubscribed."""
    topology = placed.fabric.topology
    tiers = tuple(
        replace(tier, oversubscription=tier.oversubscription * factor)
        for tier in topology.tiers
    )
    links = {
        t: of_tier.times_as_fast(1 / factor)
        for t, of_tier in placed.fabric.links.items()
    }
    fabric = replace(
        placed.fabric, topology=replace(topology, tiers=tiers), links=links
    )
    return PlacedNetwork(fabric, placed.gpu_of_rank)


def _as_slow_as(seconds: FloatArray, uplinks: list[_Entries]) -> list[_Entries]:
    """The uplinks' parts, scaled so that the slowest of an operation is ``seconds``.

    An algorithm may not reach the full rate of a link.
    """
    slowest = np.zeros(len(seconds))
    for entry in uplinks:
        np.maximum.at(slowest, entry.operation, entry.seconds)
    scale = np.divide(seconds, slowest, out=np.zeros_like(slowest), where=slowest > 0)
    return [
        replace(entry, seconds=entry.seconds * scale[entry.operation])
        for entry in uplinks
    ]


@dataclass(frozen=True, eq=False)
class _Entries:
    operation: IntArray
    link: IntArray
    seconds: FloatArray


def _transfer(
    ask: _Ask[Cost], network: PlacedNetwork, size_bytes: float, name: str
) -> FloatArray:
    """Seconds of each operation on a network, latency apart; shape (g,)."""
    cost = ask(network, size_bytes, name)
    if isinstance(cost, CollectiveCost):
        return cost.bandwidth_seconds
    seconds = cost.seconds - ask(network, 0.0, name).seconds
    return np.maximum(seconds.ravel(), 0.0)


def _parts(floor: FloatArray, entries: list[_Entries]) -> _Parts:
    """Parts by operation; the same link twice in one operation counts once."""
    operation = np.concatenate([entry.operation for entry in entries])
    link = np.concatenate([entry.link for entry in entries])
    seconds = np.concatenate([entry.seconds for entry in entries])
    order = np.lexsort((-seconds, link, operation))
    operation, link, seconds = operation[order], link[order], seconds[order]
    is_new = np.ones(len(order), dtype=bool)
    is_new[1:] = (np.diff(operation) != 0) | (np.diff(link) != 0)
    operation, link, seconds = operation[is_new], link[is_new], seconds[is_new]
    found, first = np.unique(operation, return_index=True)
    return _Parts(floor, first, found, link, seconds)
