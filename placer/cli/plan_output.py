"""Where a command puts the plan that it made: a file, stdout, a summary for people."""

from __future__ import annotations

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
        output = output_option(
            "Write the plan here (.json.gz and .json.zst compress it); - is stdout, "
            "without a summary."
        )
        silence = quiet_option(f"{quiet}; with -o PATH no summary either.")
        return output(format_option("text", "json")(silence(function)))

    return add


def write_made(
    plan: Plan, options: dict[str, Any], summary: Callable[[Look], str]
) -> None:
    """Write the plan to its file, and what the user asked to see to stdout."""
    from placer.cli.look import look_of_stdout
    from placer.cli.output import write_plan, write_text

    output = options["output"]
    to_file = output not in (None, "-")
    if to_file:
        write_plan(output, plan)
    if output == "-" or options["format_name"] == "json":
        write_plan("-", plan)
    elif not (to_file and options["quiet"]):
        write_text("-", summary(look_of_stdout()).rstrip() + "\n")
