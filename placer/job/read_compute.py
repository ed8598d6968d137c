"""Reading the ``compute`` mapping of a job: how long its work takes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from placer.base.errors import InputError
from placer.base.units import parse_bandwidth, parse_time
from placer.documents.files import beside
from placer.job.logged import step_of
from placer.job.model import ATTENTION_RATE, Compute
from placer.job.paces import rounds
from placer.logs.formats import read_steps

if TYPE_CHECKING:
    from placer.documents import Section
    from placer.job.model import Job


def decode_compute(root: Section, *, has_model: bool) -> Compute:
    """Times and rates of the work; one that a log tells is `logged` afterwards."""
    section = root.section("compute", required=has_model)
    by_time, by_rate = section.has("micro_batch_time"), section.has("tflops_per_gpu")
    time = section.quantity("micro_batch_time", parse_time) if by_time else 0.0
    rate = section.number("tflops_per_gpu", 1.0, maximum=1e9) if by_rate else 0.0
    by_log = section.has("log")
    hint = "give micro_batch_time (measured), tflops_per_gpu or log"
    if by_log and (by_time or by_rate):
        other = "micro_batch_time" if by_time else "tflops_per_gpu"
        section.problem(f"contradicts {other}", "log", "remove one of them")
    elif by_log and not has_model:
        section.problem("needs a model", "log", "add model, or a time")
    if by_time and by_rate:
        section.problem("contradicts micro_batch_time", "tflops_per_gpu", hint)
    elif by_rate and not has_model:
        section.problem("needs a model", "tflops_per_gpu", "add model, or a time")
    elif has_model and root.has("compute") and not (by_time or by_rate or by_log):
        section.problem("says nothing about the time of the work", hint=hint)
    for key, given, value in (
        ("micro_batch_time", by_time, time),
        ("tflops_per_gpu", by_rate, rate),
    ):
        if given and value == 0.0:
            section.problem("must be above 0", key)
    fixed_time = None
    if section.has("fixed_time"):
        fixed_time = section.quantity("fixed_time", parse_time)
    step_error = section.number("step_error", 0.0, maximum=1000.0)
    attention_rate = section.number("attention_rate", ATTENTION_RATE, maximum=10.0)
    if attention_rate < 0.01:
        section.problem("must be 0.01 or more", "attention_rate")
        attention_rate = ATTENTION_RATE
    return Compute(
        time,
        rate,
        fixed_time,
        step_error,
        attention_rate,
        section.quantity("memory_bandwidth", parse_bandwidth, 0.0),
        section.integer("multiprocessors", 0, minimum=0, maximum=10**6),
        section.number("peak_tflops", 0.0, maximum=1e9),
        section.number("output_tflops", 0.0, maximum=1e9),
    )


def logged(section: Section, job: Job) -> Job:
    """The job with the micro-batch time of the log that ``compute`` names, if any.

    A step is so many micro-batch times of the slowest stage as `rounds` says, and the
    fixed time. What communication was exposed counts as work; ``placer calibrate``
    tells them apart.
    """
    value = section.get("log")
    name = value.text() if value else ""
    if value is None or not name:
        return job
    path = beside(section.document.source, name)
    try:
        step = step_of(read_steps(path), job)
    except InputError as error:
        for problem in error.problems:
            value.problem(problem.message, problem.hint)
        return job
    fixed = job.compute.fixed_s
    if step <= fixed:
        value.problem(f"a step of {step:g} s is no longer than fixed_time {fixed:g} s")
        return job
    time = step - fixed
    for _ in range(3):  # the first is all, but where memory has a rate
        compute = replace(job.compute, micro_batch_time=time)
        time = (step - fixed) / rounds(replace(job, compute=compute))
    return replace(job, compute=replace(job.compute, micro_batch_time=time))
