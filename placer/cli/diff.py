"""``placer diff``: what changed between two plans."""

from __future__ import annotations

import click


@click.command()
@click.argument("old")
@click.argument("new")
@click.option(
    "--format",
    "format_name",
    type=click.Choice(["text", "json"]),
    help="Form of the report; by default the suffix of PATH decides, or text.",
)
@click.option(
    "-o", "--output", default="-", metavar="PATH", help="Write the report here."
)
@click.pass_context
def diff(
    context: click.Context, old: str, new: str, format_name: str | None, output: str
) -> None:
    """Report what changed from plan OLD to plan NEW.

    Ranks that moved, groups whose domain changed, and the cost before and after. The
    exit code is 0 when there is no difference and 1 when there is one.
    """
    from placer.errors import InputError
    from placer.files import write_text
    from placer.placement.plan_encode import json_text
    from placer.placement.plan_file import read_plan
    from placer.report.diff import diff as plan_diff
    from placer.report.diff_text import diff_text

    if old == new == "-":
        raise InputError("only one of the two plans can be read from standard input")
    found = plan_diff(read_plan(old), read_plan(new))
    as_json = format_name == "json" or (
        format_name is None and output.lower().endswith(".json")
    )
    write_text(output, json_text(found.to_dict()) if as_json else diff_text(found))
    context.exit(0 if found.is_empty else 1)
