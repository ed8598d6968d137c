"""What `placer calibrate` is given: points in a file, logs of runs, or nccl-tests."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from placer.base.errors import InputError
from placer.calibrate.measurements import (
    Measurements,
    Point,
    decode_measurements,
    step_flops,
    usual_name,
)
from placer.documents import files, parse_document
from placer.job.logged import step_of
from placer.job.model import Job
from placer.logs import nccl_tests
from placer.logs.steps import ENOUGH, LOGS, Steps, log_format
from placer.topology.model import Topology

NCCL_TESTS, POINTS = "nccl-tests", "points"
_PREFIXED = re.compile(r"([a-z-]+):(.+)", re.DOTALL)


@dataclass(frozen=True)
class Given:
    """One source: its text, and what is in it."""

    # `NCCL_TESTS`, a key of `placer.logs.steps.LOGS`, or `POINTS` for anything else.
    kind: str
    path: str
    text: str
    shown: str

    def tables(self, test: str) -> list[nccl_tests.Table]:
        """Tables of nccl-tests."""
        return nccl_tests.read(self.text, self.shown, test)

    def points(self) -> Measurements:
        """A file of points."""
        folder = Path() if self.path == "-" else Path(self.path).parent
        return decode_measurements(parse_document(self.text, self.shown), folder)

    def steps(self) -> Steps:
        """Steps of a log."""
        return LOGS[self.kind][1](self.text, self.shown)


def open_source(source: str) -> Given:
    """A source with its kind, by the name before a colon or by its content."""
    prefixed = _PREFIXED.fullmatch(source)
    kind, path = ("", source) if prefixed is None else (prefixed[1], prefixed[2])
    if kind not in (NCCL_TESTS, *LOGS):
        kind, path = "", source
    text, shown = files.read_text(path), files.shown_name(path)
    if not kind:
        is_table = re.search(nccl_tests.PATTERN, text)
        kind = NCCL_TESTS if is_table else log_format(text) or POINTS
    return Given(kind, path, text, shown)


def measured_by_logs(
    logs: Sequence[Given], job: Job, topology: Topology
) -> tuple[Measurements, list[str]]:
    """The steps of runs of one job as measurements, and what is known of each."""
    if job.world_size > topology.num_gpus:
        message = f"the job has {job.world_size:,} ranks, the machine "
        message += f"{topology.num_gpus:,} usable GPUs"
        raise InputError(message, key="topology", hint="name a larger one")
    name = usual_name(job)
    runs, notes = [], []
    for log in logs:
        steps = log.steps()
        runs.append(step_of(steps, job))
        notes.append(_note(steps) + _rates(steps, job, runs[-1]))
    point = Point(name, topology, job, tuple(runs), source=logs[0].shown)
    return Measurements("logs", job, (point,)), notes


def _rates(steps: Steps, job: Job, step_s: float) -> str:
    """The rate that was logged, and what it is with full attention.

    Megatron-LM counts attention causal, MLPerf and this program full.
    """
    flops = step_flops(job)
    if not (steps.tflops and flops):
        return ""
    rate = flops / (job.world_size * step_s * 1e12)
    logged = median(steps.tflops)
    return f"; {logged:.4g} TFLOP/s a GPU logged, {rate:.4g} with full attention"


def _note(steps: Steps) -> str:
    """How many steps there are, and how they scatter."""
    few = "" if steps.count >= ENOUGH else f", of which {ENOUGH} are better"
    left = f"{steps.left_out} left out: first, or after an evaluation or a checkpoint"
    return (
        f"{steps.source}: median of {steps.count:,} steps{few}, half of them within "
        f"{steps.scatter:.1%}; {left}"
    )
