"""The machine and the job of a plan: of ``-t`` and ``-j``, or the presets it names.

A plan names its topology and its job and holds their digests. Where these are those of
presets, or of a synthetic machine, a command needs no ``-t`` and no ``-j``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from placer.cli.options import (
    JOB_HELP,
    TOPOLOGY_HELP,
    hardware_options,
    order_option,
    read_ordered_job,
)

if TYPE_CHECKING:
    from placer.job.model import Job
    from placer.placement.plan import Plan
    from placer.topology.model import Topology

_Function = TypeVar("_Function", bound=Callable[..., Any])


def plan_input_options(function: _Function) -> _Function:
    """``-t``, ``-j`` and what goes with them, which presets make needless."""
    topology = click.option(
        "-t",
        "--topology",
        multiple=True,
        metavar="T",
        help=f"{TOPOLOGY_HELP} Default: the preset or text that the plan names.",
    )
    job = click.option(
        "-j",
        "--job",
        metavar="J",
        help=f"{JOB_HELP} Default: the preset that the plan names.",
    )
    return topology(hardware_options(job(order_option(function))))


def plan_inputs(plan: Plan, options: dict[str, Any]) -> tuple[Topology, Job]:
    """The machine and the job of a plan, ranks numbered as in the plan.

    Parameters
    ----------
    plan : Plan
    options : dict
        Of a command with `plan_input_options`.

    Raises
    ------
    InputError
        If one cannot be read, or is not given and no preset with the plan's digest, or
        the job has other ranks than the plan.
    """
    from placer.placement.planned import planned_job

    return (
        machine_of_plan(plan, options),
        planned_job(job_of_plan(plan, options), plan),
    )


def machine_of_plan(plan: Plan, options: dict[str, Any]) -> Topology:
    """The machine of ``-t``, else the preset or synthetic one that the plan names.

    Raises
    ------
    InputError
        If it cannot be read, or there is none with the plan's digest.
    """
    from placer.cli.machine import read_machine
    from placer.presets import preset_names
    from placer.topology.synthetic import is_synthetic

    if options["topology"]:
        return read_machine(options)
    name = str(plan.topology["name"])
    if name in preset_names("topologies") or is_synthetic(name):
        found = read_machine({**options, "quiet": True}, (name,))
        if found.sha256 == plan.topology.get("sha256"):
            return found
    raise _unknown("topology", name, "-t")


def job_of_plan(plan: Plan, options: dict[str, Any]) -> Job:
    """The job of ``-j``, else the preset that the plan names.

    Raises
    ------
    InputError
        If it cannot be read, or there is none with the plan's digest.
    """
    from placer.presets import preset_names

    order = options.get("order")
    if options["job"] is not None:
        return read_ordered_job(options["job"], order)
    name, digest = str(plan.job["name"]), plan.job.get("sha256")
    if name in preset_names("jobs"):
        # As its file has it, or as a plan made with --order.
        planned = "auto" if plan.job.get("auto_order") else plan.job["order"]
        for numbered in (None, planned) if order is None else (order,):
            found = read_ordered_job(name, numbered)
            if found.sha256 == digest:
                return found
    raise _unknown("job", name, "-j")


def stated_inputs(options: dict[str, Any]) -> list[str]:
    """The ``-t`` and ``-j`` that a later command needs for a plan of these options.

    None for what the plan itself leads to: presets and synthetic machines.
    """
    from placer.presets import preset_names
    from placer.topology.synthetic import is_synthetic

    words = []
    known = preset_names("topologies")
    if not all(text in known or is_synthetic(text) for text in options["topology"]):
        words = [word for text in options["topology"] for word in ("-t", text)]
    for name in ("hardware", "gpus_per_node"):
        if options[name] is not None:
            words += [f"--{name.replace('_', '-')}", str(options[name])]
    for key, tier in options["labels"].items():
        words += ["--label", f"{key}={tier}"]
    if options["job"] not in preset_names("jobs"):
        words += ["-j", options["job"]]
        if options["order"] is not None:
            words += ["--order", options["order"]]
    return words


def _unknown(what: str, name: str, option: str) -> Exception:
    from placer.errors import InputError, Problem

    message = f"the plan was made for {what} {name}, of which there is no such preset"
    return InputError([Problem(message, hint=f"give the {what} with {option}")])
