"""``placer diff``: what changed between two placements."""

from __future__ import annotations

from pathlib import PurePath
from typing import Any

import click

import placer
from placer.cli import complete, shared
from placer.cli.exit_codes import DONE, NO
from placer.cli.grouped import PlanCommand, command
from placer.cli.options import OneOf, option, tell_new_name
from placer.cli.output import look_of_stdout, write_text
from placer.cli.placements import KINDS_HELP, two_placements

_FORMAT_OF_SUFFIX = {".json": "json", ".html": "html", ".htm": "html"}


@command(
    "placer diff launcher:torchrun-c10d plan.json -o diff.json",
    cls=PlanCommand,
    after=f"OLD and NEW are each {KINDS_HELP}. The last three take machine and job "
    "from -t and -j, else from the other plan. `placer score --list` lists the names.",
)
@click.argument("old", shell_complete=complete.placements)
@click.argument("new", shell_complete=complete.placements)
@shared.placement
@option(
    "--format [text|json]",
    "What to write. Default: by the suffix of PATH, or text.",
    type=OneOf(["text", "json", "html"]),
    to="format_name",
)
@shared.output("Write the report here; - is stdout, as without it.")
@shared.quiet("No notes.")
@click.pass_context
def diff(context: click.Context, /, old: str, new: str, **options: Any) -> None:
    """Report what changed from one placement to another.

    Lists ranks that moved, groups whose domain changed, cost, links and critical path
    before and after, and the work of a restart. The exit code is 0 when there is no
    difference and 1 when there is one.
    """
    before, after, job = two_placements(old, new, options)
    found = placer.diff(before, after, job)
    output = options["output"] or "-"
    suffix = PurePath(output).suffix.lower()
    form = options["format_name"] or _FORMAT_OF_SUFFIX.get(suffix, "text")
    if form == "html":
        tell_new_name(
            options, "diff as HTML", f"placer report {new} --against {old} -o {output}"
        )
    write_text(output, _report(form, found, (before, after), (old, new)))
    context.exit(DONE if found.is_empty else NO)


def _report(
    form: str,
    found: placer.PlanDiff,
    plans: tuple[placer.Plan, placer.Plan],
    names: tuple[str, str],
) -> str:
    if form == "json":
        from placer.placement.plan_file import json_text

        return json_text(found.to_dict())
    if form == "html":
        path = names[1] if names[1].endswith(".json") else ""
        return placer.report_html(plans[1], plans[0], names=names, path=path)
    from placer.report.diff_text import diff_text

    return diff_text(found, look_of_stdout().width)
