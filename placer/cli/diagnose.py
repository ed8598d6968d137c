"""``placer diagnose``: which node, link or part of a job is slow."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from placer.base.errors import InputError
from placer.cli import complete, shared
from placer.cli.grouped import command
from placer.cli.options import option
from placer.cli.output import write_answer, write_plan

if TYPE_CHECKING:
    from placer.explain.suspects import Run, Suspect, Verdict


@command("placer diagnose plan-1.json=a.csv plan-2.json=b.csv")
@click.argument(
    "runs",
    nargs=-1,
    required=True,
    metavar="PLAN=TIMES...",
    shell_complete=complete.files,
)
@option(
    "--next PLAN",
    "Where several fit alike, write the placement to run next here: it costs the "
    "same and tells them apart.",
    to="next_path",
)
@shared.formats("text", "json")
@shared.quiet("Print only what is slow, and no notes.")
@click.pass_context
def diagnose(
    context: click.Context,
    /,
    runs: tuple[str, ...],
    next_path: str | None,
    format_name: str,
    quiet: bool,
) -> None:
    """Say which node, link, stage, replica or rank is slow.

    PLAN is a placement that the job ran with, such as one of --next.
    TIMES is a CSV file of that run with the columns rank,seconds (or stage, or
    replica): what each took without waiting. The exit code is 1 when nothing stands
    out yet.
    """
    from placer.api.diagnose import diagnosed

    read = [_run(text) for text in runs]
    verdict = diagnosed(read)
    if next_path is not None and verdict.named is None:
        _write_next(read, verdict, next_path)
    lines = _lines(verdict, next_path, quiet)
    write_answer(format_name, _document(verdict), lambda: "\n".join(lines))
    context.exit(0 if verdict.named else 1)


def _write_next(runs: list[Run], verdict: Verdict, path: str) -> None:
    """Write a placement in which what fits alike slows ranks of its own."""
    from placer.api.vary import vary

    _, other = vary(runs[0].plan, 2, seed=len(runs), apart=verdict)
    write_plan(path, other)


def _run(text: str) -> Run:
    """The run that an argument means."""
    from placer.api.diagnose import read_times
    from placer.documents import files
    from placer.explain.suspects import Run
    from placer.placement.plan_file import read_plan

    plan_path, equals, times_path = text.rpartition("=")
    if not (equals and plan_path and times_path):
        raise click.UsageError(f"{text!r} is not PLAN=TIMES such as plan-1.json=a.csv")
    plan = read_plan(plan_path)
    if plan.axes is None:
        raise InputError("the plan does not record its axes", plan_path)
    rows, seconds = read_times(files.read_text(times_path), times_path, plan.axes)
    return Run(plan, rows, seconds)


def _lines(verdict: Verdict, next_path: str | None, quiet: bool) -> list[str]:
    """The verdict for people, and without one the placement to run next."""
    run = f"run {next_path or 'another placement (--next PLAN writes the best one)'}"
    if verdict.named:
        what = "a place" if verdict.named.is_place else "a part of the job"
        lines = [f"slow: {verdict.named}, {what}: {_figures(verdict.named)}"]
    elif verdict.alike > 1:
        lines = [f"{verdict.alike} fit alike; {run}"]
    else:
        lines = [f"nothing stands out; {run}"]
    if quiet:
        return lines
    rest = verdict.suspects[1:] if verdict.named else verdict.suspects
    return [*lines, *(f"  {one}: {_figures(one)}" for one in rest)]


def _figures(one: Suspect) -> str:
    return f"{one.slower:+.1%}, explains {one.explained:.0%} of the spread"


def _document(verdict: Verdict) -> dict[str, object]:
    named = verdict.named
    return {
        "named": None if named is None else asdict(named) | {"place": named.is_place},
        "alike": verdict.alike,
        "suspects": [asdict(one) for one in verdict.suspects],
    }
