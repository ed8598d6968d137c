"""Help in groups: commands by what they are for, options under headings."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import click
from click.core import iter_params_for_processing

from placer.errors import InfeasibleError

_OWN = "Options"
# Options by heading, in the order in which help prints them. What is not here is the
# command's own.
HEADINGS = {
    "Machine": "--topology --hardware --gpu --gpus-per-node --label --oversubscription",
    "Job": "--job --gpus --tflops --micro-batch-time --set --select --order",
    "Hosts": "--hosts --exclude --free --busy",
    _OWN: "",
    "Rules": "--require --even --pin --avoid --at-most --spares",
    "Degrees": "--tp --cp --ep --etp --pp --vp --dp --micro-batch --micro-batches "
    "--global-batch --recompute --sharding --framework --memory",
    "Search": "--objective --gap --effort --seed --time-limit --workers --scheduler",
    "Output": "--output --job-output --format --report --plot --strict --verbose "
    "--quiet --debug --help",
}
_HEADING_OF = {
    option: heading
    for heading, options in HEADINGS.items()
    for option in options.split()
}
_INPUTS = (
    "-t T, -j J",
    "Machine and job instead of those that a plan file keeps, with the options that "
    "place has for them.",
)
_INPUT_HEADINGS = ("Machine", "Job")


class Command(click.Command):
    """A command with options under headings, whose JSON says what is infeasible."""

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
                _write_verdict(error)
            raise

    def format_options(
        self, ctx: click.Context, formatter: click.HelpFormatter
    ) -> None:
        """Write the options, heading by heading."""
        for heading, rows in self.rows(ctx).items():
            with formatter.section(heading):
                formatter.write_dl(rows)

    def rows(self, ctx: click.Context) -> dict[str, list[tuple[str, str]]]:
        """Rows of help by heading."""
        return _grouped(self.get_params(ctx), ctx)


class PlanCommand(Command):
    """A command on a plan, which has its machine and its job in itself."""

    def rows(self, ctx: click.Context) -> dict[str, list[tuple[str, str]]]:
        """Rows of help, the command's own first; machine and job are one row."""
        rows = super().rows(ctx)
        for heading in _INPUT_HEADINGS:
            rows.pop(heading, None)
        return {_OWN: [*rows.pop(_OWN, []), _INPUTS], **rows}


def _write_verdict(error: InfeasibleError) -> None:
    from placer.cli.output import write_text
    from placer.placement.plan_encode import json_text
    from placer.report.verdict import infeasible_verdict

    write_text("-", json_text({"verdict": infeasible_verdict(error)}))


def _grouped(
    parameters: Iterable[click.Parameter], ctx: click.Context
) -> dict[str, list[tuple[str, str]]]:
    """Rows of help by heading, headings in their order and none empty."""
    found: dict[str, list[tuple[str, str]]] = {}
    for parameter in parameters:
        record = parameter.get_help_record(ctx)
        if isinstance(parameter, click.Option) and record is not None:
            heading = _HEADING_OF.get(parameter.opts[-1], _OWN)
            found.setdefault(heading, []).append(record)
    return {name: found[name] for name in HEADINGS if name in found}
