"""``placer replace``: the same job after failures, with as few moves as can be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

import placer
from placer.cli import complete, shared
from placer.cli.grouped import PlanCommand, command
from placer.cli.inputs import given_inputs
from placer.cli.interrupt import end
from placer.cli.options import Whole, called, flag, hosts_of, option, share, teller
from placer.cli.output import write_made
from placer.cli.progress import ProgressLines
from placer.cli.searching import run_search


@command(
    "placer replace plan.json --failed r001t05,r017t[02-03] -o new.json",
    cls=PlanCommand,
)
@click.argument("plan", shell_complete=complete.files)
@shared.plan_inputs
@option("--failed H", "Hosts that cannot be used any more: a list or @FILE.")
@option("--added H", "Hosts to use beside those of the allocation: a list or @FILE.")
@option(
    "--max-moves N", "Move at most so many ranks, whatever that costs.", type=Whole(0)
)
@option(
    "--within SHARE",
    "How much more than before the failure a step may cost. Default: 0.1%.",
    share,
    default="0.1%",
)
@flag(
    "--shrink", "Give up as few replicas as possible if the job does not fit any more."
)
@shared.search
@click.pass_context
def replace(context: click.Context, /, plan: str, **options: Any) -> None:
    """Place a job again after hosts have failed.

    Ranks on other hosts stay where they are as far as the cost allows. Hosts outside
    the plan's allocation are used only where --added names them. Prints what moves,
    what it costs, what more moves would save and the difference from PLAN, or with
    --format json the new plan.
    """
    _, exit_code = run_search(
        options,
        lambda: _search(plan, options),
        lambda result: write_made(result.plan, options, result.summary),
    )
    end(context, exit_code)


def _search(
    source: str, options: dict[str, Any]
) -> Callable[[ProgressLines | None, Callable[[], bool]], placer.Replacement]:
    """The search that the options describe, its inputs read."""
    plan = placer.read_plan(source)
    machine, job = given_inputs(options, plan)
    failed, added = hosts_of(options, "failed"), hosts_of(options, "added")
    if plan.rules.get("spares"):
        teller(options)("the spare nodes of the plan may be used now")
    return lambda progress, stop: called(
        placer.replace,
        options,
        plan=plan,
        topology=machine,
        job=job,
        failed=failed or (),
        added=added,
        progress=progress,
        stop=stop,
    )
