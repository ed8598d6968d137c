"""Jobs of groups and traffic of their own, beside a mapper that shares no code.

``python -m benchmarks.communicators [--seeds 1] [--json FILE]`` places ten random
communication graphs and prints the step times of the ranks in order, of a greedy mapper
with long annealing, and of placer, with its bound. It exits with 1 where placer is
worse by more than 0.05 %.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import placer
from placer.cost.step import StepModel
from placer.documents import document_of
from placer.job.read import decode_job

MACHINES = {
    32: "rack:2 node:4 gpu:4",
    128: "rack:4 node:8 gpu:4",
    256: "rack:8 node:4 gpu:8",
    512: "block:2 rack:8 node:4 gpu:8",
    1024: "block:4 rack:8 node:4 gpu:8",
}
CASES = (
    ("pairs", 128),
    ("rollouts", 128),
    ("tables", 32),
    ("tables", 256),
    ("grid", 256),
    ("grid", 1024),
    ("communities", 256),
    ("power law", 128),
    ("rings", 512),
    ("mixed", 256),
)
# Annealing of the other mapper: exchanges tried for each rank, temperatures.
TRIES, HEAT = 300, (0.3, 0.003)
WORSE = 5e-4


def job_of(kind: str, ranks: int, seed: int) -> Any:
    """A job whose ranks talk in a pattern, numbered at random."""
    rng = np.random.default_rng([seed, ranks, len(kind)])
    who = rng.permutation(ranks)
    document: dict[str, Any] = {
        "format": "placer/job",
        "version": 1,
        "name": f"{kind} of {ranks}",
        "parallelism": {"dp": ranks},
        "launcher": {"ranks": "free"},
    }
    groups, flows = _GROUPS[kind](ranks, rng) if kind in _GROUPS else ([], None)
    if kind in _FLOWS:
        flows = _FLOWS[kind](ranks, rng)
    for group in groups:
        group["ranks"] = [who[np.asarray(row)].tolist() for row in group["ranks"]]
    if groups:
        document["groups"] = groups
    if flows is not None:
        senders, receivers, size = flows
        document["traffic"] = {
            "from": who[senders].tolist(),
            "to": who[receivers].tolist(),
            "bytes": np.asarray(size, dtype=float).tolist(),
        }
    return decode_job(document_of(document, kind))


def _group(name: str, collective: str, size: float, rows: Any) -> dict[str, Any]:
    ranks = [list(row) for row in rows]
    return {"name": name, "collective": collective, "bytes": size, "ranks": ranks}


def _pairs(ranks: int, _rng: Any) -> Any:
    half = ranks // 2
    rows = [[r, r + half] for r in range(half)]
    return [_group("pairs", "send_recv", 2e9, rows)], None


def _tables(ranks: int, rng: Any) -> Any:
    """Embedding tables over groups of several sizes that overlap."""
    found = []
    for i, size in enumerate((3, 4, 6, 8)):
        order = rng.permutation(ranks)
        rows = [order[s : s + size] for s in range(0, ranks - size + 1, size)]
        near = [np.sort(r) for r in np.array_split(np.arange(ranks), ranks // size)]
        rows = near if i % 2 else rows[: max(1, len(rows) // 8)]
        found.append(_group(f"tables{size}", "all_to_all", 1e8 * (1 + i), rows))
    return found, None


def _rings(ranks: int, _rng: Any) -> Any:
    grid = np.arange(ranks).reshape(-1, 8)
    return [
        _group("rows", "all_reduce", 1e9, grid),
        _group("columns", "all_reduce", 1e8, grid.reshape(-1, 32, 8)[0].T),
    ], None


def _mixed(ranks: int, rng: Any) -> Any:
    chains = np.arange(ranks).reshape(-1, 4)
    wide = rng.permutation(ranks).reshape(-1, 16)[: ranks // 64]
    senders, receivers = rng.integers(ranks, size=(2, 2 * ranks))
    return [
        _group("chains", "relay", 3e8, chains),
        _group("wide", "all_gather", 4e8, wide),
    ], (senders, receivers, rng.exponential(1e8, 2 * ranks))


def _rollouts(ranks: int, _rng: Any) -> Any:
    """Each of a quarter of the ranks sends its weights to three others."""
    trainers = np.repeat(np.arange(ranks // 4), 3)
    return trainers, np.arange(ranks // 4, ranks), np.full(len(trainers), 1e9)


def _grid(ranks: int, _rng: Any) -> Any:
    side = 1 << (ranks.bit_length() // 2)
    cells = np.arange(ranks).reshape(side, -1)
    pairs = [(cells[1:], cells[:-1]), (cells[:, 1:], cells[:, :-1])]
    first = np.concatenate([a.ravel() for a, _ in pairs])
    second = np.concatenate([b.ravel() for _, b in pairs])
    senders = np.concatenate((first, second))
    return senders, np.concatenate((second, first)), np.full(len(senders), 1e8)


def _communities(ranks: int, rng: Any) -> Any:
    senders = np.repeat(np.arange(ranks), 8)
    reach = rng.choice([8, 32, ranks], p=[0.6, 0.3, 0.1], size=len(senders))
    receivers = senders // reach * reach + (rng.random(len(senders)) * reach).astype(
        int
    )
    return senders, receivers, rng.exponential(1e8, len(senders))


def _power_law(ranks: int, rng: Any) -> Any:
    busy = rng.pareto(1.5, ranks) + 0.1
    draw = rng.choice(ranks, p=busy / busy.sum(), size=(2, 6 * ranks))
    return draw[0], draw[1], rng.exponential(1e8, 6 * ranks)


_GROUPS = {"pairs": _pairs, "tables": _tables, "rings": _rings, "mixed": _mixed}
_FLOWS = {
    "rollouts": _rollouts,
    "grid": _grid,
    "communities": _communities,
    "power law": _power_law,
}


def weights_of(job: Any) -> np.ndarray:
    """Bytes between any two ranks, as the other mapper sees them."""
    weight = np.zeros((job.world_size, job.world_size))
    if job.traffic is not None:
        flows = job.traffic
        np.add.at(weight, (flows.senders, flows.receivers), flows.size_bytes)
    for group in job.groups:
        for ranks in group.ranks:
            members = np.array(ranks)
            if group.collective in ("send_recv", "relay"):
                weight[members[:-1], members[1:]] += group.size_bytes
            else:
                weight[np.ix_(members, members)] += group.size_bytes / len(members)
    weight += weight.T
    np.fill_diagonal(weight, 0.0)
    return weight


def annealed(topology: Any, job: Any, seed: int) -> np.ndarray:
    """GPU of every rank: heaviest neighbour next, then exchanges of two ranks."""
    rng = np.random.default_rng(seed)
    weight, ranks = weights_of(job), job.world_size
    pace = 1 / np.array([t.bandwidth * t.efficiency for t in topology.tiers])
    domain = topology.domain_of_gpu
    apart = (domain[:-1, :, None] != domain[:-1, None, :]).sum(axis=0)
    distance = pace[apart]
    gpu = np.zeros(ranks, dtype=np.int64)
    left = np.ones(ranks, dtype=bool)
    pull = np.zeros(ranks)
    for seat in range(ranks):
        if seat and domain[0][seat] != domain[0][seat - 1]:
            pull *= 0.5
        rank = int(np.where(left, pull + 1e-12 * weight.sum(axis=1), -1.0).argmax())
        gpu[rank], left[rank] = seat, False
        pull += weight[rank]
    tries = TRIES * ranks
    cost = 0.5 * float((weight * distance[np.ix_(gpu, gpu)]).sum())
    best, best_cost = gpu.copy(), cost
    scale = float(weight.sum(axis=1).mean() * pace.max())
    cooling = (HEAT[1] / HEAT[0]) ** (1 / tries)
    heat = HEAT[0] * scale
    pairs = rng.integers(ranks, size=(tries, 2)).tolist()
    draws = np.log(rng.random(tries)).tolist()
    for (a, b), draw in zip(pairs, draws, strict=True):
        heat *= cooling
        if a == b:
            continue
        to_a, to_b = distance[gpu[a], gpu], distance[gpu[b], gpu]
        change = (weight[a] - weight[b]) * (to_b - to_a)
        delta = float(change.sum() - change[a] - change[b])
        if delta <= -heat * draw:
            gpu[a], gpu[b] = gpu[b], gpu[a]
            cost += delta
            if cost < best_cost:
                best, best_cost = gpu.copy(), cost
    return best


def compared(kind: str, ranks: int, seed: int) -> dict[str, Any]:
    """Step times of one case."""
    topology = placer.read_topology(MACHINES[ranks])
    job = job_of(kind, ranks, seed)
    start = time.process_time()
    result = placer.place(topology, job, effort="normal")
    own = time.process_time() - start
    start = time.process_time()
    mapped = annealed(topology, job, seed)
    other = time.process_time() - start
    model = StepModel(topology, job)
    return {
        "case": f"{kind} of {ranks}",
        "in_order_s": model.step(np.arange(ranks)).step_time_s,
        "annealed_s": model.step(mapped).step_time_s,
        "placer_s": result.bound["value"],
        "bound_s": result.bound["lower_bound"],
        "annealed_cpu_s": other,
        "placer_cpu_s": own,
    }


def main() -> int:
    """Compare all cases, print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--most", type=int, default=1024, help="ranks of a case")
    parser.add_argument("--json")
    given = parser.parse_args()
    rows = []
    print("| graph | in order | annealed | placer | bound | gap | CPU s, both |")
    print("|---|--:|--:|--:|--:|--:|--:|")
    for seed in range(given.seeds):
        for kind, ranks in CASES:
            if ranks > given.most:
                continue
            row = compared(kind, ranks, seed)
            rows.append(row)
            values = [
                row[f"{k}_s"] for k in ("in_order", "annealed", "placer", "bound")
            ]
            shown = " | ".join(f"{1e3 * value:.3f}" for value in values)
            gap = 1 - values[3] / values[2]
            cpu = f"{row['annealed_cpu_s']:.1f} / {row['placer_cpu_s']:.1f}"
            print(f"| {row['case']} | {shown} | {gap:.1%} | {cpu} |", flush=True)
    if given.json:
        Path(given.json).write_text(json.dumps(rows, indent=1) + "\n")
    worse = [r for r in rows if r["placer_s"] > r["annealed_s"] * (1 + WORSE)]
    for row in worse:
        print(f"worse: {row['case']}", file=sys.stderr)
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
