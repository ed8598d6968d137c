"""``list`` and ``formats`` of ``placer topology`` and of ``placer job``."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

import click

from placer.cli import shared
from placer.cli.grouped import Command
from placer.cli.output import write_rows
from placer.documents.presets import preset_names

if TYPE_CHECKING:
    from placer.documents.recognise import Format

    Row = dict[str, Any]


def preset_list(
    folder: Literal["topologies", "jobs"],
    sizes: str,
    row: Callable[[str], Row],
    size: str,
) -> click.Command:
    """The command that lists the presets of a folder.

    ``folder``: of presets. ``sizes``: what the size of one is called in the help.
    ``row``: what a preset is, by keys of JSON, from its name. ``size``: its size in the
    text, with keys of its row.
    """

    @click.command("list", cls=Command, help=f"List the presets with {sizes}.")
    @shared.formats("text", "json")
    def presets(format_name: str) -> None:
        rows = [row(name) for name in preset_names(folder)]
        width = max((len(found["name"]) for found in rows), default=0)

        def line(found: Row) -> str:
            text = f"{found['name']:<{width}} {size.format(**found)}"
            return f"{text}  {found['description']}".rstrip()

        write_rows(format_name, rows, line)

    return presets


def format_list(what: str, room: Literal["machines", "jobs"]) -> click.Command:
    """The command that lists the formats from which ``what`` can be read."""

    @click.command(
        "formats", cls=Command, help=f"List the formats that {what} can be read from."
    )
    @shared.formats("text", "json")
    def formats(format_name: str) -> None:
        registry = import_module(f"placer.formats.{room}.registry")
        known: list[Format] = [*registry.FORMATS.values()]
        rows = [{"name": row.name, "description": row.description} for row in known]
        width = max(len(row["name"]) for row in rows)
        write_rows(
            format_name, rows, lambda r: f"{r['name']:<{width}}  {r['description']}"
        )

    return formats
