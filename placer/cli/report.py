"""``placer report``: the web page of a placement beside another."""

from __future__ import annotations

from typing import Any

import click

import placer
from placer.cli import complete, shared
from placer.cli.inputs import plan_inputs
from placer.cli.options import option
from placer.cli.output import output_path, write_text
from placer.cli.placements import (
    allocated,
    parts,
    plan_command,
    read_placement,
    two_placements,
)


@plan_command("placer report plan.json --against launcher:slurm -o report.html")
@click.argument("plan", shell_complete=complete.placements)
@option(
    "--against PLAN",
    "Placement to compare it with. Default: the order that the job has today, "
    "from the launcher in the script, else from the hosts as given.",
    shell_complete=complete.placements,
)
@shared.placement
@shared.output(
    "Write the page here; - is stdout. Default: a file named after PLAN on a terminal, "
    "else stdout."
)
@shared.quiet("No notes.")
def report(plan: str, against: str | None, **options: Any) -> None:
    """Write the web page of a placement beside another.

    The page says what the placement is worth, why, and where the ranks are. It is one
    file that needs no other.
    """
    from placer.api.predict import scored_plan
    from placer.placement.build import placement_of_plan

    kind, value = parts(plan)
    path = value if kind == "plan" and value != "-" else ""
    if against is None:
        after, inputs = read_placement(plan, options)
        given = any(options[key] for key in ("topology", "job", "hosts"))
        if inputs is None and given:  # it is one of these then
            inputs = allocated(plan_inputs(after, options), options)
            placement = placement_of_plan(after, inputs.machine)
            after = scored_plan(inputs, placement, plan)
        page = placer.report_html(after, "in-use" if after.inputs else None, path=path)
    else:
        before, after, _ = two_placements(against, plan, options)
        page = placer.report_html(after, before, names=(against, plan), path=path)
    write_text(output_path(options["output"], plan, "report", "html"), page)
