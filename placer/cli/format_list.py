"""``placer topology formats`` and ``placer job formats``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import click

from placer.cli.grouped import Command
from placer.cli.options import format_option
from placer.cli.output import write_line

if TYPE_CHECKING:
    from placer.formats import Format


def format_list(what: str, load: Callable[[], Mapping[str, Format]]) -> click.Command:
    """The command that lists the formats from which ``what`` can be read."""

    @click.command(
        "formats", cls=Command, help=f"List the formats that {what} can be read from."
    )
    @format_option("text", "json")
    def formats(format_name: str) -> None:
        import json

        rows = load().values()
        if format_name == "json":
            told = [{"name": row.name, "description": row.description} for row in rows]
            write_line(json.dumps(told, indent=2))
            return
        width = max(len(row.name) for row in rows)
        write_line("\n".join(f"{r.name:<{width}}  {r.description}" for r in rows))

    return formats
