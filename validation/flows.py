"""A simulation of rings on shared links: each transfer is a flow, links are fair.

A plain event loop that takes nothing from the cost model. A group with ``q`` members in
the rack that has the fewest runs ``q`` rings, each with a share of the buffer and its
own NIC in every rack. A rank sends its own chunk, then each chunk that has arrived, one
after the other. Transfers under way share the links max-min fairly: all rates rise
together until a link is full, its flows keep theirs, the others rise on. Whenever a
transfer ends rates are found anew. Shapes: E edges of rings, L links.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]

LINKS_ON_A_WAY = 6
ROUNDING = 1e-9


@dataclass(frozen=True)
class Racks:
    """Racks of GPUs in pods; rates in B/s.

    Attributes
    ----------
    pods, racks, gpus : int
        Pods, racks of a pod, GPUs of a rack.
    nvlink, nic : float
        Of one GPU, each direction.
    rack_uplink, pod_uplink : float
        Of a rack into its pod, and of a pod, each direction.
    """

    pods: int
    racks: int
    gpus: int
    nvlink: float
    nic: float
    rack_uplink: float
    pod_uplink: float

    def capacities(self) -> FloatArray:
        """Of every link: NVLink, NICs, racks, pods; outwards, then inwards."""
        racks, gpus = self.pods * self.racks, self.pods * self.racks * self.gpus
        counts = [gpus, gpus, racks, racks, self.pods, self.pods]
        rates = [self.nic, self.nic, *2 * [self.rack_uplink], *2 * [self.pod_uplink]]
        counts, rates = [gpus, gpus, *counts], [self.nvlink, self.nvlink, *rates]
        return np.repeat(np.array(rates), counts)

    def way(self, source: int, target: int) -> list[int]:
        """Links from one GPU to another."""
        racks, gpus = self.pods * self.racks, self.pods * self.racks * self.gpus
        rack = source // self.gpus, target // self.gpus
        pod = rack[0] // self.racks, rack[1] // self.racks
        if rack[0] == rack[1]:
            return [source, gpus + target]
        ends = [2 * gpus + source, 3 * gpus + target]
        ends += [4 * gpus + rack[0], 4 * gpus + racks + rack[1]]
        if pod[0] != pod[1]:
            first = 4 * gpus + 2 * racks
            ends += [first + pod[0], first + self.pods + pod[1]]
        return ends


def ring_seconds(
    racks: Racks, groups: Sequence[Sequence[int]], size_bytes: float
) -> FloatArray:
    """Seconds until each group has reduce-scattered its buffer, all groups at once.

    Parameters
    ----------
    racks : Racks
    groups : sequence of sequences of int
        GPUs by rank, at least two in each.
    size_bytes : float, bytes
        Buffer of a group.
    """
    rings = [
        (g, ring) for g, group in enumerate(groups) for ring in _rings(racks, group)
    ]
    share = np.bincount([g for g, _ in rings])
    group = np.array([g for g, ring in rings for _ in ring])
    members = np.array([len(ring) for _, ring in rings for _ in ring])
    chunk = size_bytes / members / share[group]
    before = np.concatenate([_before(first, ring) for first, ring in _placed(rings)])
    ways = [
        racks.way(one, other)
        for _, ring in rings
        for one, other in zip(ring, [*ring[1:], ring[0]], strict=True)
    ]
    capacity = racks.capacities()
    links = np.full((len(ways), LINKS_ON_A_WAY), len(capacity))
    for edge, way in enumerate(ways):
        links[edge, : len(way)] = way
    ended = np.zeros(len(groups))
    for now, edges in _ends_of_edges(capacity, links, chunk, before, members - 1):
        ended[group[edges]] = now
    return ended


def _rings(racks: Racks, group: Sequence[int]) -> list[list[int]]:
    """Rings of a group: racks as they first appear, members turned by one a ring."""
    of_rack: dict[int, list[int]] = {}
    for gpu in group:
        of_rack.setdefault(gpu // racks.gpus, []).append(gpu)
    fewest = min(len(members) for members in of_rack.values())
    return [
        [gpu for here in of_rack.values() for gpu in (*here[turn:], *here[:turn])]
        for turn in range(fewest)
    ]


def _placed(rings: list[tuple[int, list[int]]]) -> Iterator[tuple[int, list[int]]]:
    """Index of the first edge of each ring, and the ring."""
    first = 0
    for _, ring in rings:
        yield first, ring
        first += len(ring)


def _before(first: int, ring: list[int]) -> IntArray:
    """The edge that brings what each edge of a ring sends on."""
    return first + (np.arange(len(ring)) - 1) % len(ring)


def _ends_of_edges(
    capacity: FloatArray,
    links: IntArray,
    chunk: FloatArray,
    before: IntArray,
    chunks: IntArray,
) -> Iterator[tuple[float, IntArray]]:
    """(time, edges that have sent all their chunks by then), one event after the other.

    Parameters
    ----------
    capacity : ndarray, shape (L,), B/s
    links : ndarray, shape (E, 6)
        Links of each edge, L where there are fewer.
    chunk : ndarray, shape (E,), bytes
    before : ndarray, shape (E,)
    chunks : ndarray, shape (E,)
        How many each edge sends.
    """
    now, sent, left = 0.0, np.zeros(len(chunk), dtype=np.int64), chunk.copy()
    running, rate = np.empty(0, dtype=np.int64), np.empty(0)
    while True:
        ready = np.flatnonzero((sent < chunks) & (sent <= sent[before]))
        if not len(ready):
            return
        if not np.array_equal(ready, running):
            running, rate = ready, max_min_rates(capacity, links[ready])
        step = float((left[running] / rate).min())
        now += step
        left[running] -= rate * step
        done = running[left[running] <= chunk[running] * ROUNDING]
        sent[done] += 1
        left[done] = chunk[done]
        yield now, done[sent[done] == chunks[done]]


def max_min_rates(capacity: FloatArray, links: IntArray) -> FloatArray:
    """Rate of each flow, B/s: none can rise but at the cost of a slower one.

    ``links`` has shape (flows, 6), entries of L stand for no link.
    """
    none = len(capacity)
    free = np.append(capacity, np.inf)
    rate, rising = np.zeros(len(links)), np.ones(len(links), dtype=bool)
    while rising.any():
        flows = np.bincount(links[rising].ravel(), minlength=none + 1)
        share = np.divide(free, flows, out=np.full(none + 1, np.inf), where=flows > 0)
        own = share[links].min(axis=1)
        least = own[rising].min()
        full = rising & (own <= least * (1 + ROUNDING))
        rate[full] = least
        taken = np.bincount(links[full].ravel(), minlength=none + 1) * least
        free[:none] = np.maximum(free[:none] - taken[:none], 0.0)
        rising &= ~full
    return rate
