"""``placer place``: the best placement of a job on a machine."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

import placer
from placer.cli import shared
from placer.cli.exit_codes import DONE, NO
from placer.cli.folder import with_folder
from placer.cli.grouped import command
from placer.cli.inputs import read_given_job, read_machine
from placer.cli.interrupt import end
from placer.cli.options import (
    Whole,
    called,
    flag,
    hosts_of,
    option,
    share,
    tell_new_name,
)
from placer.cli.output import write_made, write_text
from placer.cli.progress import ProgressLines
from placer.cli.searching import run_search
from placer.solve.problem.params import EFFORTS, MEASURABLE, Effort, is_effort

if TYPE_CHECKING:
    from placer.report.columns import Look


def _effort(text: str) -> Effort:
    """The effort that an option means: a name, or a number of generations."""
    effort = int(text) if text.isascii() and text.isdigit() else text
    if not is_effort(effort):
        known = ", ".join(EFFORTS)
        raise ValueError(f"{text!r} is not {known} or a number such as 20")
    return effort


@command("placer place -t slurm:topology.conf -j megatron:pretrain.sh")
@shared.topology()
@shared.job()
@shared.sources
@shared.order
@shared.hosts
@option("--exclude H", "Hosts not to use: a list or @FILE.")
@option(
    "--free H",
    "Other free hosts: a list, @FILE or sinfo:FILE. Say in one line what the best "
    "allocation of all of them would save.",
)
@shared.objective
@shared.require("the job's")
@shared.rules
@flag(
    "--first-host-first",
    "Keep rank 0 on the first host by name, as some launch scripts expect.",
)
@option(
    "--gap SHARE", "Exit with 1 unless the gap is proved to be this small: 1%.", share
)
@option(
    "--previous PLAN",
    "Plan to stay close to: of equally good placements, the one that moves the "
    "fewest ranks is taken.",
)
@option(
    "--effort EFFORT",
    "When to stop without a proof: quick (after the constructions), normal (when "
    "the search hardly helps any more), full (when time is up), a number of "
    "generations, or measurable: as normal, or when no run would show what is left. "
    "That is the default, and keeps your order where nothing measurable is to win.",
    _effort,
    default=MEASURABLE,
)
@option(
    "--workers N",
    "Threads that search at the same time. Default: one for each core that is "
    "granted. The result does not depend on it.",
    type=Whole(1, 1024),
)
@click.option("--report", metavar="FILE", type=click.Path(dir_okay=False), hidden=True)
@shared.search
@click.pass_context
def place(context: click.Context, /, **options: Any) -> None:
    """Put every rank of a job on a GPU of a machine.

    Prints a summary, or the plan with --format json. Ctrl-C stops the search; the best
    plan so far is checked and written.
    """
    result, exit_code = run_search(
        options, lambda: _search(options), lambda result: _write(result, options)
    )
    end(context, exit_code or _gap_code(result, options["gap"]))


def _gap_code(result: placer.Result, asked: float | None) -> int:
    """Whether the gap asked for is proved, as an exit code."""
    if asked is None or result.bound["gap"] <= asked:
        return DONE
    from placer.report.words import gap_text

    found = gap_text(result.bound["gap"])
    click.echo(f"gap not met: {found} proved, {gap_text(asked)} asked for", err=True)
    return NO


def _search(
    options: dict[str, Any],
) -> Callable[[ProgressLines | None, Callable[[], bool]], placer.Result]:
    """The search that the options describe, its inputs read."""
    options = with_folder(options)
    if options["free"] is not None and not (options["hosts"] or options["exclude"]):
        raise click.UsageError(
            "--free names hosts beside those of the job, and these need --hosts. To "
            "choose among free hosts: placer allocate --free."
        )
    machine = read_machine(options)
    job = read_given_job(options, machine, options["hosts"])
    hosts, exclude = hosts_of(options), hosts_of(options, "exclude")
    rules = shared.rules_of_options(options)
    if options["first_host_first"]:
        rules = rules.and_also(shared.first_host_first(machine, hosts, exclude))
    return lambda progress, stop: called(
        placer.place,
        options,
        topology=machine,
        job=job,
        hosts=hosts,
        exclude=exclude or (),
        require=options["require"] | options["even"],
        even=None,
        rules=rules,
        progress=progress,
        stop=stop,
    )


def _write(result: placer.Result, options: dict[str, Any]) -> None:
    """The plan, and to people its summary and what to do next."""
    from placer.report.next_text import next_lines
    from placer.report.summary import summarise

    def summary(look: Look) -> str:
        summary = summarise(result.plan, look, in_full=options["verbose"])
        lines = [summary, *_granted(result.plan, options)]
        path = options["output"]
        if path is not None:
            lines += ["", *next_lines(result.plan, path, look.width)]
        return "\n".join(lines)

    write_made(result.plan, options, summary)
    if options["report"] is not None:
        new = f"placer report {options['output'] or 'PLAN'} -o {options['report']}"
        tell_new_name(options, "--report", new)
        page = placer.report_html(result.plan, path=options["output"] or "plan.json")
        write_text(options["report"], page)


def _granted(plan: placer.Plan, options: dict[str, Any]) -> list[str]:
    """How good the allocation is beside other free hosts, where these are known."""
    from placer.placement.inputs import inputs_of
    from placer.report.columns import wrapped

    if options["free"] is None:
        return []
    inputs = inputs_of(plan)
    found = placer.allocate(
        inputs.topology,
        inputs.job,
        free=options["free"],
        grade=inputs.machine.node_names,
        objective=plan.bound["objective"],
        require=inputs.require,
        rules=inputs.rules,
        time_limit=options["time_limit"],
        seed=options["seed"],
    )
    return ["", *wrapped(f"This allocation: {found.grade['text']}.")]
