"""The machine link by link: what a flow crosses, and how busy that is."""

from collections import Counter
from itertools import takewhile


class Machine:
    """Rates, latencies and shared links of a machine.

    Where it is ``free`` every scale-out link is infinitely fast. A link is a tier, the
    child domain of that tier and "up" or "down", or its number and "wire".
    """

    def __init__(self, topology, *, free):
        self.tiers = topology.tiers
        self.free = free
        self.nvlink_tiers = sum(1 for _ in takewhile(lambda t: t.scale_up, self.tiers))
        self.rail = topology.index_of_gpu.tolist()  # index of each GPU on its node
        counts = enumerate(topology.gpus_of_node.tolist())
        nodes = [node for node, gpus in counts for _ in range(gpus)]
        rows = topology.domain_of_node.T.tolist()
        self.domains = [rows[node] for node in nodes]  # of each GPU, at each tier
        self.factor = [float(topology.bandwidth_factor[node]) for node in nodes]
        speed = topology.compute_factor
        self.speed = [1.0 if speed is None else float(speed[node]) for node in nodes]
        gpus = range(len(nodes))
        self.gpus_of_child = Counter(
            (t, self.child(t, gpu)) for t in range(len(self.tiers)) for gpu in gpus
        )
        self.nics_of_child = self.gpus_of_child.copy()  # of GPUs that are there
        largest = max(Counter(map(self.island, gpus)).values())
        for t, built in enumerate(topology.built or ()):
            for domain, gpus in enumerate(built.tolist()):
                self.gpus_of_child[t + 1, domain] = gpus
            if t + 1 == self.nvlink_tiers:
                largest = int(built.max())
        self.in_racks = largest > 8
        # (tier, from child, to child) -> number; then bytes a second, and latency
        self.wires = {}
        self.wire_facts = []
        self._shared = {}  # known so far
        if not free:
            self._lay_wires(topology)

    def _lay_wires(self, topology):
        names = [tier.name for tier in topology.tiers]
        for link in topology.links:
            t = names.index(link.tier)
            one, other = (topology.domain_names[t].index(n) for n in link.between)
            for ends in ((one, other), (other, one)):
                self.wires[t + 1, ends[0], ends[1]] = len(self.wire_facts)
                rate = link.bandwidth * self.tiers[t + 1].efficiency
                self.wire_facts.append((rate, link.latency))

    def child(self, tier, gpu):
        """The domain just below ``tier`` that holds a GPU; at the node, the GPU."""
        return gpu if tier == 0 else self.domains[gpu][tier - 1]

    def island(self, gpu):
        """The NVLink domain of a GPU, or the GPU itself."""
        return self.child(self.nvlink_tiers, gpu)

    def tier(self, one, other):
        """Lowest tier whose domain holds both GPUs."""
        for t in range(len(self.tiers)):
            if self.domains[one][t] == self.domains[other][t]:
                return t
        raise ValueError("the last tier holds all GPUs")

    def rate(self, tier):
        """Bytes a second that one GPU reaches at a tier."""
        if self.free and tier >= self.nvlink_tiers:
            return float("inf")
        return self.tiers[tier].bandwidth * self.tiers[tier].efficiency

    def latency(self, tier):
        """Seconds of one hop of a tier."""
        is_free = self.free and tier >= self.nvlink_tiers
        return 0.0 if is_free else self.tiers[tier].latency

    def wire(self, one, other):
        """The link that a hop takes at the tier of its GPUs, if it has a name."""
        t = self.tier(one, other)
        return self.wires.get((t, self.child(t, one), self.child(t, other)))

    def wire_latency(self, one, other):
        """Seconds of a hop between two GPUs on the same rail."""
        wire = self.wire(one, other)
        if wire is None:
            return self.latency(self.tier(one, other))
        return self.wire_facts[wire][1]

    def hop_latency(self, one, other):
        """Seconds of a hop between two GPUs; another rail is reached over NVLink."""
        is_railed = self.rail[one] == self.rail[other]
        detour = 0.0 if is_railed else self.detour(self.tier(one, other))
        return self.wire_latency(one, other) + detour

    def detour(self, tier):
        """Seconds that a hop to another rail of a tier takes besides."""
        return self.latency(0) if self.tiers[tier].rails and not self.free else 0.0

    def capacity(self, link):
        """Bytes a second that a link carries, or a child's uplink into a tier."""
        tier, child, way = link
        if way == "wire":
            return self.wire_facts[child][0]
        gpus = self.gpus_of_child[tier, child]
        return gpus * self.rate(tier) / self.tiers[tier].oversubscription

    def links(self, one, other):
        """Shared links on the way from one GPU to another."""
        found = []
        for t in range(self.nvlink_tiers, self.tier(one, other) + 1):
            found.append((t, self.child(t, one), "up"))
            found.append((t, self.child(t, other), "down"))
        wire = self.wire(one, other)
        if wire is not None:
            found.append((self.tier(one, other), wire, "wire"))
        return found

    def shared(self, one, other):
        """Those of them that carry less than all NICs below them."""
        if (one, other) not in self._shared:
            links = self.links(one, other)
            self._shared[one, other] = [link for link in links if self._is_thin(link)]
        return self._shared[one, other]

    def _is_thin(self, link):
        tier, child, way = link
        fastest = max(self.rate(t) for t in range(tier, len(self.tiers)))
        nics = self.nics_of_child.get((tier, child), 0) * fastest
        return way == "wire" or self.capacity(link) < nics * (1 - 1e-12)

    def busy(self, flows):
        """Seconds that each link needs for all flows."""
        bytes_on = Counter()
        for one, other, size in flows:
            for link in self.links(one, other):
                bytes_on[link] += size
        return {link: size / self.capacity(link) for link, size in bytes_on.items()}

    def fair_paces(self, hops, nics, alone):
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

    def _flows(self, hops, each):
        """Flows on every link when a hop of a group counts as many as ``each`` says."""
        flows = Counter()
        for group, many in zip(hops, each, strict=True):
            for link in (link for hop in group for link in self.shared(*hop)):
                flows[link] += many
        return flows
