"""The machine link by link: what a flow crosses, and how busy that is."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from placer.topology.model import Topology

# Tier, child domain of that tier and "up" or "down", or number of a link and "wire".
Link = tuple[int, int, str]
Flow = tuple[int, int, float]  # from GPU, to GPU, bytes


class Machine:
    """Rates, latencies and shared uplinks of a machine.

    Parameters
    ----------
    topology : Topology
    free : bool
        Every scale-out link is infinitely fast.
    """

    def __init__(self, topology: Topology, *, free: bool) -> None:
        self.tiers = topology.tiers
        self.free = free
        self.nvlink_tiers = 0
        while self.nvlink_tiers < len(self.tiers) and (
            self.tiers[self.nvlink_tiers].scale_up
        ):
            self.nvlink_tiers += 1
        self.domains: list[list[int]] = []  # of each GPU, at each tier
        self.factor: list[float] = []
        self.speed: list[float] = []
        self.rail = topology.index_of_gpu.tolist()  # index of each GPU on its node
        for node, gpus in enumerate(topology.gpus_of_node.tolist()):
            for _ in range(gpus):
                row = [
                    int(topology.domain_of_node[t][node])
                    for t in range(len(self.tiers))
                ]
                self.domains.append(row)
                self.factor.append(float(topology.bandwidth_factor[node]))
                speed = topology.compute_factor
                self.speed.append(1.0 if speed is None else float(speed[node]))
        self.gpus_of_child: dict[tuple[int, int], int] = {}
        for gpu in range(len(self.domains)):
            for t in range(len(self.tiers)):
                child = t, self.child(t, gpu)
                self.gpus_of_child[child] = self.gpus_of_child.get(child, 0) + 1
        self.nics_of_child = dict(self.gpus_of_child)  # of GPUs that are there
        islands = [self.island(gpu) for gpu in range(len(self.domains))]
        largest = max(islands.count(island) for island in set(islands))
        for t, built in enumerate(topology.built or ()):
            for domain, gpus in enumerate(built.tolist()):
                self.gpus_of_child[t + 1, domain] = gpus
            if t + 1 == self.nvlink_tiers:
                largest = int(built.max())
        self.in_racks = largest > 8
        # (tier, from child, to child) -> number; then bytes a second, and latency
        self.wires: dict[tuple[int, int, int], int] = {}
        self.wire_facts: list[tuple[float, float]] = []
        if not free:
            self._lay_wires(topology)

    def _lay_wires(self, topology: Topology) -> None:
        names = [tier.name for tier in topology.tiers]
        for link in topology.links:
            t = names.index(link.tier)
            one, other = (topology.domain_names[t].index(n) for n in link.between)
            for ends in ((one, other), (other, one)):
                self.wires[t + 1, ends[0], ends[1]] = len(self.wire_facts)
                rate = link.bandwidth * self.tiers[t + 1].efficiency
                self.wire_facts.append((rate, link.latency))

    def child(self, tier: int, gpu: int) -> int:
        """The domain just below ``tier`` that holds a GPU; at the node, the GPU."""
        return gpu if tier == 0 else self.domains[gpu][tier - 1]

    def island(self, gpu: int) -> int:
        """The NVLink domain of a GPU, or the GPU itself."""
        return self.child(self.nvlink_tiers, gpu)

    def tier(self, one: int, other: int) -> int:
        """Lowest tier whose domain holds both GPUs."""
        for t in range(len(self.tiers)):
            if self.domains[one][t] == self.domains[other][t]:
                return t
        raise ValueError("the last tier holds all GPUs")

    def is_free(self, tier: int) -> bool:
        """Whether hops of a tier cost nothing."""
        return self.free and tier >= self.nvlink_tiers

    def rate(self, tier: int) -> float:
        """Bytes a second that one GPU reaches at a tier."""
        if self.is_free(tier):
            return float("inf")
        return self.tiers[tier].bandwidth * self.tiers[tier].efficiency

    def latency(self, tier: int) -> float:
        """Seconds of one hop of a tier."""
        return 0.0 if self.is_free(tier) else self.tiers[tier].latency

    def wire(self, one: int, other: int) -> int | None:
        """The link that a hop takes at the tier of its GPUs, if it has a name."""
        t = self.tier(one, other)
        return self.wires.get((t, self.child(t, one), self.child(t, other)))

    def wire_latency(self, one: int, other: int) -> float:
        """Seconds of a hop between two GPUs on the same rail."""
        wire = self.wire(one, other)
        if wire is None:
            return self.latency(self.tier(one, other))
        return self.wire_facts[wire][1]

    def hop_latency(self, one: int, other: int) -> float:
        """Seconds of a hop between two GPUs; another rail is reached over NVLink."""
        t = self.tier(one, other)
        seconds = self.wire_latency(one, other)
        if self.rail[one] != self.rail[other]:
            seconds += self.detour(t)
        return seconds

    def detour(self, tier: int) -> float:
        """Seconds that a hop to another rail of a tier takes besides."""
        return self.latency(0) if self.tiers[tier].rails and not self.free else 0.0

    def capacity(self, link: Link) -> float:
        """Bytes a second that a link carries, or a child's uplink into a tier."""
        tier, child, way = link
        if way == "wire":
            return self.wire_facts[child][0]
        gpus = self.gpus_of_child[tier, child]
        return gpus * self.rate(tier) / self.tiers[tier].oversubscription

    def links(self, one: int, other: int) -> list[Link]:
        """Shared links on the way from one GPU to another."""
        found: list[Link] = []
        for t in range(self.nvlink_tiers, self.tier(one, other) + 1):
            found.append((t, self.child(t, one), "up"))
            found.append((t, self.child(t, other), "down"))
        wire = self.wire(one, other)
        if wire is not None:
            found.append((self.tier(one, other), wire, "wire"))
        return found

    def shared(self, one: int, other: int) -> list[Link]:
        """Those of them that carry less than all NICs below them."""
        found = []
        for link in self.links(one, other):
            tier, child, way = link
            fastest = max(self.rate(t) for t in range(tier, len(self.tiers)))
            nics = self.nics_of_child.get((tier, child), 0) * fastest
            if way == "wire" or self.capacity(link) < nics * (1 - 1e-12):
                found.append(link)
        return found

    def busy(self, flows: Iterable[Flow]) -> dict[Link, float]:
        """Seconds that each link needs for all flows."""
        bytes_on: dict[Link, float] = {}
        for one, other, size in flows:
            for link in self.links(one, other):
                bytes_on[link] = bytes_on.get(link, 0.0) + size
        return {link: size / self.capacity(link) for link, size in bytes_on.items()}

    def fair_paces(
        self, hops: list[list[tuple[int, int]]], nics: list[int], alone: list[float]
    ) -> list[float]:
        """Seconds that a byte on every hop of each group takes, links shared fairly.

        Every hop of a group is as many flows as the group has NICs; ``alone`` is what a
        byte takes on one of them.
        """
        counts = sorted(set(nics))
        flows = [
            self._flows(hops, [own if own <= count else 0 for own in nics])
            for count in counts
        ]
        following = [*(1 / count for count in counts[1:]), 0.0]
        found = []
        for group, own, limit in zip(hops, nics, alone, strict=True):
            as_far = 0.0
            by_link = {link: 0.0 for hop in group for link in self.shared(*hop)}
            for count, after, left in zip(counts, following, flows, strict=True):
                if count < own:
                    continue
                paces = {
                    link: max(limit, left[link] / self.capacity(link))
                    for link in by_link
                }
                for link, pace in paces.items():
                    by_link[link] += (1 / count - after) * pace
                as_far += (1 / count - after) * max([limit, *paces.values()])
            apart = max([limit / own, *by_link.values()])
            found.append((as_far + apart) / 2)
        return found

    def _flows(
        self, hops: list[list[tuple[int, int]]], each: list[int]
    ) -> dict[Link, int]:
        """Flows on every link when a hop of a group counts as many as ``each`` says."""
        flows: dict[Link, int] = {}
        for group, many in zip(hops, each, strict=True):
            for hop in group:
                for link in self.shared(*hop):
                    flows[link] = flows.get(link, 0) + many
        return flows
