"""Placing again after failures: ``python -m benchmarks.replace``.

For every case: place the job, let random nodes that hold ranks fail, and replace. A row
says how many ranks move, how many must at least, what it costs and how long the library
call takes (``placer.replace``, the plan in memory), with the check of the new plan.

The instances B and G have whole racks as leaves; here a rack is made of trays of four
GPUs, so that a tray can fail.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np

import placer
from benchmarks.instances import load

if TYPE_CHECKING:
    from placer.job.model import Job
    from placer.placement.plan import Plan
    from placer.topology.model import Topology

TRAY = 4  # GPUs
AZURE = ("azure-gb200-mlperf-v6", "llama3.1-405b-mlperf-v6")
SPARE = ("gb200-83k", "llama3.1-405b-mlperf-v6")
CASES = (
    *(("azure", count) for count in (1, 4, 16)),
    ("azure rack", 16),
    ("spare rack", 16),
    ("B", 8),
    ("G", 100),
)


@dataclass(frozen=True)
class Row:
    """What one failure moves and costs.

    Attributes
    ----------
    case : str
    ranks, failed : int
        Ranks of the job, and nodes that failed.
    seed : int
        Of the failures.
    moved, fewest : int
        Ranks that moved, and that must at least.
    given_up : int
        Replicas.
    change : float
        Cost after the failure relative to before, minus 1.
    wall_s : float, s
    """

    case: str
    ranks: int
    failed: int
    seed: int
    moved: int
    fewest: int
    given_up: int
    change: float
    wall_s: float


def trays(name: str) -> tuple[Topology, Job]:
    """Machine and job of an instance whose leaves are racks of trays."""
    topology, job = load(name)
    count = topology.gpus_of_node // TRAY
    rack = np.repeat(np.arange(topology.num_nodes), count)
    position = np.arange(len(rack)) - np.repeat(np.cumsum(count) - count, count)
    names = tuple(
        f"{topology.node_names[r]}t{i:02d}"
        for r, i in zip(rack.tolist(), position.tolist(), strict=True)
    )
    leaf = topology.tiers[0]
    machine = replace(
        topology,
        tiers=(
            replace(leaf, name="tray"),
            replace(leaf, name="rack"),
            *topology.tiers[1:],
        ),
        gpus_of_node=np.full(len(rack), TRAY),
        bandwidth_factor=np.ones(len(rack)),
        domain_of_node=np.vstack(
            (np.arange(len(rack)), topology.domain_of_node[:, rack])
        ),
        domain_names=(names, *topology.domain_names),
    )
    return machine, job


def inputs(case: str) -> tuple[Topology, Job]:
    """Machine and job of a case."""
    if case in ("B", "G"):
        return trays(case)
    topology, job = SPARE if case.startswith("spare") else AZURE
    return placer.read_topology(topology), placer.read_job(job)


def failures(plan: Plan, case: str, count: int, seed: int) -> list[str]:
    """Nodes that fail: all of a rack, one in each of some racks, or any."""
    rng = np.random.default_rng(seed)
    if case in ("B", "G"):
        chosen = rng.choice(len(plan.nodes), count, replace=False)
        return [plan.nodes[node] for node in chosen]
    racks = np.array(plan.domains["rack"])
    names = np.unique(racks)
    if case.endswith("rack"):
        lost = np.flatnonzero(racks == rng.choice(names))
        return [plan.nodes[node] for node in lost]
    return [
        plan.nodes[rng.choice(np.flatnonzero(racks == rack))]
        for rack in rng.choice(names, count, replace=False)
    ]


def measure(
    topology: Topology, job: Job, plan: Plan, case: str, count: int, seed: int
) -> Row:
    """The row of one failure."""
    failed = failures(plan, case, count, seed)
    start = perf_counter()
    found = placer.replace(plan, topology, job, failed=failed, shrink=True)
    wall_s = perf_counter() - start
    about = found.plan.previous
    return Row(
        case,
        job.world_size,
        len(failed),
        seed,
        about["moved"],
        about["fewest"],
        len(about.get("given_up", ())),
        found.bound["value"] / plan.bound["value"] - 1,
        wall_s,
    )


def table(rows: Sequence[Row]) -> Iterator[str]:
    """The rows as a Markdown table."""
    yield (
        "| case | ranks | failed nodes | seed | ranks moved | at least | "
        "replicas given up | cost | wall |"
    )
    yield "|---|--:|--:|--:|--:|--:|--:|--:|--:|"
    for row in rows:
        yield (
            f"| {row.case} | {row.ranks:,} | {row.failed} | {row.seed} | "
            f"{row.moved:,} | {row.fewest:,} | {row.given_up} | "
            f"{row.change:+.3%} | {row.wall_s:.2f} s |"
        )


def main(words: Sequence[str] | None = None) -> None:
    """Measure the cases and print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.replace")
    parser.add_argument("--cases", default=",".join({name for name, _ in CASES}))
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args(words)
    rows = []
    for name in dict.fromkeys(case for case, _ in CASES):
        if name not in options.cases.split(","):
            continue
        topology, job = inputs(name)
        plan = placer.place(topology, job, effort="normal").plan
        rows += [
            measure(topology, job, plan, name, count, seed)
            for case, count in CASES
            if case == name
            for seed in range(options.seeds)
        ]
    print("\n".join(table(rows)))


if __name__ == "__main__":
    main()
