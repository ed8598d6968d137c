"""``placer check``: whether a plan keeps every promise and says what is so."""

from __future__ import annotations

import json
from typing import Any

import click

from placer.base.units import counted
from placer.cli import complete, shared
from placer.cli.exit_codes import DONE, NO
from placer.cli.inputs import Given, given_inputs
from placer.cli.options import flag, option, teller
from placer.cli.output import write_line
from placer.cli.placements import plan_command, read_placement


@plan_command("placer check plan.json --bound")
@click.argument("plan", shell_complete=complete.placements)
@shared.placement
@flag("--bound", "Also prove the lower bound again.")
@option(
    "--copies JUMP[:FACTOR]",
    "Also check that copies of checkpoints on ranks so far apart share no node "
    "and no rack: replication_jump, and replication_factor, of nvidia-resiliency-ext.",
)
@shared.time_limit("the search that a bound may rest on")
@shared.formats("text", "json")
@shared.quiet("Say nothing when all holds, and no notes.")
@click.pass_context
def check(context: click.Context, /, plan: str, **options: Any) -> None:
    """Check a plan, independently of the solver.

    First the placement is checked. Then score, baselines, gap and status are worked out
    again and compared with what the plan says. The exit code is 0 when all holds and 1
    when something does not.
    """
    from placer.api.check import checked, taken_as_named
    from placer.api.inputs import inputs_of_plan
    from placer.placement.inputs import refuse_others
    from placer.placement.plan_consistency import ContradictionError

    holds, older = "", list[str]()
    try:
        found, inputs = read_placement(plan, options)
        given = Given(inputs.topology, inputs.job) if inputs else None
        given = given or given_inputs(options, found)
        inputs = inputs_of_plan(found, *given)
        if options["force"]:  # whatever it names
            found = taken_as_named(found, inputs)
        else:
            refuse_others(found, *given)
        bound_s = options["time_limit"] if options["bound"] else None
        faults, older = checked(found, inputs, bound_s, options["copies"])
        ranks, nodes = found.world_size, len(found.nodes)
        holds = f"ok: {counted(ranks, 'rank')} on {counted(nodes, 'node')}"
    except ContradictionError as error:
        faults = [str(problem) for problem in error.problems]
    if options["format_name"] == "json":
        answer = {"ok": not faults, "violations": faults}
        answer |= {"older": older} if older else {}
        write_line(json.dumps(answer, indent=2))
    elif faults:
        write_line("\n".join(faults))
    elif not options["quiet"]:
        write_line(holds)
    for line in older:
        teller(options)(line)
    context.exit(NO if faults else DONE)
