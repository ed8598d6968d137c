"""Changes a second that the annealer tries: ``python -m benchmarks.walks``.

Racks of 12 to 18 trays of 4 GPUs, most of them full; the job of Llama 3.1 405B on the
step time, and on the hop cost. Walks begin with the order given. Seconds are those of
the processor, of all threads: so other programs on the machine change little, and twice
the threads that try as many changes a second do twice the walks.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from time import perf_counter, process_time

from benchmarks.instances import uneven_racks
from placer.base.threads import in_order
from placer.job.read import read_job
from placer.job.resize import resized
from placer.placement.baselines import baseline
from placer.solve.annealing.units import Units
from placer.solve.annealing.walks import Walk, walk_in_pool
from placer.solve.problem.compiled import Problem
from placer.solve.run.budget import ENDLESS

RANKS, WORKERS = (1_024, 8_192), (1, 2)
OBJECTIVES = ("time", "hop-cost")
JOB, LOAD, SEED = "llama3.1-405b-mlperf-v6", 0.97, 1
CHANGES = 400_000  # of each walk


@dataclass(frozen=True)
class Row:
    """Walks of one job side by side.

    Attributes
    ----------
    objective : str
    ranks, workers : int
    a_second : float
        Changes tried in a second of the processor.
    busy : float
        Processors that were at work, on average: as many as workers, where no other
        program wants them.
    """

    objective: str
    ranks: int
    workers: int
    a_second: float
    busy: float


def problem_of(objective: str, ranks: int) -> Problem:
    """The problem of a size, a multiple of 256 ranks."""
    topology, job = uneven_racks(ranks, LOAD, SEED)
    if objective == "time":
        job = resized(read_job(JOB), dp=ranks // 64)
        job = replace(job, launcher="free", require={})
    return Problem.of(topology, job, objective)


def measure(objective: str, ranks: int, workers: int, changes: int) -> Row:
    """Walks of one size, one for each worker."""
    problem = problem_of(objective, ranks)
    pool = [Units.of(problem).walks() for _ in range(workers)]
    placement = baseline("given-order", problem.machine, problem.job)
    slots = pool[0].units.slot_of_unit(placement.gpu_of_rank)
    walks = [Walk(seed, 1.0, slots) for seed in range(workers)]
    wall, busy = perf_counter(), process_time()
    in_order(partial(walk_in_pool, pool, changes, ENDLESS), walks, workers)
    wall, busy = perf_counter() - wall, process_time() - busy
    tried = sum(count for one in pool for _, _, count in one.counted())
    return Row(objective, ranks, workers, tried / busy, busy / wall)


def table(rows: Sequence[Row]) -> Iterator[str]:
    """The rows as a Markdown table."""
    yield "| objective | ranks | threads | changes a processor second | busy |"
    yield "|---|--:|--:|--:|--:|"
    for row in rows:
        yield (
            f"| {row.objective} | {row.ranks:,} | {row.workers} "
            f"| {row.a_second:,.0f} | {row.busy:.2f} |"
        )


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the table, write the JSON; 0."""
    parser = argparse.ArgumentParser("python -m benchmarks.walks")
    parser.add_argument("--ranks", type=int, nargs="+", default=RANKS)
    parser.add_argument("--workers", type=int, nargs="+", default=WORKERS)
    parser.add_argument("--changes", type=int, default=CHANGES)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(arguments)
    rows = [
        measure(objective, ranks, workers, options.changes)
        for objective in OBJECTIVES
        for ranks in options.ranks
        for workers in options.workers
    ]
    print(*table(rows), sep="\n")
    if options.json:
        found = [asdict(row) for row in rows]
        options.json.write_text(json.dumps(found, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
