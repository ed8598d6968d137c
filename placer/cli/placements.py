"""Placements named on the command line: plans, baselines, host files, launchers."""

from __future__ import annotations

from dataclasses import replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, cast

from placer.cli.plan_inputs import Given, given_inputs, stated_inputs
from placer.errors import InputError, Problem
from placer.files import is_file

if TYPE_CHECKING:
    from placer.job.model import Job
    from placer.placement.inputs import Inputs
    from placer.placement.launcher_orders import LauncherName
    from placer.placement.plan import Plan

KINDS = ("plan", "baseline", "hostfile", "launcher")
KINDS_HELP = (
    "a plan file, baseline:NAME, hostfile:FILE or launcher:NAME (what a launcher does "
    "if told no order; see predict --list)"
)


def two_placements(
    old: str, new: str, options: dict[str, Any]
) -> tuple[Plan, Plan, Job | None]:
    """The two placements as plans, scored again, and their job if it is known.

    What is no plan is one of the machine of ``-t`` and the job of ``-j``, or of those
    that the plan beside it keeps, in its allocation.

    Raises
    ------
    InputError
        If an input cannot be read, is not known or is missing.
    InfeasibleError
        If the hosts have fewer GPUs than the job has ranks.
    """
    named = [_parts(text) for text in (old, new)]
    files = [value for kind, value in named if kind != "launcher"]
    if files.count("-") > 1:
        raise InputError("only one of the two plans can be read from standard input")
    if all(kind != "plan" for kind, _ in named):
        stated = stated_inputs(options, "neither of the two is a plan, which keeps it")
        made = [_made(kind, value, stated, options) for kind, value in named]
        return made[0], made[1], stated.job
    given = given_inputs(options)
    plans = [_plan_file(kind, value) for kind, value in named]
    of_plans = [
        None
        if plan is None
        else _inputs_of_plan(plan, given, options["force"], both=None not in plans)
        for plan in plans
    ]
    known = of_plans[1] or of_plans[0]
    found = [
        _made(kind, value, cast("Inputs", known), options)
        if plan is None
        else _scored(plan, inputs)
        for plan, inputs, (kind, value) in zip(plans, of_plans, named, strict=True)
    ]
    return found[0], found[1], known.job if known else given.job


def _parts(text: str) -> tuple[str, str]:
    """Kind and value of ``KIND:VALUE``; anything else is a plan file.

    Raises
    ------
    InputError
        If it is no file and looks like a kind mistyped.
    """
    kind, colon, value = text.partition(":")
    if colon and kind in KINDS:
        return kind, value
    meant = get_close_matches(kind, KINDS, n=1) if colon and not is_file(text) else []
    if meant:
        hint = f'did you mean "{meant[0]}:{value}"?'
        raise InputError([Problem(f'there is no file "{text}"', hint=hint)])
    return "plan", text


def _plan_file(kind: str, value: str) -> Plan | None:
    from placer.placement.plan_file import read_plan

    return read_plan(value) if kind == "plan" else None


def _inputs_of_plan(
    plan: Plan, given: Given, force: bool, *, both: bool
) -> Inputs | None:
    """What a plan was made of; None for one of ``both`` that does not tell."""
    from placer.api.inputs import inputs_of_plan

    if both and not plan.inputs and None in given:
        return None
    return inputs_of_plan(plan, *given, force=force)


def _made(kind: str, value: str, inputs: Inputs, options: dict[str, Any]) -> Plan:
    """The plan of a placement that is not one yet, under no rules."""
    from placer.api.predict import predict, scored_plan
    from placer.files import read_text, shown_name
    from placer.placement.baselines import baseline
    from placer.placement.hostfile import placement_of_hostfile
    from placer.placement.inputs import Inputs
    from placer.topology.allocation import parse_hosts

    hosts = inputs.machine.node_names
    if options["hosts"] is not None:
        hosts = tuple(parse_hosts(options["hosts"]))
    if kind == "launcher":
        name = cast("LauncherName", value)  # others are refused
        return predict(inputs.topology, inputs.job, name, hosts)
    inputs = Inputs(inputs.topology, inputs.job, hosts)
    if kind == "hostfile":
        placement = placement_of_hostfile(
            read_text(value), inputs.machine, inputs.job.world_size, shown_name(value)
        )
    else:
        placement = baseline(value, inputs.machine, inputs.job, options["seed"])
    return scored_plan(inputs, placement, f"{kind}: {value}")


def _scored(plan: Plan, inputs: Inputs | None) -> Plan:
    """The plan with its score computed again, where its inputs are known."""
    from placer.api.score import score

    if inputs is None:
        return plan
    return replace(plan, score=score(inputs.topology, inputs.job, plan))
