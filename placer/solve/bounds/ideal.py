"""The best network imaginable: what each operation takes at the least.

Everything here holds for *every* placement that obeys the given sets: a `Colocation`
says which ranks share a domain of each tier (because a requirement says so, or because
the case at hand supposes it). Rates are the best of the tiers an operation must use,
latencies the lowest.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from placer.base.arrays import BoolArray, FloatArray, IntArray
from placer.cost.collectives import (
    NVLS_HEADS,
    Route,
    all_reduces,
    runs_all_reduce,
    share_sent,
)
from placer.cost.exchange import KERNEL_SHARE
from placer.cost.fabric import Fabric
from placer.cost.links import Cost
from placer.cost.network import Network
from placer.solve.bounds.limits import Limit, fewest_domains
from placer.solve.bounds.messages import (
    exchange_latency,
    least_flow_seconds,
    ring_latency,
)
from placer.solve.problem.colocation import are_together
from placer.solve.problem.launch import run_tiers
from placer.solve.tree.domains import whole_sets
from placer.topology.machine import Machine

Facts = tuple[IntArray, IntArray, IntArray, list[IntArray], bool]


@dataclass(frozen=True, eq=False)
class IdealNetwork(Network):
    """Lower bounds on the cost of every operation."""

    fabric: Fabric
    # (T, R): set of each rank at each tier; a set lies in one domain of its tier.
    label: IntArray
    capacity_of_node: IntArray  # (N,): most ranks that each node may hold
    # in_runs and by_nodes: whether each node holds a run of ranks: of any length; of
    # any or all of one.
    in_runs: bool = False
    by_nodes: bool = False
    limits: tuple[Limit, ...] = ()  # on some groups; all others are free
    # (R,): data-parallel replica of each rank, where their number in a domain is
    # limited.
    replica: IntArray | None = None
    # Length T: most replicas that a domain of each tier may touch.
    most_replicas: tuple[float, ...] = ()
    transfers_s: float = 0.0  # s: what transfers between ranks are known to take
    # Most members of any row of groups in domains of such rooms, others being near.
    crowd: Callable[[IntArray, IntArray], IntArray] | None = None
    # By the identity of their array, which is kept alive: what `fewest_domains` says,
    # whether all members of a group may have a domain of their own, or must share one.
    _known: dict[int, Facts] = field(default_factory=dict, init=False, repr=False)

    def with_limits(self, *limits: Limit) -> IdealNetwork:
        """The network on which some groups are limited."""
        limited = replace(self, limits=limits)
        limited._known.update(self._known)
        return limited

    def gather(self, members: IntArray, size_bytes: float) -> Cost:
        """Least cost of a reduce-scatter or all-gather of each row, all rows alike."""
        return self._cost(len(members), self._ring_pass(members, size_bytes))

    def all_reduce(
        self, members: IntArray, size_bytes: float, algorithm: str = "auto"
    ) -> Cost:
        """Least cost of an all-reduce of each row, all rows alike."""
        forms, every, few = all_reduces(algorithm), self._routes(members), 1
        names = set(forms)
        if algorithm == "auto" and self._takes_switch(members):
            every, names = every.rows(every.domains == 1), {"nvls"}
        found, ways = [], [(name, every) for name in names - {"ring", "nvls"}]
        if "ring" in names:
            transfer, latency = self._ring_pass(members, size_bytes)
            found.append((2 * transfer, 2 * latency))
        if "nvls" in names:
            if algorithm == "auto":
                every, few = every.rows(runs_all_reduce("nvls", every)), 3
            # Over domains neither fewest nor most members have the least chunks.
            heads = min(int(every.fewest.max(initial=0)), NVLS_HEADS)
            for most in range(few, max(few, heads) + 1):
                fewest = np.minimum(most, every.fewest)
                fewest = np.where(every.domains == 1, every.fewest, fewest)
                ways.append(("nvls", every._replace(fewest=fewest)))
        for name, route in (way for way in ways if len(way[1].domains)):
            seconds = forms[name](route, size_bytes)
            best = int(seconds.total.argmin())
            found.append((seconds.transfer[best].item(), seconds.latency[best].item()))
        return self._cost(len(members), min(found, key=sum))

    def _cost(self, num_groups: int, least: tuple[float, float]) -> Cost:
        """The cost of groups that all take the same transfer time and latency."""
        return Cost(np.full(num_groups, sum(least)))

    def _routes(self, members: IntArray) -> Route:
        """The best way imaginable over every number of domains, an entry a number."""
        num_members = members.shape[1]
        spread = self._spread(members)
        first_outer = self.fabric.scale_up_tier + 1
        # Where nothing fits the count may exceed the members.
        limit = self._limit_of(members)
        fewest = min(max(int(spread[first_outer]), 1 + limit.leaves), num_members)
        domains = np.arange(fewest, num_members + 1)
        if first_outer == self.fabric.num_tiers:
            domains = domains[:1]
        # Some hop leaves the widest domain that cannot hold the group.
        used = max(int(np.flatnonzero(spread > 1).max(initial=0)), first_outer)
        bandwidth, latency = self.fabric.bandwidth, self.fabric.latency
        together = (domains < num_members).astype(np.float64)
        apart = (domains > 1).astype(np.float64)
        nics = np.minimum(self._most_nics(members, domains), limit.nics)
        nics = np.where(domains == 1, num_members, nics)
        on_nics = _least(1 / bandwidth[used:]) / nics
        return Route(
            num_members,
            domains,
            nics,
            self.fabric.has_rack_switch,
            together * _least(1 / bandwidth[:first_outer]),
            apart * on_nics,
            together * _least(latency[:first_outer]),
            apart * _least(latency[first_outer:]),
        )

    def _ring_pass(self, members: IntArray, size_bytes: float) -> tuple[float, float]:
        """Least transfer time and latency of a ring's pass over each row."""
        num_members = members.shape[1]
        first_outer = self.fabric.scale_up_tier + 1
        spread = self._spread(members)
        edge_bytes = (num_members - 1) / num_members * size_bytes
        limit = self._limit_of(members)
        domains = max(int(spread[first_outer]), 1 + limit.leaves)
        # Some hop leaves the widest domain that cannot hold the group.
        used = int(np.flatnonzero(spread > 1).max(initial=0))
        if domains > 1:
            nic = float(self.fabric.bandwidth[max(used, first_outer) :].max())
            most = int(self._most_nics(members, np.array([domains]))[0])
            nics = nic * max(min(most, limit.nics), 1)
            # Several NICs in a domain have hops between their members as well.
            inner = float(self.fabric.bandwidth[:first_outer].max(initial=0.0))
            rate = max(nic, min(nics, inner))
        elif self._are_tied(members):
            # A case that no placement meets may seem to need more than a domain.
            used = min(used, first_outer - 1)
            rate = float(self.fabric.bandwidth[used:first_outer].max())
        else:
            rate = float(self.fabric.bandwidth.max())
        pace = max(1 / rate, limit.uplink_pace) if num_members > 1 else 0.0
        return edge_bytes * pace, ring_latency(self.fabric, num_members, spread)

    def all_to_all(self, members: IntArray, size_bytes: float, copies: int = 0) -> Cost:
        """Least cost of an all-to-all of each row, all rows alike."""
        num_groups, num_members = members.shape
        spread = self._spread(members)
        domains = int(spread[self.fabric.scale_up_tier + 1])
        # The smallest domain holds at most an even share: its members send the most.
        inside = num_members // domains
        share = size_bytes / num_members
        away = share * (num_members - min(inside, num_members // 2))
        most = [max(int(of.max()), 1) for of in self._facts(members)[3]]
        most[-1] = num_members
        alone = latency = exchange_latency(self.fabric.latency, np.array(most))
        if copies:
            # Over more domains a token crosses more often, in more messages.
            least = max(domains, 2)
            away *= share_sent(np.array(least), copies).item()
            latency = (least - 1) * float(self.fabric.latency.min())
            share *= share_sent(np.array(num_members), copies).item() / KERNEL_SHARE
        on_uplink = self._limit_of(members).exchange_s
        seconds = max(self.outside_s(away), on_uplink) + latency
        if inside == num_members and not on_uplink:
            # Together on NVLink, or split in two: NVLink and NICs work side by side.
            inner = slice(0, self.fabric.scale_up_tier + 1)
            each = (share / self.fabric.bandwidth + self.fabric.latency)[inner]
            within = np.array([*most[inner][:-1], num_members])
            together = exchange_latency(each, within) if len(each) else alone
            is_apart = not len(each) or not self._are_tied(members)
            seconds = min(seconds, together) if is_apart else together
        return Cost(np.full(num_groups, seconds))

    def send(self, senders: IntArray, receivers: IntArray, size_bytes: float) -> Cost:
        """Least cost of a message along each row, a chain or a closed ring of ranks.

        Where no two ranks of a row can share a domain, every message leaves it.
        """
        first, last = (ranks.reshape(len(ranks), -1) for ranks in (senders, receivers))
        closed = np.array_equal(first[:, 0], last[:, -1])
        members = first if closed else np.hstack((first, last[:, -1:]))
        all_apart = self._spread(members) == members.shape[1]
        apart = int(np.flatnonzero(all_apart).max(initial=0))
        seconds = np.full(senders.shape, self.fabric.least_message_s(apart, size_bytes))
        return Cost(seconds)

    def pass_on(self, members: IntArray, size_bytes: float) -> Cost:
        """Least cost where a message leaves every domain that cannot hold its row."""
        cost = super().pass_on(members, size_bytes)
        used = int(np.flatnonzero(self._spread(members) > 1).max(initial=0))
        least = self.fabric.least_message_s(used, size_bytes)
        return replace(cost, seconds=np.maximum(cost.seconds, least))

    def flows(
        self,
        senders: IntArray,
        receivers: IntArray,
        size_bytes: FloatArray,
        pair_share: float = 1.0,
    ) -> Cost:
        """Least cost of all messages of each rank, one after the other, either way."""
        seconds = least_flow_seconds(self, senders, receivers, size_bytes, pair_share)
        seconds = np.maximum(seconds, self.transfers_s)
        return Cost(seconds)

    def speed(self, members: IntArray) -> FloatArray:
        """No row of ranks works faster, each on the fastest GPUs by itself."""
        fastest = fastest_stages(self.fabric.topology, 1, members.shape[1])
        return np.full(len(members), fastest[-1])

    def _takes_switch(self, members: IntArray) -> bool:
        """Whether NCCL takes the rack's switch for each row, which no domain parts."""
        tier = self.fabric.scale_up_tier
        if members.shape[1] < 3 or tier < 0 or not self.fabric.has_rack_switch:
            return False
        may_be_whole = self._routes(members).domains[0] == 1  # not if the case parts it
        return bool(may_be_whole) and self._are_tied(members)

    def _limit_of(self, members: IntArray) -> Limit:
        """What limits these groups, if anything does."""
        known = (one for one in self.limits if np.array_equal(one.groups, members))
        return next(known, Limit(members, int(members.shape[1])))

    def outside_s(self, size_bytes: float) -> float:
        """Least seconds to send so much out of a scale-up domain, without latency."""
        bandwidth = self.fabric.bandwidth[self.fabric.scale_up_tier + 1 :]
        return float((size_bytes / bandwidth).min(initial=np.inf))

    def fewest_domains(self, members: IntArray, tier: int) -> int:
        """Fewest child domains of a tier that hold a row of ``members``."""
        return int(self._spread(members)[tier])

    def _spread(self, members: IntArray) -> IntArray:
        """Fewest domains that hold a row of ``members``."""
        return self._limit_of(members).spread(self._facts(members)[1])

    def _are_tied(self, members: IntArray) -> bool:
        """Whether the members of every row share a scale-up domain."""
        return self._facts(members)[4]

    def leaves_scale_up(self, members: IntArray) -> bool:
        """Whether no row of ``members`` fits a scale-up domain."""
        return bool(self._spread(members)[self.fabric.scale_up_tier + 1] > 1)

    def stays_inside(self, members: IntArray) -> BoolArray:
        """Whether each row of ``members`` may lie in one scale-up domain."""
        return np.full(len(members), not self.leaves_scale_up(members))

    def most_members(self, members: IntArray, tier: int) -> IntArray:
        """Most members that a row has in each domain of a tier."""
        return self._facts(members)[3][tier]

    def _most_nics(self, members: IntArray, domains: IntArray) -> IntArray:
        """Most members that a row has in each of so many scale-up domains.

        No more than an even share, and than the smallest of the largest domains holds.
        """
        room = self._facts(members)[2]
        smallest = room[np.minimum(domains, len(room)) - 1]
        most = np.minimum(members.shape[1] // domains, smallest)
        return np.asarray(np.maximum(most, 1))

    def _facts(self, members: IntArray) -> Facts:
        """What is known of ``members``, worked out once."""
        if id(members) not in self._known:
            scale_up = self.fabric.scale_up_tier
            tied = scale_up >= 0 and are_together(self.label[scale_up], members)
            self._known[id(members)] = members, *fewest_domains(self, members), tied
        return self._known[id(members)]

    @cached_property
    def capacities(self) -> list[IntArray]:
        """Most ranks of each domain, one array a tier."""
        topology = self.fabric.topology
        return whole_sets(topology, self.capacity_of_node, [1] * len(topology.tiers))

    @cached_property
    def smallest_sets(self) -> list[int]:
        """Ranks of the smallest set of each tier."""
        sizes = [np.bincount(row) for row in self.label]
        return [int(own[own > 0].min()) for own in sizes]

    @cached_property
    def run_tiers(self) -> set[int]:
        """Tiers whose domains hold one run each."""
        return run_tiers(self.fabric.topology)


def _least(values: FloatArray) -> float:
    """The smallest value; 0 where the machine has none of its kind."""
    return float(values.min()) if len(values) else 0.0


def fastest_stages(topology: Machine, stages: int, ranks: int) -> FloatArray:
    """Speeds that no placement exceeds, the fastest stage first; shape (stages,).

    ``ranks`` GPUs work on a stage; all stages must fit the machine.
    """
    if topology.compute_factor is None:
        return np.ones(stages)
    speed = np.repeat(topology.compute_factor, topology.gpus_of_node)
    return np.sort(speed)[::-1][ranks - 1 : stages * ranks : ranks]
