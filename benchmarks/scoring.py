"""Seconds to score one placement, by size: ``python -m benchmarks.scoring``.

Racks of 64 GPUs in blocks of 8 racks, and the Llama 3.1 405B preset (TP 4, CP 2, PP 8)
with ever more replicas. Two placements: `aligned`, a replica a rack, where all replicas
are alike, and `shuffled`, where every stage of 8 ranks lies anywhere and replicas
differ. The machine, the job and the model are built beforehand; what is timed is
``StepModel.step(gpu_of_rank).step_time_s``, nothing remembered from the run before.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from placer.cost.schedule import pipeline_time
from placer.cost.step import StepModel
from placer.job.read import read_job
from placer.job.resize import resized
from placer.topology.read import read_topology

if TYPE_CHECKING:
    from placer.job.model import Job
    from placer.topology.model import Topology

IntArray = npt.NDArray[np.int64]

RANKS = (8_192, 32_768, 98_304, 262_144, 1_048_576)
RACK = 64
RACKS_OF_BLOCK = 8
JOB = "llama3.1-405b-mlperf-v6"
RUNS = 20


@dataclass(frozen=True)
class Row:
    """Times at one size.

    Attributes
    ----------
    ranks : int
    aligned_s, shuffled_s : float, s
        Median time of scoring each placement.
    """

    ranks: int
    aligned_s: float
    shuffled_s: float


def case(ranks: int) -> tuple[Topology, Job]:
    """The machine and the job of a size, a multiple of 512 ranks."""
    blocks = ranks // (RACK * RACKS_OF_BLOCK)
    topology = read_topology(f"block:{blocks} rack:{RACKS_OF_BLOCK} gpu:{RACK}")
    return topology, resized(read_job(JOB), dp=ranks // RACK)


def measure(ranks: int, runs: int) -> Row:
    """The times at one size."""
    topology, job = case(ranks)
    model = StepModel(topology, job)
    aligned = np.arange(ranks)
    stages = aligned.reshape(-1, job.parallelism.tp * job.parallelism.cp)
    shuffled = np.random.default_rng(0).permutation(stages).ravel()
    return Row(
        ranks,
        step_seconds(model, aligned, runs),
        step_seconds(model, shuffled, runs),
    )


def step_seconds(model: StepModel, gpu_of_rank: IntArray, runs: int) -> float:
    """Median seconds of scoring; one run before the count warms up."""

    def run() -> float:
        # A replica timed before is remembered: that would time a dictionary.
        pipeline_time.cache_clear()
        start = perf_counter()
        _ = model.step(gpu_of_rank).step_time_s
        return perf_counter() - start

    run()
    return median(run() for _ in range(runs))


def exponent(rows: Sequence[Row], time: Callable[[Row], float]) -> float:
    """The ``k`` of ``time ~ ranks^k``, fitted by least squares; nan for one size."""
    if len(rows) < 2:
        return math.nan
    sizes = np.log([row.ranks for row in rows])
    times = np.log([time(row) for row in rows])
    return float(np.polyfit(sizes, times, 1)[0])


def table(rows: Sequence[Row]) -> Iterator[str]:
    """The rows as a Markdown table, and how the times grow."""
    yield "| ranks | aligned | shuffled |"
    yield "|--:|--:|--:|"
    for row in rows:
        yield (
            f"| {row.ranks:,} | {row.aligned_s * 1e3:,.1f} ms "
            f"| {row.shuffled_s * 1e3:,.1f} ms |"
        )
    aligned = exponent(rows, lambda row: row.aligned_s)
    shuffled = exponent(rows, lambda row: row.shuffled_s)
    yield f"| time ~ ranks^k, k = | {aligned:.2f} | {shuffled:.2f} |"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the table, write the JSON; 0."""
    parser = argparse.ArgumentParser("python -m benchmarks.scoring")
    parser.add_argument("--ranks", type=int, nargs="+", default=RANKS)
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--json", type=Path, help="write the rows here")
    options = parser.parse_args(arguments)
    for ranks in options.ranks:
        if ranks < 1 or ranks % (RACK * RACKS_OF_BLOCK):
            parser.error(f"{ranks} is no multiple of {RACK * RACKS_OF_BLOCK}")
    rows = [measure(ranks, options.runs) for ranks in options.ranks]
    print(*table(rows), sep="\n")
    if options.json:
        options.json.write_text(json.dumps([asdict(row) for row in rows], indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
