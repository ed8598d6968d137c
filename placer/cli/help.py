"""``placer help``: help of a command, and the pages of the manual."""

from __future__ import annotations

from pathlib import Path

import click

from placer.cli import complete
from placer.cli.grouped import Command, Context
from placer.cli.options import output_option
from placer.cli.output import write_line, write_text


@click.command(
    cls=Command,
    epilog="Example: placer help --man place | man -l -",
)
@click.argument(
    "names", nargs=-1, metavar="[COMMAND]...", shell_complete=complete.commands
)
@click.option("--man", is_flag=True, help="Print the manual page instead.")
@output_option(
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
    from placer.cli.manual import page, pages
    from placer.documents.files import make_folder

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


def context_of(root: click.Context, names: tuple[str, ...]) -> click.Context:
    """The context of the command with these names.

    Raises
    ------
    click.UsageError
        If there is none; the message names the nearest.
    """
    context = root
    for name in names:
        group = context.command
        if not isinstance(group, click.Group):
            raise click.UsageError(f"{context.command_path!r} has no commands.")
        own, command, _ = group.resolve_command(context, [name])
        if command is None:  # only in completion
            break
        context = Context(command, info_name=own, parent=context)
    return context
