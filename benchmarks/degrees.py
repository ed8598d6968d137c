"""Processor time and memory of a search for degrees: ``python -m benchmarks.degrees``.

``placer tune`` from start to the table, in a process of its own: all legal choices for
4,096 GPUs of a preset, on a machine of NVLink racks, on what others left of one, and on
hosts. Where hosts are smaller than what the job of the preset requires to lie together,
the requirement is left out.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.command import run

ROOT = Path(__file__).resolve().parents[1]
GPUS = 4096
# Racks of the machine that others left trays of, and the GPUs of a tray.
BLOCKS, RACKS, TRAYS, TRAY = 16, 4, 18, 4
JOBS = ("llama3.1-405b-mlperf-v6", "deepseek-v3-mlperf-v6")
BATCH = {"llama3.1-405b-mlperf-v6": 1024}


@dataclass(frozen=True)
class Case:
    """A machine and a job.

    Attributes
    ----------
    title, topology, job : str
    used : float
        Share of the GPUs left that the job takes; 0 where the whole machine is free.
    requires : bool
        Whether what the job requires still holds.
    """

    title: str
    topology: str
    job: str
    used: float = 0.0
    requires: bool = True


CASES = tuple(
    case
    for job in JOBS
    for case in (
        Case("GB200", "azure-gb200-mlperf-v6", job),
        Case("GB200, 93 % of what is left", "azure-gb200-mlperf-v6", job, used=0.93),
        Case("H100", "azure-ndh100-v5", job, requires=False),
    )
)


@dataclass(frozen=True)
class Row:
    """What a search takes, and what it proves."""

    case: Case
    choices: int
    cpu_s: float
    peak_bytes: int
    step_s: float
    gap: float


def measure(case: Case, gpus: int) -> Row:
    """The row of one case."""
    with TemporaryDirectory() as folder:
        output = Path(folder, "rows.json")
        words = ["tune", "-q", "-t", case.topology, "-j", job_file(case, Path(folder))]
        words += ["--gpus", str(gpus), "--time-limit", "600"]
        if case.job in BATCH:
            words += ["--global-batch", str(BATCH[case.job])]
        if case.used:
            hosts = Path(folder, "hosts")
            hosts.write_text("\n".join(hosts_left(round(gpus / case.used / TRAY))))
            words += ["--hosts", f"@{hosts}"]
        words += ["--format", "json"]
        with output.open("w") as file:
            timed = run([sys.executable, "-m", "placer", *words], file)
        found = json.loads(output.read_text())
    step_s = found["rows"][0]["step_time_s"]
    gap = max(0.0, 1 - found["lower_bound_s"] / step_s)
    choices = found["considered"]
    return Row(case, choices, timed.cpu_s, timed.peak_bytes, step_s, gap)


def hosts_left(count: int, seed: int = 7) -> list[str]:
    """Names of so many trays of 64 racks, drawn at random."""
    sizes = (range(1, size + 1) for size in (BLOCKS, RACKS, TRAYS))
    names = [f"b{block:02}-r{rack}-n{tray:02}" for block, rack, tray in product(*sizes)]
    return sorted(random.Random(seed).sample(names, count))


def job_file(case: Case, folder: Path) -> str:
    """The job's preset; a file without its requirement where that cannot hold."""
    if case.requires:
        return case.job
    lines = (ROOT / "jobs" / f"{case.job}.yaml").read_text().splitlines(keepends=True)
    file = folder / "job.yaml"
    file.write_text("".join(line for line in lines if not line.startswith("require:")))
    return str(file)


def table(rows: Sequence[Row]) -> Iterator[str]:
    """The rows as a Markdown table."""
    yield "| machine | job | choices | CPU | memory | best step | gap |"
    yield "|---|---|--:|--:|--:|--:|--:|"
    for row in rows:
        # Rounded up, so as not to promise too much.
        gap = math.ceil(row.gap * 1e5) / 1e5
        yield (
            f"| {row.case.title} | {row.case.job} | {row.choices:,} "
            f"| {row.cpu_s:.0f} s | {row.peak_bytes / 1e6:,.0f} MB "
            f"| {row.step_s:.4g} s | {gap:.3%} |"
        )


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print the table; 0."""
    parser = argparse.ArgumentParser("python -m benchmarks.degrees")
    parser.add_argument("--gpus", type=int, default=GPUS)
    parser.add_argument("--only", default="", metavar="TEXT", help="in machine or job")
    options = parser.parse_args(arguments)
    cases = (case for case in CASES if options.only in f"{case.title} {case.job}")
    print(*table([measure(case, options.gpus) for case in cases]), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
