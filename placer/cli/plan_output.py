"""Where a command puts the plan that it made: a file, stdout, a summary for people."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from placer.cli.options import format_option, output_option, quiet_option

if TYPE_CHECKING:
    from collections.abc import Callable

    from placer.placement.plan import Plan
    from placer.report.look import Look

_Function = TypeVar("_Function", bound="Callable[..., Any]")


def plan_output_options(quiet: str) -> Callable[[_Function], _Function]:
    """``-o``, ``--format`` and ``-q``, the last of which also means ``quiet``."""

    def add(function: _Function) -> _Function:
        output = output_option("Write the plan here; - is stdout, then no summary.")
        silence = quiet_option(f"{quiet}; with -o PATH no summary either.")
        return output(format_option("text", "json")(silence(function)))

    return add


def check_output(output: str | None) -> None:
    """Refuse a path that cannot be written before the work, not after it.

    Raises
    ------
    OutputError
        If it is a folder, or in none that can be written to.
    """
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


def write_made(
    plan: Plan, options: dict[str, Any], summary: Callable[[Look], str]
) -> None:
    """Write the plan to its file, and what the user asked to see to stdout."""
    from placer.cli.look import look_of_stdout
    from placer.files import write_text
    from placer.placement.plan_encode import encode_plan

    output = options["output"]
    to_file = output not in (None, "-")
    text = encode_plan(plan)
    if to_file:
        write_text(output, text)
    if output == "-" or options["format_name"] == "json":
        write_text("-", text)
    elif not (to_file and options["quiet"]):
        write_text("-", summary(look_of_stdout()).rstrip() + "\n")
