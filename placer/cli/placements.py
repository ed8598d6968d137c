"""Placements named on the command line: plans, baselines, host files, launchers."""

from __future__ import annotations

from dataclasses import replace
from difflib import get_close_matches
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import click

import placer
from placer.base.errors import InputError
from placer.cli.grouped import PlanCommand, command
from placer.cli.inputs import given_inputs, plan_inputs, stated_inputs
from placer.cli.options import hosts_of, teller
from placer.documents.files import is_file, read_text, shown_name

if TYPE_CHECKING:
    from placer.placement.inputs import Inputs
    from placer.placement.launcher_orders import LauncherName

KINDS = ("plan", "baseline", "hostfile", "launcher")
KINDS_HELP = (
    "a plan file, launcher:NAME (what a launcher does by itself), baseline:NAME or "
    "hostfile:FILE"
)
# Of a command that takes a placement.
plan_command = partial(
    command,
    cls=PlanCommand,
    after=f"PLAN is {KINDS_HELP}; the last three need -t and -j. `placer score --list` "
    "lists the names.",
)
_WHY = "only a plan keeps them"


def read_placement(
    text: str, options: dict[str, Any]
) -> tuple[placer.Plan, Inputs | None]:
    """A placement as a plan, and what it is one of unless a plan file keeps that.

    ``text``: a plan file, or ``KIND:VALUE``. ``options``: of a command with
    `shared.placement`. Raises `InfeasibleError` if the hosts have fewer GPUs than the
    job has ranks.
    """
    kind, value = parts(text)
    if kind == "plan":
        return placer.read_plan(value), None
    inputs = stated_inputs(options, _WHY)
    return made(kind, value, inputs, options), inputs


def placement_alone(text: str, options: dict[str, Any]) -> placer.Plan:
    """A placement as a plan, for what looks at no more than the plan.

    Parameters and errors are those of `read_placement`. ``-t`` and ``-j`` beside a plan
    file change nothing, and must be what it was made for; ``--hosts`` is refused there.
    """
    if parts(text)[0] == "plan" and options["hosts"]:
        raise click.UsageError("--hosts is for a PLAN that is no plan file.")
    plan, inputs = read_placement(text, options)
    if inputs is None and (options["topology"] or options["job"]):
        plan_inputs(plan, options)
    return plan


def with_inputs(text: str, options: dict[str, Any]) -> tuple[placer.Plan, Inputs]:
    """A placement as a plan, and what it is one of.

    Parameters and errors are those of `read_placement`. ``--hosts`` is the allocation
    of a plan too.
    """
    plan, inputs = read_placement(text, options)
    if inputs is None:
        inputs = allocated(plan_inputs(plan, options), options)
    return plan, inputs


def allocated(inputs: Inputs, options: dict[str, Any]) -> Inputs:
    """The inputs in the allocation of ``--hosts``, where that is given."""
    if (hosts := hosts_of(options)) is None:
        return inputs
    return replace(inputs, hosts=tuple(hosts), exclude=())


def two_placements(
    old: str, new: str, options: dict[str, Any]
) -> tuple[placer.Plan, placer.Plan, placer.Job | None]:
    """The two placements as plans, scored again, and their job if it is known.

    What is no plan is one of the machine of ``-t`` and the job of ``-j``, or of those
    that the plan beside it keeps, in its allocation.

    Raises `InfeasibleError` if the hosts have fewer GPUs than the job has ranks.
    """
    from placer.api.inputs import inputs_of_plan

    named = [parts(text) for text in (old, new)]
    files = [value for kind, value in named if kind != "launcher"]
    if files.count("-") > 1:
        raise InputError("only one of the two plans can be read from standard input")
    if all(kind != "plan" for kind, _ in named):
        stated = stated_inputs(
            options, "neither of the two is a plan, which keeps them"
        )
        before, after = (made(*one, stated, options) for one in named)
        return before, after, stated.job
    given = given_inputs(options)
    plans = [
        placer.read_plan(value) if kind == "plan" else None for kind, value in named
    ]
    # One of two plans need not tell what it was made of.
    is_free = None in given and None not in plans
    of_plans = [
        inputs_of_plan(plan, *given, force=options["force"])
        if plan and (plan.inputs or not is_free)
        else None
        for plan in plans
    ]
    known = of_plans[1] or of_plans[0]
    found = []
    for plan, inputs, (kind, value) in zip(plans, of_plans, named, strict=True):
        if plan is None:
            plan = made(kind, value, cast("Inputs", known), options)
        elif inputs is not None:
            score = placer.score(inputs.topology, inputs.job, plan)
            plan = replace(plan, score=score)
        found.append(plan)
    return found[0], found[1], known.job if known else given.job


def parts(text: str) -> tuple[str, str]:
    """Kind and value of ``KIND:VALUE``; anything else is a plan file."""
    kind, colon, value = text.partition(":")
    if colon and kind in KINDS:
        if value:
            return kind, value
        hint = "launcher:NAME, baseline:NAME, hostfile:FILE or a plan file"
        raise InputError(f'"{text}" names no {kind}', hint=hint)
    meant = get_close_matches(kind, KINDS, n=1) if colon and not is_file(text) else []
    if meant:
        hint = f'did you mean "{meant[0]}:{value}"?'
        raise InputError(f'there is no file "{text}"', hint=hint)
    return "plan", text


def made(kind: str, value: str, inputs: Inputs, options: dict[str, Any]) -> placer.Plan:
    """The plan of a placement that is not one yet, under no rules."""
    from placer.api.predict import scored_plan
    from placer.placement.baselines import baseline
    from placer.placement.inputs import Inputs
    from placer.placement.rank_maps import placement_of_hostfile

    given = hosts_of(options)
    hosts = inputs.machine.node_names if given is None else given
    if kind == "launcher":
        name = cast("LauncherName", value)  # others are refused
        return placer.predict(inputs.topology, inputs.job, name, hosts)
    inputs = Inputs.given(inputs.topology, inputs.job, hosts)
    if kind == "hostfile":
        placement = placement_of_hostfile(
            read_text(value), inputs.machine, inputs.job.world_size, shown_name(value)
        )
    else:
        placement = baseline(value, inputs.machine, inputs.job, options["seed"])
    return scored_plan(inputs, placement, f"{kind}: {value}")


def note_violations(
    plan: placer.Plan,
    machine: placer.Topology,
    job: placer.Job,
    options: dict[str, Any],
) -> None:
    """Say what the plan breaks, unless the command is quiet."""
    from placer.placement.check import violations

    for broken in violations(plan, machine, job):
        teller(options)(broken)
