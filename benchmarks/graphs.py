"""Graphs that users bring as ``traffic:``, beside METIS and an order by hand.

``python -m benchmarks.graphs [--limit 60] [--only stencil] [--anneal TIMES] [--json
FILE]`` places stencils, geometric graphs, blocks, tables and trainers, rings of rings,
butterflies and other graphs, their ranks numbered at random, on machines of two and
three tiers, some of them uneven. It prints the step times of METIS (best of six), of
Mt-KaHyPar (best of four), of the ranks as they lie along the graph, of annealing from
what METIS found where asked for, and of placer, with its bound. It exits with 1 where
placer is worse by more than 0.05 %.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any, NamedTuple

import networkx as nx
import numpy as np

import placer
from benchmarks.annealing import annealed
from benchmarks.peers.answer import repaired
from benchmarks.peers.mt_kahypar import mapped
from benchmarks.peers.problem import Graph as Weighted
from benchmarks.peers.problem import MappingProblem
from benchmarks.traffic_graphs import (
    Graph,
    blocks,
    butterfly,
    geometric,
    measured_rings,
    of_networkx,
    pipelines_of_stars,
    power_law,
    ring_of_rings,
    rings_of_rings,
    stencil,
    tables,
    weighted_stencil,
)
from placer.cost.step import StepModel
from placer.documents import document_of
from placer.job.read import decode_job
from placer.placement.placement import Placement
from placer.topology.read import decode_topology

WORSE = 5e-4
MT_KAHYPAR_VARIANTS = ("DEFAULT", "QUALITY")


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


def cases() -> list[Case]:
    """All of them, the smaller first of those by hand and of those of other kinds."""
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
        *_other_kinds(uneven),
    ]


def _other_kinds(uneven: list[int]) -> list[Case]:
    """Graphs of kinds that no method was made for."""
    regular = nx.random_regular_graph(4, 190, seed=1)
    small_world = nx.watts_strogatz_graph(250, 6, 0.1, seed=2)
    tree = nx.random_labeled_tree(330, seed=3)
    diagonal = nx.strong_product(nx.path_graph(20), nx.path_graph(19))
    apart = nx.disjoint_union(nx.grid_2d_graph(10, 12), nx.grid_2d_graph(20, 5))
    thin = machine_of([5] * 11, 8, 4)
    return [
        Case("random regular", machine_of(uneven[:8], 4, 2), 190, of_networkx(regular)),
        Case("two stencils", machine_of([6] * 10, 4, 4), 220, of_networkx(apart)),
        Case("small world", machine_of([5] * 7, 8, 4), 250, of_networkx(small_world)),
        Case("random tree", machine_of([5] * 9, 8, 3), 330, of_networkx(tree)),
        Case(
            "measured rings",
            machine_of([8] * 6, 8, 2, 3),
            333,
            measured_rings(333, 8, 24),
        ),
        Case(
            "stencil 21 x 17, 1:3",
            machine_of(uneven[:16], 4, 2, 4),
            357,
            weighted_stencil((21, 17), (1, 3)),
        ),
        Case(
            "torus 7 x 9 x 6, 1:2:1",
            thin,
            378,
            weighted_stencil((7, 9, 6), (1, 2, 1), periodic=True),
        ),
        Case(
            "nine points 20 x 19",
            machine_of([4] * 13, 8, 2),
            380,
            of_networkx(diagonal),
        ),
        Case(
            "pipelines of stars",
            machine_of(uneven[:9], 8, 3),
            396,
            pipelines_of_stars(11, 6, 5),
        ),
        Case(
            "rings of rings of rings",
            machine_of(uneven[:9], 8, 2, 3),
            411,
            rings_of_rings(411, 6),
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


def _weighted(job: Any) -> Weighted:
    """The graph of what ranks send each other, with whole weights up to 1000."""
    flows, ranks = job.traffic, job.world_size
    low = np.minimum(flows.senders, flows.receivers)
    high = np.maximum(flows.senders, flows.receivers)
    key, which = np.unique(low * ranks + high, return_inverse=True)
    size = np.bincount(which, flows.size_bytes)
    weight = np.maximum(1, np.rint(1000 * size / size.max())).astype(int)
    return Weighted(ranks, np.stack((key // ranks, key % ranks), axis=1), weight)


def mappings(topology: Any, job: Any) -> list[np.ndarray]:
    """Placements of Mt-KaHyPar on the tree: all nodes or the first few, two presets."""
    tiers = topology.tiers
    distance = [10 * tier.distance * tier.oversubscription for tier in tiers]
    problem = MappingProblem(
        _weighted(job),
        1,
        topology.gpus_of_node,
        np.asarray(topology.domain_of_node),
        np.rint(np.maximum.accumulate(distance)).astype(np.int64),
    )
    found = []
    for part in (problem, problem.only(problem.first_leaves())):
        for variant in MT_KAHYPAR_VARIANTS:
            node, _ = repaired(part, mapped(part, variant, 0))
            found.append(Placement.on_nodes(topology, node).gpu_of_rank)
    return found


def partitions(topology: Any, job: Any) -> list[np.ndarray]:
    """Placements of METIS: one part a node, all nodes or the first few, three seeds."""
    import pymetis

    graph, ranks = _weighted(job), job.world_size
    start, neighbours, weight = graph.rows
    rows = pymetis.CSRAdjacency(start, neighbours)
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


def compared(case: Case, limit: float, anneal: float) -> dict[str, Any]:
    """Step times of one case; annealing has so many times placer's CPU, if any."""
    topology = decode_topology(document_of(case.machine, case.name))
    who = np.random.default_rng(1).permutation(case.ranks)
    job = job_of(case, who)
    model = StepModel(topology, job)
    along = np.empty(case.ranks, dtype=np.int64)
    along[who] = np.arange(case.ranks)
    start = sum(os.times()[:4])
    result = placer.place(topology, job, time_limit=limit, effort="normal")
    own = sum(os.times()[:4]) - start  # of its helpers too
    peers = partitions(topology, job), mappings(topology, job)
    found = [[model.step(gpus).step_time_s for gpus in own] for own in peers]
    row = {
        "case": case.name,
        "ranks": case.ranks,
        "gpus": topology.num_gpus,
        "metis_s": min(found[0]),
        "mt_kahypar_s": min(found[1]),
        "along_s": model.step(along).step_time_s,
        "placer_s": result.bound["value"],
        "bound_s": result.bound["lower_bound"],
        "placer_cpu_s": own,
    }
    if anneal:
        start_from = peers[0][int(np.argmin(found[0]))]
        walked = annealed(topology, job, "time", start_from, anneal * own)
        row["annealed_s"] = model.step(walked).step_time_s
    return row


