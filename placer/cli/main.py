"""The ``placer`` command: loads what is asked for, turns errors into exit codes."""

from __future__ import annotations

import errno
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import IO, Any, NoReturn

import click
from click.exceptions import NoArgsIsHelpError, NoSuchCommand

from placer.base.errors import InfeasibleError, InputError, PlacerError
from placer.base.naming import as_options
from placer.cli import exit_codes
from placer.cli.grouped import Context
from placer.cli.interrupt import interrupts
from placer.documents.files import inputs_kept
from placer.starting import INTERRUPTED
from placer.version import __version__

# One module a command, imported when the command is asked for; by what they are for.
SECTIONS = {
    "Plan": ("place", "tune", "allocate", "segment"),
    "Launch": ("emit", "launch", "probe", "rank", "verify"),
    "Look after": ("check", "replace", "diff", "explain", "report", "draw"),
    "What if": ("score", "sweep"),
    "Files and help": (
        "topology",
        "job",
        "calibrate",
        "init",
        "schema",
        "help",
        "completion",
    ),
}
COMMANDS = tuple(name for names in SECTIONS.values() for name in names)
ALIASES = {"topo": "topology", "jobs": "job"}
# Names of the release before, which no help lists.
OLD_COMMANDS = ("predict",)
# Where they are not named after the command.
_MODULES = {"job": "jobs", "predict": "score", "schema": "help"} | dict.fromkeys(
    ("probe", "rank", "verify"), "in_job"
)

# What a training image may lack, by the name that it is imported by.
_PACKAGES = {
    "jinja2": "Jinja2",
    "networkx": "networkx",
    "numpy": "numpy",
    "ortools": "ortools",
    "yaml": "PyYAML",
}

_DEBUG = "placer.debug"
COMPLETE = "_PLACER_COMPLETE"  # set by a shell that asks what a word may become


def _set_debug(context: click.Context, _parameter: click.Parameter, on: bool) -> None:
    if on:
        context.meta[_DEBUG] = True


_DEBUG_OPTION = click.Option(
    ["--debug"],
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_set_debug,
    help="Show the traceback of an error.",
)


class _Usage(click.UsageError):
    """An error in what was typed, in the shape of all errors."""

    def show(self, file: IO[Any] | None = None) -> None:
        """Print it with the command whose help says more."""
        command = "placer" if self.ctx is None else self.ctx.command_path
        text = f"error: {self.format_message()}\n  hint: {command} --help"
        click.echo(_visible(text), file=file, err=True)


@contextmanager
def _usage_told() -> Iterator[None]:
    """A context whose errors in what was typed have the shape of all errors."""
    try:
        yield
    except NoArgsIsHelpError:
        raise
    except click.UsageError as error:
        raise _Usage(error.format_message(), error.ctx) from None


