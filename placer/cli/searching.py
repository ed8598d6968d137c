"""What the commands share that search for a placement: options, progress, Ctrl-C."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, TypeVar

import click

import placer
from placer.base.errors import StoppedError
from placer.cli.interrupt import interrupts, leave
from placer.cli.options import teller
from placer.cli.progress import QUIET_S, ProgressLines
from placer.documents.files import check_target

Stop = Callable[[], bool]

SLOW = "; plans of uneven machines and under rules may be several percent slower"
NOT_BUILT = (
    "the fast search was not built, as no C++ compiler was found when placer was "
    "installed" + SLOW
)
STALE = (
    "the fast search was built from other sources than this checkout's, so it is not "
    "used: run pip install -e . again" + SLOW
)
NOT_EXACT = (
    "changes were priced in full, which is slow: the compiled cost and the scorer do "
    "not agree on this job; please report it"
)
Found = TypeVar("Found", bound="placer.Result")


def run_search(
    options: dict[str, Any],
    prepare: Callable[[], Callable[[ProgressLines | None, Stop], Found]],
    write: Callable[[Found], None],
) -> tuple[Found, int]:
    """What a search found, once written, and the exit code if a signal ended it.

    ``options``: of a command with `shared.search`. ``prepare``: reads the inputs;
    returns the search, a callable of who is told of progress and of what to ask whether
    to stop.
    """
    from placer.solve.annealing.in_full import MOVE as IN_FULL
    from placer.solve.score import is_built, is_stale

    interrupts.outcome = "there was no plan yet, nothing is written"
    search = prepare()
    check_target(options["output"] or "-")
    if not is_built():
        teller(options)(STALE if is_stale() else NOT_BUILT)
    with interrupts.searching() as stop:
        try:
            delay_s = 0.0 if options["verbose"] else QUIET_S
            lines = ProgressLines(options["time_limit"], delay_s)
            with nullcontext() if options["quiet"] else lines as progress:
                found = search(progress, stop)
        except StoppedError:
            click.echo(f"interrupted: {interrupts.outcome}", err=True)
            leave(interrupts.exit_code)
        interrupts.outcome = "left before the plan was written"
        write(found)
    if is_built() and IN_FULL in found.plan.solver.get("moves", {}):
        teller(options)(NOT_EXACT)
    if options["verbose"]:
        click.echo(f"bound: {found.bound['argument']}", err=True)
        for move, count in found.plan.solver.get("moves", {}).items():
            text = f"{move}: tried {count['tried']:,} times, helped {count['helped']:,}"
            click.echo(f"local search: {text}", err=True)
    if interrupts.exit_code:
        click.echo("interrupted: this is the best plan so far", err=True)
    return found, interrupts.exit_code
