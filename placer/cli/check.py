"""``placer check``: whether a plan keeps every promise."""

from __future__ import annotations

from typing import Any

import click

from placer.cli.options import (
    format_option,
    job_option,
    order_option,
    quiet_option,
    read_ordered_job,
    topology_option,
)
from placer.cli.output import write_line


@click.command()
@click.argument("plan")
@topology_option
@job_option
@order_option
@format_option("text", "json")
@quiet_option("Say nothing when all holds, and no notes.")
@click.pass_context
def check(
    context: click.Context,
    /,
    plan: str,
    job: str,
    order: str | None,
    format_name: str,
    quiet: bool,
    **options: Any,
) -> None:
    """Check PLAN against its topology and job, independently of the solver.

    The exit code is 0 when all holds and 1 when something does not.
    """
    import json

    from placer.api.inputs import inputs
    from placer.cli.machine import read_machine
    from placer.placement.check import violations
    from placer.placement.plan_consistency import ContradictionError
    from placer.placement.plan_file import read_plan

    machine, work = inputs(
        read_machine({**options, "quiet": quiet}), read_ordered_job(job, order)
    )
    try:
        found = read_plan(plan)
        broken = violations(found, machine, work)
        holds = f"ok: {found.world_size:,} ranks on {len(found.nodes):,} nodes"
    except ContradictionError as error:
        broken = [str(problem) for problem in error.problems]
    if format_name == "json":
        write_line(json.dumps({"ok": not broken, "violations": broken}, indent=2))
    elif broken:
        write_line("\n".join(broken))
    elif not quiet:
        write_line(holds)
    context.exit(1 if broken else 0)
