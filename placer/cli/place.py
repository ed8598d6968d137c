"""``placer place``: the best placement of a job on a machine."""

from __future__ import annotations

import os
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from placer.cli.options import (
    format_option,
    hosts_option,
    job_option,
    order_option,
    output_option,
    quiet_option,
    read_ordered_job,
    rules,
    seed_option,
    share,
    time_limit_option,
    topology_option,
)
from placer.cli.rule_options import rule_options, rules_of_options

if TYPE_CHECKING:
    from collections.abc import Callable

    from placer.api import Result
    from placer.cli.interrupt import Interruptible
    from placer.cli.progress import ProgressLines
    from placer.placement.plan import Plan
    from placer.topology.model import Topology


@click.command()
@topology_option
@job_option
@order_option
@hosts_option
@click.option("--exclude", metavar="H", help="Hosts not to use, as a list or @FILE.")
@click.option(
    "--objective",
    type=click.Choice(["time", "hop-cost"]),
    help="What to minimise. Default: time; hop cost when the job has only weights.",
)
@click.option(
    "--require",
    multiple=True,
    callback=rules,
    metavar="AXIS=TIER",
    help="Hard rule beside the job's: tp=rack. May be given again.",
)
@rule_options
@click.option(
    "--gap",
    callback=share,
    metavar="SHARE",
    help="Exit with 1 unless the gap is proved this small: 1%.",
)
@click.option(
    "--previous",
    metavar="PLAN",
    help="Plan to keep to: of equally good placements, the one that moves the fewest "
    "ranks.",
)
@seed_option
@time_limit_option("the search")
@click.option(
    "--workers",
    type=click.IntRange(1, 1024),
    help="Threads at most; the plan does not depend on it.",
)
@output_option("Write the plan here; - is stdout, then without a summary.")
@format_option("text", "json")
@quiet_option("No progress and notes; with -o PATH no summary either.")
@click.option("-v", "--verbose", is_flag=True, help="Progress from the start.")
@click.pass_context
def place(context: click.Context, /, **options: Any) -> None:
    """Put every rank of job J on a GPU of machine T.

    Prints a summary, or the plan with --format json. Ctrl-C stops the search; the best
    plan so far is checked and written.
    """
    from placer.cli.interrupt import Interruptible, end, leave

    with Interruptible["Result"]() as interruptible:
        from placer.cli.machine import read_machine
        from placer.errors import StoppedError

        check_output(options["output"])
        machine = read_machine(options)
        if not options["quiet"]:
            _note_assumptions(machine)
        try:
            result = _search(machine, options, interruptible)
        except StoppedError:
            click.echo(
                "interrupted: there was no plan yet, nothing is written", err=True
            )
            leave(interruptible.exit_code)
        _write(result, options)
        if interruptible.exit_code:
            click.echo("interrupted: this is the best plan so far", err=True)
    end(context, interruptible.exit_code or _gap_code(result, options["gap"]))


def _gap_code(result: Result, asked: float | None) -> int:
    """1 when the gap asked for is not proved, else 0."""
    if asked is None or result.bound["gap"] <= asked:
        return 0
    found = f"{result.bound['gap']:.3%}"
    click.echo(f"gap not met: {found} proved, {asked:.3%} asked for", err=True)
    return 1


def check_output(output: str | None) -> None:
    """Refuse a path that cannot be written before the search, not after it."""
    from placer.errors import OutputError

    if output in (None, "-"):
        return
    path = Path(output)
    if path.is_dir():
        raise OutputError(f"{output}: cannot be written: it is a folder")
    folder = path.resolve().parent
    if not folder.is_dir():
        raise OutputError(f"{output}: cannot be written: there is no folder {folder}")
    if not os.access(folder, os.W_OK) and not path.exists():
        raise OutputError(f"{output}: cannot be written: Permission denied")


def _note_assumptions(machine: Topology) -> None:
    for source in machine.sources:
        if source.startswith("synthetic: assumed"):
            click.echo(f"note: {source}", err=True)


def _search(
    machine: Topology, options: dict[str, Any], interruptible: Interruptible[Result]
) -> Result:
    from placer.api import place
    from placer.placement.plan_file import read_plan
    from placer.topology.allocation import parse_hosts

    job = read_ordered_job(options["job"], options["order"])
    hosts, exclude = (
        None if options[key] is None else parse_hosts(options[key])
        for key in ("hosts", "exclude")
    )
    rules = rules_of_options(options)
    before = options["previous"]
    previous = None if before is None else read_plan(before)
    with progress_of(options) as progress:

        def work(stop: Callable[[], bool]) -> Result:
            return place(
                machine,
                job,
                hosts=hosts,
                exclude=exclude or (),
                objective=options["objective"],
                require=options["require"],
                rules=rules,
                previous=previous,
                time_limit=options["time_limit"],
                seed=options["seed"],
                workers=options["workers"],
                progress=progress,
                stop=stop,
            )

        return interruptible.run(work)


def progress_of(options: dict[str, Any]) -> ProgressLines | nullcontext[None]:
    """What shows progress, as a context: nothing when the command is quiet."""
    from placer.cli.progress import QUIET_S, ProgressLines

    if options["quiet"]:
        return nullcontext()
    delay_s = 0.0 if options["verbose"] else QUIET_S
    return ProgressLines(options["time_limit"], delay_s)


def _write(result: Result, options: dict[str, Any]) -> None:
    """The plan to its file, and what the user asked to see to stdout."""
    from placer.cli.look import look_of_stdout
    from placer.cli.plan_inputs import stated_inputs
    from placer.files import write_text
    from placer.placement.plan_encode import encode_plan
    from placer.report.next_text import next_lines

    output = options["output"]
    plan: Plan = result.plan
    to_file = output not in (None, "-")
    text = encode_plan(plan)
    if to_file:
        write_text(output, text)
    if output == "-" or options["format_name"] == "json":
        write_text("-", text)
    elif not (to_file and options["quiet"]):
        look = look_of_stdout()
        lines = [result.summary(look)]
        if to_file:
            lines += ["", *next_lines(plan, output, stated_inputs(options), look.width)]
        write_text("-", "\n".join(lines).rstrip() + "\n")