def main() -> int:
    """Compare all cases, print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--limit", type=float, default=60.0)
    parser.add_argument("--only", default="", help="cases whose names hold this")
    parser.add_argument("--json")
    parser.add_argument("--anneal", type=float, default=0.0, metavar="TIMES")
    given = parser.parse_args()
    rows, others = [], ["along", "metis", "mt_kahypar"]
    titles = ["along the graph", "METIS", "Mt-KaHyPar"]
    if given.anneal:
        others.append("annealed")
        titles.append(f"annealing, {given.anneal:g} times the CPU")
    columns = ["graph", "ranks", "GPUs", *titles, "placer", "bound", "gap"]
    print(f"| {' | '.join(columns)} |")
    print("|---" + "|--:" * (len(columns) - 1) + "|")
    for case in cases():
        if given.only not in case.name:
            continue
        row = compared(case, given.limit, given.anneal)
        rows.append(row)
        if given.json:
            Path(given.json).write_text(json.dumps(rows, indent=1) + "\n")
        values = [row[f"{key}_s"] for key in (*others, "placer", "bound")]
        shown = " | ".join(f"{1e3 * value:.3f}" for value in values)
        head = f"{row['case']} | {row['ranks']} | {row['gpus']}"
        print(f"| {head} | {shown} | {1 - values[-1] / values[-2]:.1%} |", flush=True)
    worse = [
        row
        for row in rows
        if row["placer_s"] > min(row[f"{key}_s"] for key in others) * (1 + WORSE)
    ]
    for row in worse:
        print(f"worse: {row['case']}", file=sys.stderr)
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
