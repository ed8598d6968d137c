"""``placer verify``: whether the processes of a job are where the plan has them."""

from __future__ import annotations

import click

from placer.cli import complete
from placer.cli.grouped import command
from placer.cli.options import flag, format_option, option, quiet_option
from placer.cli.output import write_line


@command("srun -m arbitrary placer verify plan.json --report > reports.txt")
@click.argument("plan", shell_complete=complete.files)
@flag("--report", "Print one line about this process and exit; PLAN is not read.")
@option(
    "--collected",
    "FILE",
    "Compare the reports in FILE (- is stdin); prefixes and other lines are ignored.",
)
@format_option("text", "json")
@quiet_option("Say nothing when all holds, and no notes.")
@click.pass_context
def verify(
    context: click.Context,
    plan: str,
    report: bool,
    collected: str | None,
    format_name: str,
    quiet: bool,
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
        from placer.launch.reports import report_line

        write_line(report_line(this_process()))
        return
    holds = _compare(plan, collected, as_json=format_name == "json", quiet=quiet)
    context.exit(0 if holds else 1)


def _compare(plan: str, collected: str | None, *, as_json: bool, quiet: bool) -> bool:
    """Print how the reports, or this process, differ from the plan; whether not."""
    import json

    from placer.base.errors import InputError
    from placer.documents.files import read_text, shown_name
    from placer.launch.compare import compare, seats_of
    from placer.launch.habits import habits
    from placer.launch.process import this_process
    from placer.launch.reports import Collected, read_reports, require_rank
    from placer.launch.verdict_text import notes, verdict_text
    from placer.placement.plan_file import read_plan

    if plan == collected == "-":
        raise InputError("only one of plan and reports can be read from standard input")
    content = read_plan(plan)
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
    if not quiet:
        for note in notes(found, reports.unreadable):
            click.echo(f"note: {note}", err=True)
    if as_json:
        named = {"habits": [vars(habit) for habit in why]}
        write_line(json.dumps(found.to_dict() | named, indent=2))
    elif not (found.holds and quiet):
        write_line(verdict_text(found, why))
    return found.holds
