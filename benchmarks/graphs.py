"""Graphs that users bring as ``traffic:``, beside METIS and an order by hand.

``python -m benchmarks.graphs [--limit 60] [--only stencil] [--json FILE]`` places
stencils, geometric graphs, blocks, tables and trainers, rings of rings and butterflies,
their ranks numbered at random, on machines of two and three tiers, some of them uneven.
It prints the step times of METIS (best of six), of the ranks as they lie along the
graph, and of placer, with its bound. It exits with 1 where placer is worse by more than
0.05 %.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import placer
from placer.cost.step import StepModel
from placer.document import document_of
from placer.job.read import decode_job
from placer.placement.placement import Placement
from placer.topology.read import decode_topology

WORSE = 5e-4
BYTES = 1e7
# Senders, receivers and bytes of all flows.
Graph = tuple[np.ndarray, np.ndarray, np.ndarray]


class Case(NamedTuple):
    """A graph of so many ranks on a machine.

    Attributes
    ----------
    name : str
    machine : dict
        A topology.
    ranks : int
    graph : Graph
    """

    name: str
    machine: dict[str, Any]
    ranks: int
    graph: Graph


def machine_of(racks: Any, gpus: int, oversubscription: float, block: int = 0) -> Any:
    """A topology of racks with so many nodes each, in blocks of so many racks."""
    fast = {"bandwidth": "450GB/s", "latency": "1us", "scale_up": True}
    outer = {"bandwidth": "50GB/s", "oversubscription": oversubscription}
    tiers: list[dict[str, Any]] = [
        {"name": "node", "size": gpus, **fast},
        {"name": "rack", "bandwidth": "50GB/s", "latency": "5us"},
        {"name": "cluster", "latency": "8us", **outer},
    ]
    if block:
        tiers.insert(2, {"name": "block", "latency": "6us", **outer})
    nodes = []
    for number, count in enumerate(racks):
        row = {"names": f"r{number:03}t[01-{count:02}]", "rack": f"r{number:03}"}
        nodes.append(row | ({"block": f"b{number // block:02}"} if block else {}))
    head = {"format": "placer/topology", "version": 1, "name": "own"}
    return {**head, "tiers": tiers, "nodes": nodes}


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


def cases() -> list[Case]:
    """All of them, the smaller first."""
    uneven = np.random.default_rng(0).integers(5, 10, 40).tolist()
    return [
        Case("tables and trainers", machine_of([4] * 4, 8, 1), 128, tables(128, 16)),
        Case("geometric", machine_of([8] * 8, 4, 2), 256, geometric(256)),
        Case("butterfly", machine_of(uneven[:14], 4, 2, 4), 300, butterfly(300)),
        Case("stencil 17 x 23", machine_of(uneven[:16], 4, 2, 4), 391, stencil(17, 23)),
        Case("power law", machine_of([7] * 8, 8, 2), 400, power_law(400)),
        Case("ring of rings", machine_of([8] * 8, 8, 2), 480, ring_of_rings(480, 24)),
        Case("butterfly", machine_of([8] * 8, 8, 2), 512, butterfly(512)),
        Case("tables and trainers", machine_of([9] * 8, 8, 2), 512, tables(512, 64)),
        Case("stencil 8 x 8 x 8", machine_of([4] * 16, 8, 2, 8), 512, stencil(8, 8, 8)),
        Case("blocks", machine_of([8] * 10, 8, 2, 5), 600, blocks(600)),
        Case(
            "torus 9 x 10 x 11",
            machine_of([4] * 32, 8, 2, 8),
            990,
            stencil(9, 10, 11, periodic=True),
        ),
        Case("geometric", machine_of(uneven, 4, 2, 4), 1000, geometric(1000)),
        Case("stencil 20 x 50", machine_of([4] * 32, 8, 2, 8), 1000, stencil(20, 50)),
        Case(
            "torus 32 x 32",
            machine_of([4] * 32, 8, 2, 8),
            1024,
            stencil(32, 32, periodic=True),
        ),
        Case("stencil 36 x 36", machine_of([8] * 41, 4, 1), 1296, stencil(36, 36)),
        Case("stencil 36 x 36, 4:1", machine_of([8] * 41, 4, 4), 1296, stencil(36, 36)),
        Case("geometric", machine_of([8] * 64, 8, 2, 8), 4000, geometric(4000)),
        Case("stencil 60 x 70", machine_of([9] * 64, 8, 2, 8), 4200, stencil(60, 70)),
        Case(
            "stencil 140 x 140",
            machine_of([9] * 288, 8, 2, 18),
            19600,
            stencil(140, 140),
        ),
    ]


def job_of(case: Case, who: np.ndarray) -> Any:
    """The job, ``who`` being the number of each vertex."""
    senders, receivers, size = case.graph
    content = {
        "format": "placer/job",
        "version": 1,
        "name": case.name,
        "parallelism": {"dp": case.ranks},
        "launcher": {"ranks": "free"},
        "traffic": {
            "from": who[senders].tolist(),
            "to": who[receivers].tolist(),
            "bytes": size.tolist(),
        },
    }
    return decode_job(document_of(content, case.name))


def partitions(topology: Any, job: Any) -> list[np.ndarray]:
    """Placements of METIS: one part a node, all nodes or the first few, three seeds."""
    import pymetis

    flows, ranks = job.traffic, job.world_size
    key, which = np.unique(
        np.append(
            flows.senders * ranks + flows.receivers,
            flows.receivers * ranks + flows.senders,
        ),
        return_inverse=True,
    )
    size = np.bincount(which, np.tile(flows.size_bytes, 2))
    weight = np.maximum(1, np.rint(1000 * size / size.max())).astype(int)
    start = np.searchsorted(key // ranks, np.arange(ranks + 1))
    rows = pymetis.CSRAdjacency(start, key % ranks)
    room, found = topology.gpus_of_node, []
    few = int(np.searchsorted(np.cumsum(room), ranks)) + 1
    for nodes in {len(room), few}:
        for seed in range(3):
            _, part = pymetis.part_graph(
                nodes,
                rows,
                eweights=weight,
                tpwgts=(room[:nodes] / room[:nodes].sum()).tolist(),
                recursive=True,
                options=pymetis.Options(ufactor=1, seed=seed),
            )
            found.append(_fitted(np.array(part), room))
    return [Placement.on_nodes(topology, node).gpu_of_rank for node in found]


def _fitted(part: np.ndarray, room: np.ndarray) -> np.ndarray:
    """The node of each rank, those too many for theirs on the first with room."""
    node = part.copy()
    held = np.bincount(part, minlength=len(room))
    for full in np.flatnonzero(held > room).tolist():
        for rank in np.flatnonzero(part == full)[room[full] :].tolist():
            node[rank] = int(np.argmax(held < room))
            held[node[rank]] += 1
    return node


def compared(case: Case, limit: float) -> dict[str, Any]:
    """Step times of one case."""
    topology = decode_topology(document_of(case.machine, case.name))
    who = np.random.default_rng(1).permutation(case.ranks)
    job = job_of(case, who)
    model = StepModel(topology, job)
    along = np.empty(case.ranks, dtype=np.int64)
    along[who] = np.arange(case.ranks)
    start = time.process_time()
    result = placer.place(topology, job, time_limit=limit)
    own = time.process_time() - start
    metis = [model.step(gpus).step_time_s for gpus in partitions(topology, job)]
    return {
        "case": case.name,
        "ranks": case.ranks,
        "gpus": topology.num_gpus,
        "metis_s": min(metis),
        "along_s": model.step(along).step_time_s,
        "placer_s": result.bound["value"],
        "bound_s": result.bound["lower_bound"],
        "placer_cpu_s": own,
    }


def main() -> int:
    """Compare all cases, print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--limit", type=float, default=60.0)
    parser.add_argument("--only", default="", help="cases whose names hold this")
    parser.add_argument("--json")
    given = parser.parse_args()
    rows = []
    print("| graph | ranks | GPUs | along the graph | METIS | placer | bound | gap |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|")
    for case in cases():
        if given.only not in case.name:
            continue
        row = compared(case, given.limit)
        rows.append(row)
        values = [row[f"{k}_s"] for k in ("along", "metis", "placer", "bound")]
        shown = " | ".join(f"{1e3 * value:.3f}" for value in values)
        head = f"{row['case']} | {row['ranks']} | {row['gpus']}"
        print(f"| {head} | {shown} | {1 - values[3] / values[2]:.1%} |", flush=True)
    if given.json:
        Path(given.json).write_text(json.dumps(rows, indent=1) + "\n")
    worse = [
        row
        for row in rows
        if row["placer_s"] > min(row["metis_s"], row["along_s"]) * (1 + WORSE)
    ]
    for row in worse:
        print(f"worse: {row['case']}", file=sys.stderr)
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