class Commands(click.Group):
    """The group of all commands, loaded one by one."""

    context_class = Context

    def list_commands(self, _ctx: click.Context) -> list[str]:
        """Names of the commands, most used first."""
        return list(COMMANDS)

    def format_commands(
        self, ctx: click.Context, formatter: click.HelpFormatter
    ) -> None:
        """Write the commands under the heading of what they are for."""
        longest = max(map(len, COMMANDS))
        width = formatter.width - longest - 6
        for heading, names in SECTIONS.items():
            commands = [(name, self.get_command(ctx, name)) for name in names]
            rows = [
                (name.ljust(longest), command.get_short_help_str(width))
                for name, command in commands
                if command is not None
            ]
            with formatter.section(heading):
                formatter.write_dl(rows)

    def get_command(self, _ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, or None when there is none of that name."""
        name = ALIASES.get(cmd_name, cmd_name)
        if name not in COMMANDS + OLD_COMMANDS:
            return None
        module = import_module(f"placer.cli.{_MODULES.get(name, name)}")
        command: click.Command = getattr(module, name)
        if _DEBUG_OPTION not in command.params:
            command.params.append(_DEBUG_OPTION)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that ``args`` name first, its name, and the other arguments.

        Raises `click.UsageError` if there is none; the message names the nearest.
        """
        args = [ALIASES.get(args[0], args[0]), *args[1:]]
        try:
            return super().resolve_command(ctx, args)
        except NoSuchCommand as error:
            raise NoSuchCommand(
                error.command_name, possibilities=COMMANDS, ctx=ctx
            ) from None

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Run as the program ``placer``, however it was started.

        Without arguments it is the program, and answers signals as one.
        """
        if args or kwargs:
            return self._main(*args, **kwargs)
        raise SystemExit(interrupts.run(self._main))

    def _main(self, *args: Any, **kwargs: Any) -> Any:
        if COMPLETE in os.environ:
            import_module("placer.cli.completion")  # what the shells need
        try:
            return super().main(*args, **{"prog_name": "placer"} | kwargs)
        except OSError as error:  # help or a message could not be printed
            _drop_output()
            if error.errno != errno.EPIPE:
                click.echo(f"error: standard output: {error.strerror}", err=True)
            raise SystemExit(exit_codes.OUTPUT_FAILED) from error

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Take the options before the command."""
        with _usage_told():
            return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; whatever goes wrong becomes a message and an exit code."""
        try:
            with as_options(), inputs_kept(), _usage_told():
                return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except PlacerError as error:
            _leave(ctx, _message(error), exit_codes.of(error))
        except KeyboardInterrupt:
            _leave(ctx, "interrupted", INTERRUPTED)
        except OSError as error:
            # Files are read and written elsewhere, so this is standard output.
            _drop_output()
            if error.errno == errno.EPIPE:
                ctx.exit(exit_codes.BROKEN_PIPE)
            if error.filename is None and error.errno in (errno.ENOSPC, errno.EIO):
                _leave(
                    ctx,
                    f"error: standard output: {error.strerror}",
                    exit_codes.OUTPUT_FAILED,
                )
            _leave_internal(ctx, error)
        except ModuleNotFoundError as error:
            package = _PACKAGES.get((error.name or "").partition(".")[0])
            if package is None:
                _leave_internal(ctx, error)
            text = f"error: this needs {package}, which is not installed here"
            _leave(ctx, f"{text}\n  hint: pip install {package}", exit_codes.INVALID)
        except Exception as error:
            _leave_internal(ctx, error)


def _message(error: PlacerError) -> str:
    """Text of an error; what names no file is marked as an error or as infeasible."""
    if isinstance(error, InfeasibleError):
        return f"infeasible: {error}"
    if not isinstance(error, InputError):
        return f"error: {error}"
    return "\n".join(
        str(problem) if problem.source else f"error: {problem}"
        for problem in error.problems
    )


def _leave_internal(ctx: click.Context, error: Exception) -> NoReturn:
    hint = "run again with --debug to see the traceback"
    text = f"internal error: {type(error).__name__}: {error}"
    _leave(ctx, f"{_visible(text, newline=False)}\n  hint: {hint}", exit_codes.INTERNAL)


def _leave(ctx: click.Context, message: str, code: int) -> NoReturn:
    """Print ``message`` to stderr, with --debug the traceback first, and exit."""
    if ctx.meta.get(_DEBUG):
        click.echo(traceback.format_exc(), err=True, nl=False)
    if message:
        click.echo(_visible(message), err=True)
    ctx.exit(code)


def _visible(text: str, newline: bool = True) -> str:
    """``text`` without what could move a terminal's cursor or colour it."""
    text = text.expandtabs(2) if newline else text
    return "".join(
        c if c.isprintable() or (newline and c == "\n") else "\N{REPLACEMENT CHARACTER}"
        for c in text
    )


def _drop_output() -> None:
    """Send what is still buffered nowhere, so that leaving raises nothing more."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (AttributeError, OSError, ValueError):
        sys.stdout = None


main: Callable[..., Any] = Commands(
    name="placer",
    params=[_DEBUG_OPTION],
    help="Put every rank of a distributed training job on the right GPU.",
    epilog='Example: placer place -t "rack:4 node:9 gpu:8" -j quickstart',
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 88},
)
main = click.version_option(__version__, prog_name="placer")(main)
