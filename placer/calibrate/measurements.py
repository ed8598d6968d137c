"""Measured steps of a job, and what else `placer calibrate` is given.

A file of points gives them, or logs of runs; tables of nccl-tests are of links.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import TypeVar

from placer.base.errors import InputError
from placer.base.units import parse_time
from placer.documents import (
    Document,
    Section,
    Value,
    files,
    open_document,
    parse_document,
)
from placer.documents.keys import BOOLEAN, TIME, number, one_of
from placer.job.axes import Parallelism
from placer.job.logged import step_of
from placer.job.memory import RECOMPUTE
from placer.job.model import Job
from placer.job.models import flops_per_sample
from placer.job.read import read_job
from placer.job.resize import resized
from placer.job.work import micro_batch_work
from placer.logs import nccl_tests
from placer.logs.steps import ENOUGH, LOGS, Steps, log_format, read_steps
from placer.topology.allocation import allocate
from placer.topology.model import Topology
from placer.topology.read import read_topology


def step_flops(job: Job) -> float:
    """FLOPs of a step with full attention, as rates are told; 0 without a model."""
    if job.model is None:
        return 0.0
    samples = job.parallelism.dp * job.micro_batches * job.micro_batch
    return samples * flops_per_sample(job.model, job.sequence)


def work_ratio(job: Job, base: Job) -> float:
    """Work of a micro-batch of ``job`` on one GPU, in that of ``base``."""
    if job.model is None or base.model is None:
        return 1.0
    return micro_batch_work(job) / micro_batch_work(base)


def timed(job: Job, time: float, fixed: float = 0.0, step_error: float = 0.0) -> Job:
    """``job`` with these compute times, s."""
    compute = replace(
        job.compute,
        micro_batch_time=time,
        tflops_per_gpu=0.0,
        fixed_time=fixed,
        step_error=step_error,
    )
    return replace(job, compute=compute)


FORMAT = "placer/measurements"
MAX_POINTS = 1000

_MEASURED = ("step_time", "step_times", "tflops_per_gpu", "log")
# What a point may say of its layout, beside how many replicas and micro-batches.
_LAYOUT = ("tp", "cp", "ep", "etp", "pp", "vp", "micro_batch")

_NO_JOB = Job("", Parallelism())  # never seen: its problem is raised first

Read = TypeVar("Read")


@dataclass(frozen=True, eq=False)
class Point:
    """One measured step."""

    name: str  # what people call it
    topology: Topology  # the hosts it ran on, in launch order
    job: Job  # at the size it ran with
    runs_s: tuple[float, ...]  # s: the step of every run measured so
    # s: standard deviation of a run, when it is known otherwise; or 0.
    spread_s: float = 0.0
    fit: bool = True  # whether the fit may use it; a point kept out is only predicted
    source: str = ""  # where the figure comes from; may be empty
    by_rate: bool = False  # whether a rate was measured, from which the step follows
    # Whether it says degrees, a micro-batch or a recompute mode of its own.
    is_layout: bool = False

    @property
    def step_s(self) -> float:
        """The median of the runs, s."""
        return median(self.runs_s)


@dataclass(frozen=True, eq=False)
class Measurements:
    """Measured steps that share one compute time."""

    name: str
    job: Job  # the job whose compute times are asked for
    points: tuple[Point, ...]
    description: str = ""
    sources: tuple[str, ...] = ()


def read_measurements(source: str) -> Measurements:
    """Measurements of a file, or of standard input for ``-``.

    Machines and jobs that are files are named from the folder of this file.
    """
    folder = Path() if source == "-" else Path(source).parent
    return decode_measurements(open_document(source), folder)


def decode_measurements(document: Document, folder: Path) -> Measurements:
    """Measurements of a parsed document; ``folder`` is where its file names start."""
    document.check_format(FORMAT)
    root = document.root
    topology = _input(root.get("topology", required=True), folder, read_topology)
    job = _input(root.get("job", required=True), folder, read_job)
    values = root.items("points", required=True)
    if len(values) > MAX_POINTS:
        root.problem(f"{len(values):,} points; at most {MAX_POINTS:,}", "points")
    points = [
        _point(value.section(), folder, topology, job) for value in values[:MAX_POINTS]
    ]
    known = tuple(point for point in points if point)
    if not document.problems and not any(point.fit for point in known):
        hint = "leave out fit: false where the fit may use a point"
        root.problem("no point to fit", "points", hint)
    measurements = Measurements(
        name=root.text("name", "measurements"),
        job=job or _NO_JOB,
        points=known,
        description=root.text("description", ""),
        sources=tuple(root.texts("sources")),
    )
    document.finish()
    return measurements


def _point(
    section: Section, folder: Path, topology: Topology | None, job: Job | None
) -> Point | None:
    """One point; None, with a problem, when it cannot be used."""
    machine = _input(section.get("topology"), folder, read_topology) or topology
    base = _input(section.get("job"), folder, read_job) or job
    sized = _sized(section, base)
    machine = _hosts(section, machine)
    fit = section.take(BOOLEAN, "fit", True)
    name, source = section.text("name", ""), section.text("source", "")
    runs = _runs_s(section, sized)
    runs += _logged(section, folder, sized)
    spread = section.take(TIME, "spread", 0.0)
    if section.document.problems or machine is None or sized is None:
        return None
    if sized.world_size > machine.num_gpus:
        message = (
            f"the job has {sized.world_size:,} ranks, "
            f"the machine {machine.num_gpus:,} usable GPUs"
        )
        section.problem(message, "dp", "a smaller dp, more hosts or another topology")
        return None
    by_rate = section.has("tflops_per_gpu")
    is_layout = any(section.has(key) for key in (*_LAYOUT, "recompute"))
    called = name or (layout_name(sized) if is_layout else usual_name(sized))
    return Point(called, machine, sized, runs, spread, fit, source, by_rate, is_layout)


def _runs_s(section: Section, job: Job | None) -> tuple[float, ...]:
    """The measured steps, given as times or as the rate people log."""
    given = [key for key in _MEASURED if section.has(key)]
    if len(given) != 1:
        section.problem(f"give one of {', '.join(_MEASURED)}", "step_time")
    runs = [section.take(TIME, "step_time", 0.0)] * section.has("step_time")
    runs += [run.quantity(parse_time) for run in section.items("step_times")]
    rate = section.take(number(maximum=1e9), "tflops_per_gpu", 0.0)
    if section.has("tflops_per_gpu"):
        runs.append(_step_of_rate(section, rate, job))
    for key in (key for key in given if key != "log"):
        if not (runs and min(runs) > 0):
            section.problem("must be above 0", key)
    return tuple(runs)


def _logged(section: Section, folder: Path, job: Job | None) -> tuple[float, ...]:
    """The median step of a run's log."""
    value = section.get("log")
    name = value.text() if value else ""
    if value is None or job is None or not name:
        return ()
    step = value.made(
        lambda: step_of(read_steps(_path(folder, name)), job), default=None
    )
    return () if step is None else (step,)


