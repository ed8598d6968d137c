"""Seconds from a signal to the end of the command: ``python -m benchmarks.signals``.

``placer place`` is started again and again and gets SIGTERM after ever more of the time
that it would take. It must end with exit code 143, and with a plan that keeps every
promise once there was a legal placement.
"""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

from benchmarks.command import ROOT, job_file

CASES = (
    ("azure-gb200-mlperf-v6", "llama3.1-405b-mlperf-v6"),
    ("zone:4 block:8 leaf:32 node:16 gpu:4", "llama-405b-65k"),
    ("zone:16 block:16 leaf:64 node:16 gpu:4", "llama-405b-1m"),
)
MOMENTS = 10
TERMINATED = 143


@dataclass(frozen=True)
class Stop:
    """One stopped run.

    Attributes
    ----------
    after_s, latency_s : float, s
        When the signal came, and how long the command took to end.
    exit_code : int
    has_plan : bool
    """

    after_s: float
    latency_s: float
    exit_code: int
    has_plan: bool


def start(topology: str, job: str, output: Path) -> subprocess.Popen[bytes]:
    """The command, started."""
    words = ["place", "-q", "-t", topology, "-j", job_file(job), "-o", str(output)]
    return subprocess.Popen(
        [sys.executable, "-m", "placer", *words], cwd=ROOT, stderr=subprocess.DEVNULL
    )


def stopped(topology: str, job: str, after_s: float) -> Stop | None:
    """A run that gets the signal so late; None when it had ended by then."""
    with TemporaryDirectory() as folder:
        output = Path(folder, "plan.json")
        with start(topology, job, output) as process:
            try:
                process.wait(after_s)
                return None
            except subprocess.TimeoutExpired:
                begin = perf_counter()
                process.send_signal(signal.SIGTERM)
                code = process.wait()
        latency = perf_counter() - begin
        return Stop(after_s, latency, code, output.exists())


def stops(topology: str, job: str, moments: int) -> list[Stop]:
    """Runs stopped at moments spread over the time of a whole one."""
    with TemporaryDirectory() as folder:
        begin = perf_counter()
        with start(topology, job, Path(folder, "plan.json")) as process:
            process.wait()
        whole = perf_counter() - begin
    found = [
        stopped(topology, job, whole * (i + 0.5) / moments) for i in range(moments)
    ]
    return [stop for stop in found if stop is not None]


def table(rows: Sequence[tuple[str, str, list[Stop]]]) -> Iterator[str]:
    """The stops of each case as a Markdown table."""
    yield "| machine | job | signals | longest | with a plan | exit codes |"
    yield "|---|---|--:|--:|--:|---|"
    for topology, job, found in rows:
        longest = max((stop.latency_s for stop in found), default=0.0)
        plans = sum(stop.has_plan for stop in found)
        # A signal before the command listens ends it as any other program.
        codes = sorted({stop.exit_code for stop in found} - {-signal.SIGTERM})
        yield (
            f"| {topology} | {job} | {len(found)} | {longest:.2f} s | {plans} "
            f"| {', '.join(map(str, codes))} |"
        )


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print the table; 0 when every run ended with 143."""
    parser = argparse.ArgumentParser("python -m benchmarks.signals")
    parser.add_argument("--case", nargs=2, action="append", metavar=("T", "J"))
    parser.add_argument("--moments", type=int, default=MOMENTS)
    options = parser.parse_args(arguments)
    rows = [(t, j, stops(t, j, options.moments)) for t, j in options.case or CASES]
    print(*table(rows), sep="\n")
    expected = {TERMINATED, -signal.SIGTERM}
    return int(any(s.exit_code not in expected for _, _, found in rows for s in found))


if __name__ == "__main__":
    sys.exit(main())
