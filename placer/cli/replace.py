"""``placer replace``: the same job after failures, with as few moves as can be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from placer.cli.options import (
    format_option,
    output_option,
    quiet_option,
    seed_option,
    share,
    time_limit_option,
)
from placer.cli.place import check_output, progress_of
from placer.cli.plan_inputs import plan_input_options

if TYPE_CHECKING:
    from collections.abc import Callable

    from placer.cli.interrupt import Interruptible
    from placer.placement.plan import Plan
    from placer.replacement import Replacement


@click.command(
    epilog="Example: placer replace plan.json --failed r001t05,r017t[02-03] -o new.json"
)
@click.argument("plan")
@plan_input_options
@click.option(
    "--failed",
    metavar="H",
    help="Hosts that cannot be used any more, as a list or @FILE.",
)
@click.option(
    "--added",
    metavar="H",
    help="Hosts to use beside those of the plan, as a list or @FILE. Default: every "
    "host of the topology.",
)
@click.option(
    "--max-moves",
    type=click.IntRange(0),
    metavar="N",
    help="Ranks that may move at most, whatever that costs.",
)
@click.option(
    "--within",
    callback=share,
    default="0.1%",
    show_default=True,
    metavar="SHARE",
    help="How far above the least the cost may be for fewer moves.",
)
@click.option(
    "--shrink",
    is_flag=True,
    help="Give up the fewest replicas if the job does not fit any more.",
)
@seed_option
@time_limit_option("the search")
@output_option("Write the new plan here; - is stdout, then without a summary.")
@format_option("text", "json")
@quiet_option("No progress and notes; with -o PATH no summary either.")
@click.option("-v", "--verbose", is_flag=True, help="Progress from the start.")
@click.pass_context
def replace(context: click.Context, /, plan: str, **options: Any) -> None:
    """Place the job of PLAN again after hosts have failed.

    Ranks on other hosts stay where they are, as far as the cost allows. Prints what
    moves, what it costs, what more moves would save and the difference from PLAN, or
    the new plan with --format json.
    """
    from placer.cli.interrupt import Interruptible, end, leave
    from placer.errors import StoppedError

    with Interruptible["Replacement"]() as interruptible:
        check_output(options["output"])
        try:
            result = _search(plan, options, interruptible)
        except StoppedError:
            click.echo(
                "interrupted: there was no plan yet, nothing is written", err=True
            )
            leave(interruptible.exit_code)
        _write(result, options)
        if interruptible.exit_code:
            click.echo("interrupted: this is the best plan so far", err=True)
    end(context, interruptible.exit_code)


def _search(
    source: str, options: dict[str, Any], interruptible: Interruptible[Replacement]
) -> Replacement:
    from placer.cli.plan_inputs import plan_inputs
    from placer.placement.plan_file import read_plan
    from placer.replacement import replace as replace_plan
    from placer.topology.allocation import parse_hosts

    plan = read_plan(source)
    machine, job = plan_inputs(plan, options)
    failed, added = (
        None if options[key] is None else parse_hosts(options[key])
        for key in ("failed", "added")
    )
    if not options["quiet"]:
        _note_spares(plan)
    with progress_of(options) as progress:

        def work(stop: Callable[[], bool]) -> Replacement:
            return replace_plan(
                machine,
                job,
                plan,
                failed=failed or (),
                added=added,
                max_moves=options["max_moves"],
                within=options["within"],
                shrink=options["shrink"],
                time_limit=options["time_limit"],
                seed=options["seed"],
                progress=progress,
                stop=stop,
            )

        return interruptible.run(work)


def _note_spares(plan: Plan) -> None:
    if plan.rules.get("spares"):
        text = "note: the spare nodes of the plan may be used now"
        click.echo(text, err=True)


def _write(result: Replacement, options: dict[str, Any]) -> None:
    """The plan to its file, and what the user asked to see to stdout."""
    from placer.files import write_text
    from placer.placement.plan_encode import encode_plan

    output = options["output"]
    to_file = output not in (None, "-")
    text = encode_plan(result.plan)
    if to_file:
        write_text(output, text)
    if output == "-" or options["format_name"] == "json":
        write_text("-", text)
    elif not (to_file and options["quiet"]):
        from placer.cli.look import look_of_stdout

        write_text("-", result.summary(look_of_stdout()) + "\n")
