"""``placer predict``: the order a launcher would use by itself, as a plan."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from placer.cli import complete
from placer.cli.folder import with_folder
from placer.cli.grouped import Command
from placer.cli.input_options import (
    job_option,
    order_option,
    source_options,
    topology_option,
)
from placer.cli.job import read_given_job
from placer.cli.options import hosts_option
from placer.cli.output import write_line
from placer.cli.plan_output import plan_output_options, write_made

if TYPE_CHECKING:
    from placer.placement.plan import Plan
    from placer.report.look import Look


def _print_launchers(
    context: click.Context, _parameter: click.Parameter, asked: bool
) -> None:
    if not asked or context.resilient_parsing:
        return
    from placer.placement.launcher_orders import LAUNCHERS

    width = max(map(len, LAUNCHERS))
    lines = (
        f"{row.name:<{width}}  {row.rule}\n{'':<{width}}  source: {row.source}"
        for row in LAUNCHERS.values()
    )
    write_line("\n".join(lines))
    context.exit()


@click.command(
    cls=Command,
    epilog="Example: placer predict -t cluster.yaml -j job.yaml --launcher "
    "torchrun-c10d -o before.json && placer diff before.json plan.json",
)
@topology_option()
@job_option()
@source_options
@order_option
@click.option(
    "--launcher",
    required=True,
    metavar="NAME",
    shell_complete=complete.launchers,
    help="See --list.",
)
@hosts_option
@click.option(
    "--list",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_launchers,
    help="List the launchers with their rules and exit.",
)
@plan_output_options("No notes")
def predict(**options: Any) -> None:
    """Show where a launcher puts ranks that it is not told.

    The plan can be the first of `placer diff` and can be scored with `placer score`.
    """
    from placer.api.predict import predict as predicted
    from placer.cli.machine import read_machine

    options = with_folder(options)
    machine = read_machine(options)
    job = read_given_job(options, machine, options["hosts"])
    launcher = options["launcher"]
    plan = predicted(machine, job, launcher, options["hosts"])
    if not options["quiet"]:
        _warn(plan, launcher)
    write_made(plan, options, lambda look: _summary(plan, launcher, look))


def _warn(plan: Plan, name: str) -> None:
    """Say it when names whose numbers differ in width meet a launcher of text."""
    from placer.placement.host_orders import text_order_surprise
    from placer.placement.launcher_orders import LAUNCHERS

    what = LAUNCHERS[name].sorts_text
    labels = plan.domains.values() if what == "labels" else ()
    compared = [list(dict.fromkeys(names)) for names in (*labels, plan.nodes)]
    surprise = next(filter(None, map(text_order_surprise, compared)), "")
    if what and surprise:
        click.echo(
            f"warning: {name} sorts {what} as text and these have numbers of mixed "
            f"width: {surprise}",
            err=True,
        )


def _summary(plan: Plan, name: str, look: Look) -> str:
    from placer.placement.launcher_orders import LAUNCHERS
    from placer.report.host_text import hosts_text
    from placer.report.score_text import score_text

    launcher = LAUNCHERS[name]
    tiers, scale_up = plan.topology["tiers"], plan.topology["scale_up"]
    score = score_text(plan.score, tiers, scale_up, look)
    return (
        f"{name}: {launcher.rule}\nsource: {launcher.source}\n"
        f"hosts by rank: {hosts_text(plan.nodes)}\n\n{score}"
    )