def _step_of_rate(section: Section, rate: float, job: Job | None) -> float:
    """The step in which the job's FLOPs are done at ``rate`` TFLOP/s a GPU."""
    if job is not None and job.model is None:
        section.problem("needs a job with a model", "tflops_per_gpu")
    if job is None or not rate:
        return rate
    return step_flops(job) / (job.world_size * rate * 1e12)


def _sized(section: Section, job: Job | None) -> Job | None:
    """The job at the size of the point."""
    keys = ("dp", "micro_batches", *_LAYOUT)
    given = {key: section.integer(key, 0) for key in keys if section.has(key)}
    mode = (
        section.take(one_of(RECOMPUTE), "recompute", "")
        if section.has("recompute")
        else ""
    )
    if job is None or section.document.problems:
        return None
    try:
        return resized(job, mode, **given)
    except InputError as error:
        for problem in error.problems:
            key = next(iter(given), "micro_batches")
            section.problem(f"{problem.key}: {problem.message}", key, problem.hint)
        return None


def _hosts(section: Section, topology: Topology | None) -> Topology | None:
    """The hosts of the point in launch order; the whole machine when it names none."""
    value = section.get("hosts")
    if value is None:
        return topology
    hosts = value.text()
    if topology is None or not hosts:
        return None
    return value.made(allocate, topology, hosts, default=None)


def usual_name(job: Job) -> str:
    """What a point is called that has no name."""
    return f"{job.world_size:,} GPUs, {job.micro_batches:,} micro-batches"


def layout_name(job: Job) -> str:
    """What a point with degrees of its own is called."""
    axes = job.parallelism
    degrees = {axis: getattr(axes, axis) for axis in ("tp", "cp", "ep", "pp", "vp")}
    words = [f"{axis} {size}" for axis, size in degrees.items() if size > 1]
    words += [f"dp {axes.dp}", f"b {job.micro_batch}"]
    if job.memory.recompute != "none":
        words.append(job.memory.recompute)
    return ", ".join(words)


def _path(folder: Path, name: str) -> str:
    """A file of the folder, or the name as it is where there is none."""
    beside = folder / name
    return str(beside) if beside.is_file() else name


def _input(
    value: Value | None, folder: Path, read: Callable[[str], Read]
) -> Read | None:
    """The machine, or job, that a value names."""
    text = value.text() if value else ""
    if value is None or not text:
        return None
    try:
        return read(_path(folder, text))
    except InputError as error:
        for problem in error.problems:
            place = f"{problem.source}:{problem.line}: " if problem.source else ""
            value.problem(f"{place}{problem.message}", problem.hint)
        return None


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
