"""``placer probe``, ``rank`` and ``verify``: what the processes of a job call."""

from __future__ import annotations

import json
import os
import shlex
from typing import Any

import click

import placer
from placer.base.errors import InputError
from placer.cli import complete, shared
from placer.cli.exit_codes import DONE, NO
from placer.cli.grouped import command
from placer.cli.options import flag, option, teller
from placer.cli.output import write_line
from placer.cli.placements import placement_alone, plan_command
from placer.documents.files import read_text, shown_name
from placer.documents.files.writing import write_text
from placer.injob.cloud import CLOUDS


@plan_command("srun -m arbitrary placer verify plan.json --report > reports.txt")
@click.argument("plan", shell_complete=complete.placements)
@flag("--report", "Print one line about this process and exit; PLAN is not read.")
@option(
    "--collected FILE",
    "Compare the reports in FILE (- is stdin); prefixes and other lines are ignored.",
)
@shared.placement
@shared.formats("text", "json")
@shared.quiet("Say nothing when all holds, and no notes.")
@click.pass_context
def verify(
    context: click.Context,
    /,
    plan: str,
    report: bool,
    collected: str | None,
    **options: Any,
) -> None:
    """Compare where processes run with a plan.

    Started inside a job as the training program is, it checks this process alone. For
    the whole job, run it with --report in every process, then once with --collected.
    The exit code is 0 when all processes are where the plan has them and 1 when not.
    """
    from placer.launch.process import this_process

    if report and collected is not None:
        raise click.UsageError("Give --report or --collected, not both.")
    if report:
        from placer.launch.process import report_line

        write_line(report_line(this_process()))
        return
    context.exit(DONE if _compare(plan, collected, options) else NO)


def _compare(plan: str, collected: str | None, options: dict[str, Any]) -> bool:
    """Print how the reports, or this process, differ from the plan; whether not."""
    from placer.launch.compare import compare, notes, seats_of, verdict_text
    from placer.launch.habits import habits
    from placer.launch.process import (
        Collected,
        read_reports,
        require_rank,
        this_process,
    )

    if plan == collected == "-":
        raise InputError("only one of plan and reports can be read from standard input")
    content = placement_alone(plan, options)
    if collected is None:
        reports = Collected((this_process(),))
        require_rank(reports.processes[0])
    else:
        reports = read_reports(read_text(collected), shown_name(collected))
    processes = reports.processes
    found = compare(content, processes, alone=collected is None)
    # One process alone proves no habit.
    seats = seats_of(content, processes)
    why = () if collected is None else habits(content, seats, processes)
    for note in notes(found, reports.unreadable):
        teller(options)(note)
    if options["format_name"] == "json":
        named = {"habits": [vars(habit) for habit in why]}
        write_line(json.dumps(found.to_dict() | named, indent=2))
    elif not (found.holds and options["quiet"]):
        write_line(verdict_text(found, why))
    return found.holds


@command('eval "$(placer rank)"')
@option(
    "--plan PLAN",
    "The plan. Default: the one that placer launch made, PLACER_PLAN.",
    envvar="PLACER_PLAN",
)
def rank(plan: str | None) -> None:
    """Print this process's ranks as shell assignments.

    RANK, NODE_RANK, LOCAL_RANK, WORLD_SIZE and MASTER_ADDR, with an export, as the plan
    has them for this host. Where nothing says which process of the host this is,
    RANK and LOCAL_RANK are those of the first there.
    """
    from placer.launch.process import local_index, this_process
    from placer.launch.ranks import meeting, node_rank_of_this_process, node_ranks

    if not plan:
        hint = "give --plan, or run this in a step of placer launch"
        raise InputError("nothing says which plan: PLACER_PLAN is not set", hint=hint)
    read = placer.read_plan(plan)
    node_rank = node_rank_of_this_process(read)
    node = node_ranks(read)[node_rank]
    ranks = [r for r, own in enumerate(read.node_of_rank.tolist()) if own == node]
    local = local_index(os.environ, this_process()) or 0
    if local >= len(ranks):
        message = f"process {local} of a host with {len(ranks)} ranks"
        raise InputError(message, hint="start one for each rank of the plan")
    values = {
        "RANK": ranks[local],
        "NODE_RANK": node_rank,
        "LOCAL_RANK": local,
        "WORLD_SIZE": read.world_size,
        "MASTER_ADDR": meeting(read, os.environ)[0],
    }
    lines = [f"export {name}={shlex.quote(str(it))}\n" for name, it in values.items()]
    write_text("-", "".join(lines))


@command("srun --ntasks-per-node=1 placer probe")
@option(
    "--cloud",
    "Also ask the metadata service of this cloud, for half a second.",
    type=click.Choice([*CLOUDS]),
)
def probe(cloud: str | None) -> None:
    """Print what this node knows of itself.

    One line of JSON, the same keys on every node: GPUs, NVLink domain, switches, labels
    and NICs. What cannot be told stands under
    problems, and the exit code is 0. The lines of all nodes are a machine: placer
    place -t probe:FILE.
    """
    from placer.injob.probe import probe as find
    from placer.injob.probe import probe_line

    write_text("-", f"{probe_line(find(cloud))}\n")
