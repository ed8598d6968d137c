"""What the commands share that search for a placement: options, progress, Ctrl-C."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, TypeVar

import click

from placer.cli.options import seed_option, time_limit_option
from placer.cli.plan_output import check_output, plan_output_options

if TYPE_CHECKING:
    from collections.abc import Callable

    from placer.api.result import Result
    from placer.cli.progress import ProgressLines

    Stop = Callable[[], bool]

_Function = TypeVar("_Function", bound="Callable[..., Any]")
Found = TypeVar("Found", bound="Result")


def search_options(function: _Function) -> _Function:
    """``--seed``, ``--time-limit``, ``-v`` and where the plan goes."""
    verbose = click.option(
        "-v", "--verbose", is_flag=True, help="Progress from the start."
    )
    output = plan_output_options("No progress and notes")
    return seed_option(time_limit_option("the search")(output(verbose(function))))


def run_search(
    options: dict[str, Any],
    prepare: Callable[[], Callable[[ProgressLines | None, Stop], Found]],
    write: Callable[[Found], None],
) -> tuple[Found, int]:
    """What a search found, once written, and the exit code if a signal ended it.

    Parameters
    ----------
    options : dict
        Of a command with `search_options`.
    prepare : callable
        Reads the inputs; returns the search, a callable of who is told of progress and
        of what to ask whether to stop.
    write : callable
    """
    from placer.cli.interrupt import Interruptible, leave
    from placer.errors import StoppedError

    with Interruptible[Found]() as interruptible:
        check_output(options["output"])
        search = prepare()
        try:
            with _progress(options) as progress:
                found = interruptible.run(lambda stop: search(progress, stop))
        except StoppedError:
            click.echo(
                "interrupted: there was no plan yet, nothing is written", err=True
            )
            leave(interruptible.exit_code)
        write(found)
        if interruptible.exit_code:
            click.echo("interrupted: this is the best plan so far", err=True)
    return found, interruptible.exit_code


def _progress(options: dict[str, Any]) -> ProgressLines | nullcontext[None]:
    """What shows progress, as a context: nothing when the command is quiet."""
    from placer.cli.progress import QUIET_S, ProgressLines

    if options["quiet"]:
        return nullcontext()
    delay_s = 0.0 if options["verbose"] else QUIET_S
    return ProgressLines(options["time_limit"], delay_s)
