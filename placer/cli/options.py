"""Options that mean the same in every command."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, TypeVar

import click

from placer.cli import complete

_Function = TypeVar("_Function", bound=Callable[..., Any])


class OneOf(click.Choice[str]):
    """A choice whose error names the nearest word, or what came in place of one."""

    def __init__(
        self, choices: Sequence[str], gone: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(choices)
        self.gone = dict(gone or {})

    def get_invalid_choice_message(self, value: Any, ctx: click.Context | None) -> str:
        """What is wrong with ``value``, what it may mean, and what it may be."""
        near = get_close_matches(str(value), self.choices, n=1)
        meant = f" Did you mean {near[0]!r}?" if near else ""
        if instead := self.gone.get(str(value)):
            meant = f" {instead}"
        return super().get_invalid_choice_message(value, ctx) + meant


class Whole(click.ParamType[int]):
    """A whole number from ``least``, to ``most`` where there is one."""

    name = "integer"

    def __init__(self, least: int, most: int | None = None) -> None:
        self.least, self.most = least, most

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Any:
        """The number that ``value`` is."""
        try:
            number = int(value)
        except ValueError:
            number = self.least - 1
        if number < self.least or (self.most is not None and number > self.most):
            words = "or more" if self.most is None else f"to {self.most:,}"
            self.fail(f"expected {self.least:,} {words}, got {value}", param, ctx)
        return number


def seconds(_context: click.Context, _option: click.Parameter, text: str) -> float:
    """Seconds that an option means: a bare number, or with a unit (``500ms``)."""
    from placer.base.units import parse_duration

    try:
        return parse_duration(text)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


def share(
    _context: click.Context, _option: click.Parameter, text: str | None
) -> float | None:
    """Share from 0 to 1 that an option means; ``1%`` is 0.01."""
    if text is None:
        return None
    is_percentage = text.endswith("%")
    try:
        found = float(text.removesuffix("%")) / (100 if is_percentage else 1)
    except ValueError:
        found = math.nan
    if not 0 <= found <= 1:
        raise click.BadParameter(f"{text!r} is not a share such as 0.01 or 1%")
    return found


def rules(
    _context: click.Context, _option: click.Parameter, texts: tuple[str, ...]
) -> dict[str, str]:
    """Hard rules that an option means: axis to tier, each as ``axis=tier``."""
    found: dict[str, str] = {}
    for text in texts:
        axis, _, tier = (part.strip() for part in text.partition("="))
        if not (axis and tier):
            raise click.BadParameter(f"{text!r} is not a rule such as tp=rack")
        if found.setdefault(axis, tier) != tier:
            raise click.BadParameter(f"{axis} has two rules, {found[axis]} and {tier}")
    return found


def even_rules(
    context: click.Context, option: click.Parameter, texts: tuple[str, ...]
) -> dict[str, str]:
    """Rules of equal parts that an option means, as requirements."""
    from placer.job.even import evenly

    return evenly(rules(context, option, texts))


def teller(options: dict[str, Any]) -> Callable[[str], None]:
    """Prints what a reader has to say, unless the command is quiet."""

    def tell(remark: str) -> None:
        if not options.get("quiet"):
            click.echo(f"note: {remark}", err=True)

    return tell


def hosts_option(function: _Function) -> _Function:
    """``--hosts``."""
    return click.option(
        "--hosts",
        metavar="H",
        shell_complete=complete.hosts,
        help='Hosts of the job in launch order: "n[01-16]" or @FILE. Default: all.',
    )(function)


def seed_option(function: _Function) -> _Function:
    """``--seed``."""
    return click.option(
        "--seed",
        type=Whole(0, 2**31 - 1),
        metavar="N",
        default=0,
        help="Seed of everything random. Default: 0.",
    )(function)


def time_limit_option(search: str) -> Callable[[_Function], _Function]:
    """``--time-limit`` of a search."""
    return click.option(
        "--time-limit",
        callback=seconds,
        metavar="TIME",
        default="60",
        help=f"When to stop {search}: 90, 90s, 5m. Default: 60 seconds.",
    )


def format_option(*formats: str) -> Callable[[_Function], _Function]:
    """``--format`` with these choices, the first of which is the default."""
    return click.option(
        "--format",
        "format_name",
        type=OneOf(formats),
        default=formats[0],
        help=f"What to print. Default: {formats[0]}.",
    )


def output_option(help: str) -> Callable[[_Function], _Function]:
    """``-o/--output``."""
    return click.option(
        "-o", "--output", metavar="PATH", shell_complete=complete.files, help=help
    )


def quiet_option(help: str) -> Callable[[_Function], _Function]:
    """``-q/--quiet``."""
    return click.option("-q", "--quiet", is_flag=True, help=help)


def objective_option(function: _Function) -> _Function:
    """``--objective``."""
    return click.option(
        "--objective",
        type=OneOf(["time", "hop-cost"]),
        help="What to minimise. Default: time, or hop cost for a job of weights alone.",
    )(function)


def require_option(beside: str) -> Callable[[_Function], _Function]:
    """``--require`` and ``--even``; ``beside`` says whose rules they stand beside."""
    return lambda function: click.option(
        "--require",
        multiple=True,
        callback=rules,
        metavar="AXIS=TIER",
        shell_complete=complete.rules,
        help=f"Hard rule beside {beside}: tp=rack. Repeatable.",
    )(
        click.option(
            "--even",
            multiple=True,
            callback=even_rules,
            metavar="AXIS=TIER",
            shell_complete=complete.rules,
            help="Hard rule: each group in equal parts of consecutive ranks, one "
            "in each domain that it touches: ep=rack. Repeatable.",
        )(function)
    )
