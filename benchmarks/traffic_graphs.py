"""Graphs as users bring them: stencils, meshes, tables, rings, pipelines, measurements.

Each is the senders, receivers and bytes of all flows.
"""

from __future__ import annotations

import networkx as nx
import numpy as np

BYTES = 1e7
Graph = tuple[np.ndarray, np.ndarray, np.ndarray]


def both_ways(one: np.ndarray, other: np.ndarray) -> Graph:
    """The same bytes along every edge, either way."""
    ends = np.concatenate((one, other)), np.concatenate((other, one))
    return *ends, np.full(len(ends[0]), BYTES)


def stencil(*shape: int, periodic: bool = False) -> Graph:
    """Every cell beside its neighbours along each axis."""
    cells = np.arange(int(np.prod(shape))).reshape(shape)
    one, other = [], []
    for axis, length in enumerate(shape):
        if periodic:
            one.append(cells.ravel())
            other.append(np.roll(cells, -1, axis).ravel())
        else:
            one.append(np.take(cells, range(length - 1), axis).ravel())
            other.append(np.take(cells, range(1, length), axis).ravel())
    return both_ways(np.concatenate(one), np.concatenate(other))


def geometric(ranks: int) -> Graph:
    """Points in a square beside their eight nearest."""
    point = np.random.default_rng(0).random((ranks, 2))
    pairs = []
    for rank in range(ranks):
        near = np.argsort(((point - point[rank]) ** 2).sum(axis=1))[1:9]
        pairs += [(min(rank, other), max(rank, other)) for other in near.tolist()]
    edges = np.unique(np.array(pairs), axis=0)
    return both_ways(edges[:, 0], edges[:, 1])


def power_law(ranks: int) -> Graph:
    """Some ranks are far busier than others."""
    rng = np.random.default_rng(0)
    busy = rng.pareto(1.5, ranks) + 0.1
    ends = rng.choice(ranks, p=busy / busy.sum(), size=(2, 6 * ranks))
    size = rng.exponential(BYTES, 6 * ranks)
    apart = ends[0] != ends[1]
    return ends[0][apart], ends[1][apart], size[apart]


def blocks(ranks: int, size: int = 12) -> Graph:
    """Blocks on the diagonal, and noise."""
    rng = np.random.default_rng(0)
    inner = np.repeat(np.arange(ranks), 4)
    beside = inner // size * size + rng.integers(0, size, len(inner))
    noise = rng.integers(0, ranks, (2, ranks))
    one, other = np.append(inner, noise[0]), np.append(beside, noise[1])
    weight = np.append(
        rng.exponential(BYTES, len(inner)), rng.exponential(BYTES / 10, ranks)
    )
    apart = one != other
    return one[apart], other[apart], weight[apart]


def tables(ranks: int, tables_: int) -> Graph:
    """Each trainer asks six ranks with tables, some more often than others."""
    rng = np.random.default_rng(0)
    asked = 1 / np.arange(1, tables_ + 1) ** 0.8
    trainers = np.arange(tables_, ranks)
    chosen = [
        rng.choice(tables_, size=6, replace=False, p=asked / asked.sum())
        for _ in trainers
    ]
    table, trainer = np.concatenate(chosen), np.repeat(trainers, 6)
    size = rng.exponential(BYTES, len(table))
    return (
        np.append(table, trainer),
        np.append(trainer, table),
        np.append(size, size),
    )


def ring_of_rings(ranks: int, size: int) -> Graph:
    """Rings of so many ranks, the first of each in a ring again."""
    rings = np.arange(ranks).reshape(-1, size)
    one = np.append(rings.ravel(), rings[:, 0])
    other = np.append(np.roll(rings, -1, 1).ravel(), np.roll(rings[:, 0], -1))
    return both_ways(one, other)


def butterfly(ranks: int) -> Graph:
    """Ranks whose numbers differ in one bit."""
    rank, one, other = np.arange(ranks), [], []
    for bit in range((ranks - 1).bit_length()):
        partner = rank ^ (1 << bit)
        pair = (partner > rank) & (partner < ranks)
        one.append(rank[pair])
        other.append(partner[pair])
    return both_ways(np.concatenate(one), np.concatenate(other))


def weighted_stencil(
    shape: tuple[int, ...], weights: tuple[float, ...], *, periodic: bool = False
) -> Graph:
    """A stencil that sends more along some axes."""
    found = []
    for axis, weight in enumerate(weights):
        rows = int(np.prod(shape[:axis])), shape[axis], int(np.prod(shape[axis + 1 :]))
        cells = np.arange(int(np.prod(shape))).reshape(rows)
        last = None if periodic else -1
        one, other = cells[:, :last], np.roll(cells, -1, 1)[:, :last]
        senders, receivers, size = both_ways(one.ravel(), other.ravel())
        found.append((senders, receivers, weight * size))
    senders, receivers, size = (
        np.concatenate(part) for part in zip(*found, strict=True)
    )
    return senders, receivers, size


def of_networkx(graph: nx.Graph[int]) -> Graph:
    """The same bytes along every edge."""
    ends = np.array(list(nx.convert_node_labels_to_integers(graph).edges))
    return both_ways(ends[:, 0], ends[:, 1])


def rings_of_rings(ranks: int, size: int) -> Graph:
    """Rings of so many, the first of each in rings of so many again, and so on."""
    pairs, level = [], list(range(ranks))
    while len(level) > 1:
        rings = [level[at : at + size] for at in range(0, len(level), size)]
        for ring in rings:
            beside = ring[1:] + (ring[:1] if len(ring) > 2 else [])
            pairs += list(zip(ring, beside, strict=False))
        level = [ring[0] for ring in rings]
    ends = np.array(pairs)
    return both_ways(ends[:, 0], ends[:, 1])


def pipelines_of_stars(pipelines: int, stages: int, leaves: int) -> Graph:
    """Each stage is a hub with leaves; hubs pass on four times what leaves send."""
    hubs = np.arange(pipelines * stages) * (leaves + 1)
    leaf = np.repeat(hubs, leaves) + np.tile(np.arange(1, leaves + 1), len(hubs))
    onward = hubs.reshape(pipelines, stages)
    one = np.append(np.repeat(hubs, leaves), onward[:, :-1])
    other = np.append(leaf, onward[:, 1:])
    senders, receivers, size = both_ways(one, other)
    is_hub = np.isin(senders, hubs) & np.isin(receivers, hubs)
    return senders, receivers, np.where(is_hub, 4 * size, size)


def measured_rings(ranks: int, near: int, across: int) -> Graph:
    """Rings of ``near`` neighbours, ``across`` rings over them, as if measured.

    Sizes scatter by some per cent, and many pairs exchange a little.
    """
    rng = np.random.default_rng(8)
    rank = np.arange(ranks)
    last = np.minimum(rank // near * near + near, ranks) - 1
    beside = np.where(rank == last, rank // near * near, rank + 1)
    onward = np.where(rank + across < ranks, rank + across, rank % across)
    noise = rng.integers(0, ranks, (2, 3 * ranks))
    size = (
        8 * BYTES * rng.lognormal(0, 0.05, ranks),
        BYTES * rng.lognormal(0, 0.1, ranks),
        rng.exponential(BYTES / 200, 3 * ranks),
    )
    one = np.concatenate((rank, rank, noise[0]))
    other = np.concatenate((beside, onward, noise[1]))
    apart = one != other
    return one[apart], other[apart], np.concatenate(size)[apart]
