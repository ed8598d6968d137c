"""Seconds and memory of the whole command: ``python -m benchmarks.command``.

``placer place`` from start to the written plan, in a process of its own, on named
presets, on the instances of the placement benchmark (as files) or on large machines:
start of the interpreter, reading, search, bound, score of the baselines, check and plan
file. Wall time is the median of some runs, memory the largest resident size of any of
them.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import TextIO

ROOT = Path(__file__).resolve().parents[1]
CASES = (
    ("dgx-h100-4x8", "quickstart"),
    ("azure-gb200-mlperf-v6", "llama3.1-405b-mlperf-v6"),
    ("azure-ndh100-v5", "gpt3-175b-mlperf-v3.1"),
    ("meta-llama3-24k", "llama3-405b-16k"),
    ("gb200-83k", "llama3.1-405b-mlperf-v6"),
    ("h100-131k", "llama3-405b-16k-long"),
)
# Machines of any size by the same rule: hosts of 4 GPUs, hosts of 8, leaves of 72.
LARGE = (
    ("zone:4 block:8 leaf:32 node:16 gpu:4", "llama-405b-65k"),
    ("zone:8 block:16 leaf:32 node:16 gpu:4", "llama-405b-262k"),
    ("zone:16 block:16 leaf:64 node:16 gpu:4", "llama-405b-1m"),
    ("zone:16 block:16 leaf:64 node:8 gpu:8", "llama-405b-1m"),
    ("zone:16 block:16 leaf:57 node:18 gpu:4", "llama-405b-1m"),
)
RUNS = 5


@dataclass(frozen=True)
class Run:
    """One run of the command."""

    wall_s: float
    peak_bytes: int
    cpu_s: float


@dataclass(frozen=True)
class Row:
    """What the command takes on one pair of presets.

    Attributes
    ----------
    topology, job : str
    objective : str
    ranks : int
    wall_s : float, s
        Median.
    peak_bytes : int, bytes
        Largest resident size.
    status : str
        ``optimal`` or ``feasible``.
    gap : float
    """

    topology: str
    job: str
    objective: str
    ranks: int
    wall_s: float
    peak_bytes: int
    status: str
    gap: float


def measure(topology: str, job: str, runs: int, objective: str | None = None) -> Row:
    """The row of one pair: presets, files, a text for T, a job of this folder for J."""
    with TemporaryDirectory() as folder:
        output = Path(folder, "plan.json")
        words = ["place", "-q", "-t", topology, "-j", job_file(job)]
        words += ["-o", str(output), "--effort", "normal"]
        if objective:
            words += ["--objective", objective]
        timed = [run([sys.executable, "-m", "placer", *words]) for _ in range(runs)]
        plan = json.loads(output.read_text())
    return Row(
        topology,
        job,
        plan["bound"]["objective"],
        plan["world_size"],
        median(one.wall_s for one in timed),
        max(one.peak_bytes for one in timed),
        plan["bound"]["status"],
        plan["bound"]["gap"],
    )


def measure_instance(name: str, runs: int, objective: str) -> Row:
    """The row of an instance of the placement benchmark."""
    with TemporaryDirectory() as folder:
        words = [name, folder, "--objective", objective]
        run([sys.executable, "-m", "benchmarks.files", *words])
        machine, job = (
            str(Path(folder, f"{part}.json")) for part in ("machine", "job")
        )
        found = measure(machine, job, runs, objective)
    return replace(found, topology=name, job=name)


def job_file(job: str) -> str:
    """The file of a job of this folder; any other job as it is."""
    own = ROOT / "benchmarks" / "jobs" / f"{job}.yaml"
    return str(own) if own.exists() else job


def run(command: Sequence[str], output: TextIO | None = None) -> Run:
    """Wall and processor time, and peak memory, of a command that must succeed.

    What it prints goes to ``output``, if given.

    Linux counts the memory of the process that starts another one into the peak of the
    latter, so this module imports nothing large.

    Raises
    ------
    subprocess.CalledProcessError
        If the command fails.
    """
    start = perf_counter()
    with subprocess.Popen(command, cwd=ROOT, stdout=output) as process:
        _, status, usage = os.wait4(process.pid, 0)
        wall = perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    unit = 1 if sys.platform == "darwin" else 1024
    cpu_s = usage.ru_utime + usage.ru_stime  # its workers included
    return Run(wall, usage.ru_maxrss * unit, cpu_s)


def table(rows: Sequence[Row]) -> Iterator[str]:
    """The rows as a Markdown table."""
    yield "| machine | job | objective | ranks | wall | memory | result |"
    yield "|---|---|---|--:|--:|--:|---|"
    for row in rows:
        # Rounded up, so as not to promise too much.
        gap = f"gap {math.ceil(row.gap * 1e5) / 1e5:.3%}"
        proof = row.status if row.status == "optimal" else gap
        yield (
            f"| {row.topology} | {row.job} | {row.objective} | {row.ranks:,} "
            f"| {row.wall_s:.2f} s | {row.peak_bytes / 1e6:,.0f} MB | {proof} |"
        )


def read(path: Path) -> list[Row]:
    """The rows of a file; none when it is not there."""
    rows = json.loads(path.read_text()) if path.exists() else []
    return [Row(**row) for row in rows]


def merged(rows: Sequence[Row], earlier: Sequence[Row]) -> list[Row]:
    """Earlier rows, those measured again replaced, and the others after them."""
    every = {(row.topology, row.job, row.objective): row for row in (*earlier, *rows)}
    return list(every.values())


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the table, write the JSON; 0."""
    parser = argparse.ArgumentParser("python -m benchmarks.command")
    parser.add_argument(
        "--case",
        nargs=2,
        action="append",
        metavar=("T", "J"),
        help="machine and job; may be given again (default: some presets)",
    )
    parser.add_argument("--large", action="store_true", help="up to a million GPUs")
    parser.add_argument("--instances", default="", help="A,B,... instead of presets")
    parser.add_argument("--objective", choices=("time", "hop-cost"))
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--json", type=Path, help="rows; earlier ones are kept")
    options = parser.parse_args(arguments)
    objective = options.objective
    if options.instances:
        rows = [
            measure_instance(name, options.runs, objective or "hop-cost")
            for name in options.instances.split(",")
        ]
    else:
        pairs = options.case or (LARGE if options.large else CASES)
        rows = [measure(t, j, options.runs, objective) for t, j in pairs]
    print(*table(rows), sep="\n")
    if options.json:
        every = merged(rows, read(options.json))
        options.json.write_text(json.dumps([asdict(row) for row in every], indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
