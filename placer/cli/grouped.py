"""Help in groups: commands by what they are for, options under headings."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from inspect import cleandoc
from typing import Any

import click
from click.core import iter_params_for_processing

from placer.base.errors import InfeasibleError
from placer.cli.output import write_json

_WHOLE = "\N{NON-BREAKING HYPHEN}"
_OWN = "Options"
# Options by heading, in the order in which help prints them. What is not here is the
# command's own.
HEADINGS = {
    "Machine": "--topology --gpu --hardware --gpus-per-node --label --oversubscription "
    "--nic-rate",
    "Job": "--job --gpus --tflops --micro-batch-time --set --select --order",
    "Hosts": "--hosts --exclude --free --busy --grade",
    _OWN: "",
    "Rules": "--require --even --pin --avoid --at-most --spares --apart "
    "--first-host-first --previous",
    "Degrees": "--tp --cp --ep --etp --pp --vp --dp --micro-batch --micro-batches "
    "--global-batch --recompute --sharding --framework --memory",
    "Search": "--objective --gap --effort --seed --time-limit --workers --scheduler",
    "Output": "--output --job-output --format --plot --top --row --explain "
    "--verbose --quiet",
    "Help": "--debug --help",
}
_HEADING_OF = {
    option: heading
    for heading, options in HEADINGS.items()
    for option in options.split()
}
_PLACE_OF = {option: place for place, option in enumerate(_HEADING_OF)}
# Headings of what a plan file keeps, and what stands in their place.
_KEPT = ("Machine", "Job", "Hosts")
_INPUTS = (
    "-t T, -j J",
    "Machine and job, where PLAN keeps none or others are wanted, with the options "
    "that place has for them.",
)
_HOSTS = (
    "--hosts H",
    "Hosts in launch order, where PLAN is no plan file. Default: all.",
)
_SEED = ("--seed N", "Seed of baseline:random. Default: 0.")


class _Formatter(click.HelpFormatter):
    """Help in lines that do not break at hyphens, so that options stay whole."""

    def write(self, string: str) -> None:
        """Write text whose lines are broken."""
        super().write(string.replace(_WHOLE, "-"))

    def write_text(self, text: str) -> None:
        """Write a paragraph."""
        super().write_text(text.replace("-", _WHOLE))

    def write_dl(
        self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2
    ) -> None:
        """Write rows of two columns."""
        whole = [(one, other.replace("-", _WHOLE)) for one, other in rows]
        super().write_dl(whole, col_max, col_spacing)


class Context(click.Context):
    """A context with help that keeps options whole."""

    formatter_class = _Formatter


class Command(click.Command):
    """A command with options under headings, whose JSON says what is infeasible."""

    context_class = Context

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Take the options; where several have a bad value, tell all of them."""
        given = [*args]
        try:
            return super().parse_args(ctx, args)
        except click.BadParameter as first:
            if len(told := self._faults(ctx, given)) < 2:
                raise
            message = "\nerror: ".join(fault.format_message() for fault in told)
            raise click.UsageError(message, ctx) from first

    def _faults(self, ctx: click.Context, args: list[str]) -> list[click.BadParameter]:
        """What is wrong with the value of each option and argument."""
        options, rest, order = self.make_parser(ctx).parse_args(args)
        found = []
        for parameter in iter_params_for_processing(order, self.get_params(ctx)):
            try:
                parameter.handle_parse_result(ctx, options, rest)
            except click.BadParameter as fault:
                found.append(fault)
        return found

    def invoke(self, ctx: click.Context) -> Any:
        """Run it; where no placement keeps the rules, JSON says which and how far."""
        try:
            return super().invoke(ctx)
        except InfeasibleError as error:
            if ctx.params.get("format_name") == "json":
                from placer.report.verdict import infeasible_verdict

                write_json({"verdict": infeasible_verdict(error)})
            raise

    def format_options(
        self, ctx: click.Context, formatter: click.HelpFormatter
    ) -> None:
        """Write the options, heading by heading."""
        for heading, rows in self.rows(ctx).items():
            with formatter.section(heading):
                formatter.write_dl(rows)

    def rows(self, ctx: click.Context) -> dict[str, list[tuple[str, str]]]:
        """Rows of help by heading, in the order of `HEADINGS` and none empty."""
        found: dict[str, list[tuple[str, str]]] = {}
        parameters = self.get_params(ctx)
        for parameter in sorted(
            parameters, key=lambda p: _PLACE_OF.get(p.opts[-1], -1)
        ):
            record = parameter.get_help_record(ctx)
            if isinstance(parameter, click.Option) and record is not None:
                heading = _HEADING_OF.get(parameter.opts[-1], _OWN)
                found.setdefault(heading, []).append(record)
        return {name: found[name] for name in HEADINGS if name in found}


class PlanCommand(Command):
    """A command on a plan, which has its machine, its job and its hosts in itself."""

    def rows(self, ctx: click.Context) -> dict[str, list[tuple[str, str]]]:
        """Rows of help, the command's own first; of inputs there are a few rows."""
        rows = super().rows(ctx)
        inputs = [_INPUTS]
        if "Hosts" in rows:
            inputs.append(_HOSTS)
            # Without a search it is the seed of a baseline.
            if [flags for flags, _ in rows.get("Search", ())] == ["--seed N"]:
                del rows["Search"]
                inputs.append(_SEED)
        for heading in _KEPT:
            rows.pop(heading, None)
        own = sorted(rows.pop(_OWN, []), key=lambda row: row[0] == "--force")
        return {_OWN: [*own, *inputs], **rows}


def command(
    example: str, cls: type[Command] = Command, after: str = "", **more: Any
) -> Callable[[Callable[..., Any]], click.Command]:
    """A function as a command, with an example of it under its help.

    Its docstring is the help, ``after`` the last paragraph of it.
    """

    def made(function: Callable[..., Any]) -> click.Command:
        help = f"{cleandoc(function.__doc__ or '')}\n\n{after}".rstrip()
        epilog = f"Example: {example}"
        return click.command(cls=cls, help=help, epilog=epilog, **more)(function)

    return made


class Group(click.Group):
    """A group of commands, which help lists in the order of the code."""

    context_class = Context
    command_class = Command

    def list_commands(self, _ctx: click.Context) -> list[str]:
        """Names of the commands."""
        return list(self.commands)


def context_of(root: click.Context, names: tuple[str, ...]) -> click.Context:
    """The context of the command with these names.

    Raises `click.UsageError` if there is none; the message names the nearest.
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
