"""Efficiencies and latencies of a machine's tiers from tables of nccl-tests.

The efficiency of a tier is the median bus bandwidth of long messages in the line rate
of a ring: that of a GPU inside NVLink, of all NICs of a scale-up domain beyond. An
exchange of all with all sends ``(n - q) / (n - 1)`` of its bytes through the NIC, with
q GPUs of n in a domain. Where a switch reduces, or a tree is used, an all-reduce beats
any ring and tells nothing: such tables are left out, and said to be.

Latency is the slope of the time of small messages over the hops that the cost model
counts, where a test ran over several numbers of nodes. From one number of nodes it is a
bound: what starts a kernel is in the time too, and NCCL takes other algorithms.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import log2, sqrt
from statistics import fmean, median

import numpy as np

from placer.base.errors import Problem, refuse
from placer.logs.nccl_tests import Table
from placer.topology.model import Tier, Topology

LONG, SHORT = 256 * 2**20, 32 * 2**10
_EXCHANGES = ("alltoall",)
_SENDS = ("sendrecv",)


@dataclass(frozen=True)
class Reading:
    """What one table says of a tier."""

    table: Table
    nodes: int
    tier: int  # index of the lowest tier that holds so many nodes
    line: float  # B/s: bus bandwidth at which the links of the tier are full
    shares: tuple[float, ...]  # bus bandwidths of long messages, in the line rate
    start_s: float  # s: median time of short messages; 0 where there are none
    # inner and outer: hops of the cost model inside scale-up domains and between them.
    inner: float
    outer: float

    @property
    def share(self) -> float:
        """The median of the shares; 0 where no message is long."""
        return median(self.shares) if self.shares else 0.0

    @property
    def tells_rate(self) -> bool:
        """Whether no long message is faster than a ring can be."""
        return bool(self.shares) and max(self.shares) <= 1.0


@dataclass(frozen=True)
class TierFit:
    """What was fitted for one tier."""

    before: Tier
    after: Tier
    readings: tuple[Reading, ...]  # those that tell its efficiency
    latency_words: str = ""  # how the latency was found; empty when nothing tells it

    @property
    def error(self) -> float:
        """Root of the mean square of how far long messages are off, as a share."""
        shares = [share for one in self.readings for share in one.shares]
        if not shares:
            return 0.0
        return sqrt(fmean((s / self.after.efficiency - 1) ** 2 for s in shares))


@dataclass(frozen=True)
class HardwareFit:
    """A machine with what was measured, and how well that fits."""

    topology: Topology
    tiers: tuple[TierFit, ...]  # those that a table tells something of, innermost first
    readings: tuple[Reading, ...]


def fit_hardware(topology: Topology, tables: Sequence[Table]) -> HardwareFit:
    """The machine with efficiencies and latencies that the tables show."""
    refuse(problem for table in tables for problem in _problems(topology, table))
    readings = tuple(_reading(topology, table) for table in tables)
    tiers, fits = list(topology.tiers), []
    for index in sorted({reading.tier for reading in readings}):
        own = [reading for reading in readings if reading.tier == index]
        fit = _fit_tier(tiers, index, own)
        tiers[index] = fit.after
        fits.append(fit)
    words = [_source(fit) for fit in fits]
    found = replace(
        topology, tiers=tuple(tiers), sources=(*topology.sources, *filter(None, words))
    )
    return HardwareFit(found, tuple(fits), readings)


def _problems(topology: Topology, table: Table) -> Iterable[Problem]:
    if table.ranks < 2:
        message = "it does not tell how many GPUs ran it"
        hint = "keep the lines that list the ranks"
        yield Problem(message, table.source, hint=hint)
    elif table.ranks > topology.num_gpus:
        message = f"{table.ranks:,} GPUs, {topology.name} has {topology.num_gpus:,}"
        yield Problem(message, table.source, hint="name the machine that ran it: -t")


def _reading(topology: Topology, table: Table) -> Reading:
    gpus, ranks = int(topology.gpus_of_node.max()), table.ranks
    nodes = table.nodes or -(-ranks // gpus)
    tier = _tier_of(topology, nodes)
    size = _scale_up_size(topology, ranks, nodes)
    line = _line_rate(topology.tiers, tier, table.test, ranks, size)
    long = [row for row in table.rows if row.size_bytes >= LONG]
    short = [row.seconds for row in table.rows if row.size_bytes <= SHORT]
    inner, outer = _hops(table.test, ranks, size)
    return Reading(
        table,
        nodes,
        tier,
        line,
        tuple(row.bus_bandwidth / line for row in long),
        median(short) if short else 0.0,
        inner,
        outer,
    )


def _tier_of(topology: Topology, nodes: int) -> int:
    """The lowest tier with a domain of so many nodes, in which a test is run."""
    for index, row in enumerate(topology.domain_of_node):
        if np.bincount(row).max() >= nodes:
            return index
    return len(topology.tiers) - 1


def _scale_up_size(topology: Topology, ranks: int, nodes: int) -> int:
    """GPUs of the test in one scale-up domain."""
    each = -(-ranks // nodes)
    tier = topology.scale_up_tier
    if tier < 0:
        return 1
    held = int(np.bincount(topology.domain_of_node[tier]).max())
    return min(ranks, each * min(nodes, held))


def _line_rate(
    tiers: Sequence[Tier], index: int, test: str, ranks: int, size: int
) -> float:
    """Bus bandwidth of a test when the links of a tier are full, B/s."""
    tier = tiers[index]
    if tier.scale_up or size == ranks or test in _SENDS:
        return tier.bandwidth
    if test in _EXCHANGES:
        return tier.bandwidth * (ranks - 1) / (ranks - size)
    inside = max((t.bandwidth for t in tiers[:index] if t.scale_up), default=np.inf)
    return float(min(size * tier.bandwidth, inside))


def _hops(test: str, ranks: int, size: int) -> tuple[float, float]:
    """Hops of a short message as the cost model counts them, inside and between."""
    domains = -(-ranks // size)
    if test == "all_reduce":
        return 2 * (size - 1), 2 * log2(domains)
    if test in _EXCHANGES:
        return size - 1, ranks - size
    if test in _SENDS:
        return (0, 1) if domains > 1 else (1, 0)
    return ranks - domains, domains - 1


def _fit_tier(tiers: Sequence[Tier], index: int, readings: list[Reading]) -> TierFit:
    before = tiers[index]
    good = [reading for reading in readings if reading.tells_rate]
    # An exchange and a message take no algorithm that beats a ring.
    plain = [r for r in good if r.table.test in (*_EXCHANGES, *_SENDS)]
    good = plain if plain and not before.scale_up else good
    shares = [share for reading in good for share in reading.shares]
    efficiency = min(median(shares), 1.0) if shares else before.efficiency
    inner = tiers[max(i for i in range(index + 1) if i == 0 or tiers[i].scale_up)]
    latency, words = _latency(before, inner, readings)
    after = replace(before, efficiency=efficiency, latency=latency)
    return TierFit(before, after, tuple(good), words)


def _latency(
    before: Tier, inner: Tier, readings: Sequence[Reading]
) -> tuple[float, str]:
    """Latency of a hop at a tier, s, and how it was found."""
    rows = []
    for reading in readings:
        steps = reading.outer if reading.outer else reading.inner
        spent = reading.inner * inner.latency if reading.outer else 0.0
        if reading.start_s and steps:
            rows.append((reading.table.test, steps, max(reading.start_s - spent, 0.0)))
    for test in dict.fromkeys(row[0] for row in rows):
        own = np.array([(steps, time) for name, steps, time in rows if name == test])
        if len(np.unique(own[:, 0])) > 1:
            slope = float(np.polyfit(own[:, 0], own[:, 1], 1)[0])
            if slope > 0:
                counts = len(np.unique(own[:, 0]))
                return slope, f"slope of {test} over {counts} numbers of nodes"
    bound = min((time / steps for _, steps, time in rows), default=0.0)
    if not bound:
        return before.latency, ""
    if bound < before.latency:
        return bound, "bound from short messages, below the machine's"
    return before.latency, f"as it was; short messages allow {bound * 1e6:.3g} us"


def _source(fit: TierFit) -> str:
    """What a topology file says of it."""
    if not fit.readings:
        return ""
    tests = ", ".join(
        f"{r.table.test} on {r.table.ranks} GPUs of {r.nodes} nodes"
        for r in fit.readings
    )
    return (
        f"tier {fit.after.name}: efficiency {fit.after.efficiency:.3g} of "
        f"nccl-tests: {tests}; rms error {fit.error:.1%}"
    )
