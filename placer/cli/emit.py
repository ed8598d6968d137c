"""``placer emit``: write the rank map for a launcher."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

import placer
from placer.cli import complete, shared
from placer.cli import output as outputs
from placer.cli.interrupt import interrupts
from placer.cli.options import OneOf, option
from placer.cli.output import write_text, writing
from placer.cli.placements import placement_alone, plan_command
from placer.emit import FormatName
from placer.emit.registry import FORMATS


def _formats() -> Iterator[str]:
    width = max(map(len, FORMATS))
    for row in FORMATS.values():
        needs = " (a folder: needs -o)" if row.folder else ""
        yield f"{row.name:<{width}}  {row.description}{needs}"


@plan_command("placer emit plan.json slurm-hostfile -o hosts.txt")
@click.argument("plan", shell_complete=complete.placements)
@click.argument(
    "format",
    type=OneOf(list(FORMATS)),
    metavar="FORMAT",
    shell_complete=complete.formats,
)
@shared.output("Write here and print the path. For formats of several files: a folder.")
@option(
    "--role NAME[:INSTANCE]",
    "For a workload: only this role, or this instance, with ranks from 0.",
)
@shared.listing("List the formats and exit.", _formats)
@shared.placement
@shared.quiet("No notes.")
def emit(
    plan: str, format: FormatName, output: str | None, role: str | None, **options: Any
) -> None:
    """Write the rank map of a placement for a launcher.

    The text goes to standard output. With -o it goes to a file, and standard output has
    the path of the file, for scripts.
    """
    content = placement_alone(plan, options)
    if output is None or output == "-":
        write_text("-", placer.emit(content, format, role=role))
    elif outputs.is_terminal():
        with writing(output):
            placer.emit(content, format, output, role=role)
    else:  # for $(placer emit ...)
        with interrupts.writing(output):
            path = placer.emit(content, format, output, role=role)
        write_text("-", f"{path}\n")
