"""``placer help`` and ``schema``: commands and the manual; what a format allows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from inspect import cleandoc
from pathlib import Path

import click

from placer.cli import complete, exit_codes, shared
from placer.cli.grouped import command, context_of
from placer.cli.options import flag
from placer.cli.output import write_line, write_text
from placer.documents.files import make_folder
from placer.formats.schemas import SCHEMAS, schema_text
from placer.version import __version__


def pages(context: click.Context) -> Iterator[tuple[str, str]]:
    """File name and text of the page of a command, and of all commands in it."""
    yield f"{_name(context)}.1", page(context)
    for child in _children(context):
        yield from pages(child)


def page(context: click.Context) -> str:
    """The page of the command that ``context`` stands for."""
    command = context.command
    name = _name(context)
    children = list(_children(context))
    options = [
        record
        for parameter in command.get_params(context)
        if isinstance(parameter, click.Option)
        and (record := parameter.get_help_record(context))
    ]
    lines = [
        f'.TH "{name.upper()}" "1" "" "placer {__version__}" "placer manual"',
        *_section("NAME", f"{name} - {command.get_short_help_str(limit=200)}"),
        *_section("SYNOPSIS", ""),
        f".B {_escaped(context.command_path)}",
        _escaped(" ".join(command.collect_usage_pieces(context))),
        *_section("DESCRIPTION", cleandoc(command.help or "")),
        *_terms("OPTIONS", options),
        *_terms(
            "COMMANDS",
            (
                (child.command_path, child.command.get_short_help_str(limit=200))
                for child in children
            ),
        ),
    ]
    if command.epilog:
        lines += _section("EXAMPLE", command.epilog.removeprefix("Example: "))
    if context.parent is None:
        lines += _terms("EXIT STATUS", exit_codes.SAYS.items())
    near = [child for child in (context.parent, *children) if child]
    lines += _section("SEE ALSO", ", ".join(f"{_name(child)}(1)" for child in near))
    return "\n".join(lines) + "\n"


def _children(context: click.Context) -> Iterator[click.Context]:
    command = context.command
    if not isinstance(command, click.Group):
        return
    for name in command.list_commands(context):
        child = command.get_command(context, name)
        if child is not None and not child.hidden:
            yield click.Context(child, info_name=name, parent=context)


def _name(context: click.Context) -> str:
    return context.command_path.replace(" ", "-")


def _section(title: str, text: str) -> list[str]:
    """A section of paragraphs, which empty lines separate."""
    paragraphs = [_paragraph(part) for part in text.split("\n\n") if part.strip()]
    return [f".SH {title}", *"\n.PP\n".join(paragraphs).splitlines()]


def _paragraph(text: str) -> str:
    """A paragraph; behind click's mark for that, line by line as it is."""
    if not text.startswith("\b\n"):
        return _joined(text)
    lines = map(_escaped, text.splitlines()[1:])
    return "\n".join((".nf", *lines, ".fi"))


def _terms(title: str, rows: Iterable[tuple[str, str]]) -> list[str]:
    """A section of terms with what they mean; nothing when there are none."""
    lines = [
        line
        for term, text in rows
        for line in (".TP", f".B {_escaped(term)}", _joined(text))
    ]
    return [f".SH {title}", *lines] if lines else []


def _joined(text: str) -> str:
    return _escaped(" ".join(text.split()))


def _escaped(text: str) -> str:
    r"""Text that troff takes as it is.

    A dash stays one that can be copied, and no line is taken for a request.
    """
    text = text.replace("\\", r"\e").replace("-", r"\-").replace('"', r"\(dq")
    return re.sub(r"^([.'])", r"\\&\1", text)


@command("placer help --man place | man -l -")
@click.argument(
    "names", nargs=-1, metavar="[COMMAND]...", shell_complete=complete.commands
)
@flag("--man", "Print the manual page instead.")
@shared.output(
    "Folder for the manual pages of COMMAND and of the commands in it, with --man."
)
@click.pass_context
def help(
    context: click.Context, names: tuple[str, ...], man: bool, output: str | None
) -> None:
    """Show the help of a command.

    COMMAND may have several words, such as topology show. Without COMMAND, all commands
    are listed.
    """
    if output is not None and not man:
        raise click.UsageError("-o is for --man.")
    asked = context_of(context.find_root(), names)
    if output is not None:
        make_folder(output)
        for name, text in pages(asked):
            write_text(str(Path(output, name)), text)
    elif man:
        write_text("-", page(asked))
    else:
        write_line(asked.get_help())


@command("placer schema job > placer-job-1.json")
@click.argument("format_name", metavar="FORMAT", type=click.Choice(SCHEMAS))
def schema(format_name: str) -> None:
    """Print the JSON Schema of a file format.

    FORMAT is topology, job, jobs, workload, plan, probe or folder (placer.yaml). An
    editor that knows the schema completes keys, explains them and marks what is wrong
    while you type.
    """
    write_text("-", schema_text(format_name))
