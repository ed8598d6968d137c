"""Placements named on the command line: plans, baselines, host files, launchers."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from placer.cli.plan_inputs import job_of_plan, plan_inputs

if TYPE_CHECKING:
    from placer.job.model import Job
    from placer.placement.plan import Plan
    from placer.topology.model import Topology

KINDS = ("plan", "baseline", "hostfile", "launcher")
KINDS_HELP = (
    "a plan file, baseline:NAME, hostfile:FILE or launcher:NAME (what a launcher does "
    "if told no order; see predict --list)"
)


def two_placements(
    old: str, new: str, options: dict[str, Any]
) -> tuple[Plan, Plan, Job | None]:
    """The two placements as plans with their scores, and their job if it is known.

    What is no plan is one of the machine of ``-t`` and the job of ``-j``, or of those
    that the plan beside it names.

    Raises
    ------
    InputError
        If an input cannot be read, is not known or is missing.
    InfeasibleError
        If the hosts have fewer GPUs than the job has ranks.
    """
    from placer.errors import InputError

    named = [_parts(text) for text in (old, new)]
    files = [value for kind, value in named if kind != "launcher"]
    if files.count("-") > 1:
        raise InputError("only one of the two plans can be read from standard input")
    plans = [_plan_file(kind, value) for kind, value in named]
    known = [plan for plan in reversed(plans) if plan is not None]
    if len(known) == 2 and not (options["topology"] and options["job"]):
        return known[1], known[0], _job_if_known(known, options)
    machine, job = _inputs(known, options)
    found = [
        _made(kind, value, machine, job, options)
        if plan is None
        else _scored(plan, machine, job)
        for plan, (kind, value) in zip(plans, named, strict=True)
    ]
    return found[0], found[1], job


def _parts(text: str) -> tuple[str, str]:
    """Kind and value of ``KIND:VALUE``; anything else is a plan file."""
    kind, colon, value = text.partition(":")
    return (kind, value) if colon and kind in KINDS else ("plan", text)


def _plan_file(kind: str, value: str) -> Plan | None:
    from placer.placement.plan_file import read_plan

    return read_plan(value) if kind == "plan" else None


def _job_if_known(plans: list[Plan], options: dict[str, Any]) -> Job | None:
    """The job of ``-j``, or of a plan that names a preset."""
    from placer.errors import InputError

    for plan in plans:
        try:
            return job_of_plan(plan, options)
        except InputError:
            if options["job"] is not None:
                raise
    return None


def _inputs(plans: list[Plan], options: dict[str, Any]) -> tuple[Topology, Job]:
    """Machine and job of ``-t`` and ``-j``, or of one of the plans."""
    from placer.cli.machine import read_machine
    from placer.cli.options import read_ordered_job
    from placer.errors import InputError, Problem

    if plans:
        return plan_inputs(plans[0], options)
    missing = [f"-{key[0]}" for key in ("topology", "job") if not options[key]]
    if missing:
        message = "neither of the two is a plan that names its machine and job"
        raise InputError([Problem(message, hint=f"give {' and '.join(missing)}")])
    return read_machine(options), read_ordered_job(options["job"], options["order"])


def _made(
    kind: str, value: str, machine: Topology, job: Job, options: dict[str, Any]
) -> Plan:
    """The plan of a placement that is not one yet."""
    from placer.api.predict import predict, scored_plan
    from placer.files import read_text, shown_name
    from placer.placement.baselines import baseline
    from placer.placement.hostfile import placement_of_hostfile
    from placer.topology.allocation import allocate

    if kind == "launcher":
        return predict(machine, job, value, options["hosts"])
    allocated = allocate(machine, options["hosts"])
    if kind == "hostfile":
        placement = placement_of_hostfile(
            read_text(value), allocated, job.world_size, shown_name(value)
        )
    else:
        placement = baseline(value, allocated, job, options["seed"])
    return scored_plan(allocated, job, placement, f"{kind}: {value}")


def _scored(plan: Plan, machine: Topology, job: Job) -> Plan:
    """The plan, with a score if it has none."""
    from placer.api.score import score

    return plan if plan.score else replace(plan, score=score(machine, job, plan))
