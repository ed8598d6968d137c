"""``placer score``: what a placement costs, without solving."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from placer.cli import complete
from placer.cli.grouped import PlanCommand
from placer.cli.options import (
    format_option,
    hosts_option,
    quiet_option,
    seed_option,
    share,
)
from placer.cli.plan_inputs import (
    plan_input_options,
    plan_inputs,
    stated_inputs,
)

if TYPE_CHECKING:
    from placer.job.model import Job
    from placer.placement.inputs import Inputs
    from placer.placement.placement import Placement
    from placer.placement.plan import Plan
    from placer.topology.model import Topology


def _noise(
    context: click.Context, option: click.Parameter, text: str | None
) -> dict[str, float] | float | None:
    """Deviations by name that ``compute=0.05%,block=2%`` means, or the one for all."""
    if text is None or "=" not in text:
        return share(context, option, text)
    found: dict[str, float] = {}
    for item in text.split(","):
        name, _, value = (part.strip() for part in item.partition("="))
        deviation = share(context, option, value)
        if not name or name in found or deviation is None:
            raise click.BadParameter(
                f"{text!r} is not NAME=SHARE,... with each name once"
            )
        found[name] = deviation
    return found


@click.command(
    cls=PlanCommand, epilog="Example: placer score plan.json --baseline sorted-hosts"
)
@click.argument("source", metavar="[PLAN]", required=False)
@plan_input_options
@click.option(
    "--plan",
    metavar="P",
    shell_complete=complete.files,
    help="The same as the argument.",
)
@click.option(
    "--hostfile",
    metavar="F",
    shell_complete=complete.files,
    help="Score ranks as a host file, rankfile or rank map places them.",
)
@click.option(
    "--baseline",
    metavar="NAME",
    shell_complete=complete.baselines,
    help="Score a usual placement: given-order, sorted-hosts, megatron-default, "
    "replica-major or random.",
)
@hosts_option
@seed_option
@click.option(
    "--explain",
    is_flag=True,
    help="Say why: critical path, worst groups, slowest replica, busiest links.",
)
@click.option(
    "--jitter",
    callback=_noise,
    metavar="NOISE",
    help="Also how steps spread when in each of them every GPU and scale-out link is "
    "slower or faster at random: 0.05%, or compute=0.05%,block=2%.",
)
@click.option(
    "--samples",
    type=click.IntRange(2, 1_000_000),
    default=1000,
    show_default=True,
    help="Steps that --jitter draws.",
)
@format_option("text", "json", "html")
@quiet_option("No notes.")
def score(**options: Any) -> None:
    """Score a placement without a search.

    A plan keeps its topology, job and allocation. Without one, a host file and a
    baseline need -t and -j.
    """
    from placer.api.score import score as score_of
    from placer.assumed import all_assumed, assumed_entry
    from placer.cli.output import write_line, write_text
    from placer.placement.build import topology_section
    from placer.placement.check import violations
    from placer.placement.plan import period_of
    from placer.placement.plan_encode import json_text
    from placer.report.assumed_text import assumed_lines
    from placer.report.explain_text import explain_text
    from placer.report.jitter_text import jitter_text
    from placer.report.score_text import score_text

    placement, inputs = _placement(options)
    machine, job = inputs.machine, inputs.job
    if options["format_name"] == "html":
        write_text("-", _page(placement, inputs, options))
        return
    found = score_of(machine, job, placement)
    found |= assumed_entry(all_assumed(machine, job))
    if options["explain"]:
        found["explain"] = _explained(machine, job, placement)
    if options["jitter"] is not None:
        found["jitter"] = _jittered(machine, job, placement, options)
    if not options["quiet"]:
        for broken in violations(placement, machine, job):
            click.echo(f"note: {broken}", err=True)
    if options["format_name"] == "json":
        write_text("-", json_text(found))
    else:
        seen = topology_section(machine)
        tiers, scale_up = seen["tiers"], seen["scale_up"]
        parts = [score_text(found, tiers, scale_up)]
        if options["explain"]:
            text = explain_text(found["explain"], tiers, scale_up, period_of(found))
            parts.append(text)
        if options["jitter"] is not None:
            parts.append(jitter_text(found["jitter"], found["step_time_s"]))
        parts.append("\n".join(assumed_lines(found.get("assumed", ()))))
        write_line("\n\n".join(filter(None, parts)))


def _page(placement: Placement | Plan, inputs: Inputs, options: dict[str, Any]) -> str:
    """The report page of the placement alone."""
    from placer.api.predict import scored_plan
    from placer.api.report import report_html
    from placer.placement.build import placement_of_plan
    from placer.placement.plan import Plan

    path = ""
    if isinstance(placement, Plan):
        path = str(options["plan"] or options["source"])
        placement = placement_of_plan(placement, inputs.machine)
    named = [options[key] for key in ("baseline", "hostfile", "plan", "source")]
    name = str(next(filter(None, named), ""))
    plan = scored_plan(inputs, placement, name)
    return report_html(plan, None, names=("", name), path=path)


def _placement(options: dict[str, Any]) -> tuple[Placement | Plan, Inputs]:
    """The placement that is asked for, and what it is one of."""
    from placer.files import read_text, shown_name
    from placer.placement.baselines import baseline
    from placer.placement.hostfile import placement_of_hostfile
    from placer.topology.allocation import parse_hosts

    hostfile, name = options["hostfile"], options["baseline"]
    if hostfile is not None and name is not None:
        raise click.UsageError("Give --hostfile or --baseline, not both.")
    plan = _plan(options)
    if plan is None and hostfile is None and name is None:
        raise click.UsageError("Give PLAN, --hostfile or --baseline.")
    inputs = _inputs(plan, options)
    if options["hosts"] is not None:
        inputs = replace(inputs, hosts=tuple(parse_hosts(options["hosts"])), exclude=())
    machine, job = inputs.machine, inputs.job
    if name is not None:
        return baseline(name, machine, job, options["seed"]), inputs
    if plan is not None and hostfile is None:
        return plan, inputs
    text, shown = read_text(hostfile), shown_name(hostfile)
    return placement_of_hostfile(text, machine, job.world_size, shown), inputs


def _plan(options: dict[str, Any]) -> Plan | None:
    """The plan that is given, as the argument or as the option."""
    from placer.placement.plan_file import read_plan

    source = options["source"]
    if options["plan"] is not None:
        if source is not None:
            raise click.UsageError("Give PLAN or --plan, not both.")
        source = options["plan"]
    return None if source is None else read_plan(source)


def _inputs(plan: Plan | None, options: dict[str, Any]) -> Inputs:
    """What the plan was made of, or what the options say."""
    if plan is not None:
        return plan_inputs(plan, options)
    return stated_inputs(options, "only a plan keeps it")


def _explained(
    machine: Topology, job: Job, placement: Placement | Plan
) -> dict[str, Any]:
    """The facts behind the score."""
    from placer.cost.explain import explain
    from placer.cost.step import StepModel

    return explain(StepModel(machine, job), _bare(placement, machine))


def _jittered(
    machine: Topology, job: Job, placement: Placement | Plan, options: dict[str, Any]
) -> dict[str, Any]:
    """The spread of the score over steps."""
    from placer.cost.jitter import jitter_score
    from placer.cost.step import StepModel

    gpu_of_rank = _bare(placement, machine).gpu_of_rank
    noise, samples, seed = options["jitter"], options["samples"], options["seed"]
    return jitter_score(StepModel(machine, job), gpu_of_rank, noise, samples, seed)


def _bare(placement: Placement | Plan, machine: Topology) -> Placement:
    """The placement, or that of the plan."""
    from placer.placement.build import placement_of_plan
    from placer.placement.plan import Plan

    if isinstance(placement, Plan):
        return placement_of_plan(placement, machine)
    return placement
