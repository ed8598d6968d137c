"""``placer predict``, an old name of ``placer score launcher:NAME``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from placer.cli import complete
from placer.cli.grouped import command
from placer.cli.input_options import (
    job_option,
    order_option,
    source_options,
    topology_option,
)
from placer.cli.launcher_order import list_option, order_text, warn_of_text_order
from placer.cli.options import hosts_option, option, tell_new_name
from placer.cli.output import plan_output_options, write_made
from placer.cli.plan_inputs import stated_inputs

if TYPE_CHECKING:
    from placer.report.look import Look


@command("placer score launcher:torchrun-c10d -t cluster.yaml -j job.yaml", hidden=True)
@topology_option()
@job_option()
@source_options
@order_option
@option(
    "--launcher",
    "NAME",
    "See --list.",
    required=True,
    shell_complete=complete.launchers,
)
@hosts_option
@list_option("List the launchers with their rules and exit.")
@plan_output_options("No notes")
def predict(**options: Any) -> None:
    """Score the order of a launcher: an old name of score launcher:NAME."""
    from placer.cli.placements import made
    from placer.report.score_text import score_text

    name = options["launcher"]
    new = f"placer score launcher:{name}"
    tell_new_name(options, '"placer predict"', new)
    plan = made("launcher", name, stated_inputs(options), options)
    if not options["quiet"]:
        warn_of_text_order(plan, name)

    def summary(look: Look) -> str:
        tiers, scale_up = plan.topology["tiers"], plan.topology["scale_up"]
        score = score_text(plan.score, tiers, scale_up, look)
        return f"{order_text(plan, name)}\n\n{score}"

    write_made(plan, options, summary)
