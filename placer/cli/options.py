"""Options that mean the same in every command."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar

import click

_Function = TypeVar("_Function", bound=Callable[..., Any])
_Decorator = Callable[[_Function], _Function]


class Seconds(click.ParamType):
    """A time: seconds as a bare number, or with a unit (``90s``, ``500ms``)."""

    name = "seconds"

    def convert(
        self,
        value: Any,
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> float:
        """Seconds that ``value`` means."""
        if isinstance(value, float):
            return value
        from placer.units import parse_time

        try:
            return parse_time(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


class Share(click.ParamType):
    """A share from 0 to 1, or a percentage with its sign (``1%``)."""

    name = "share"

    def convert(
        self,
        value: Any,
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> float:
        """Share that ``value`` means."""
        text = str(value).strip()
        try:
            share = float(text.removesuffix("%")) / (100 if text[-1:] == "%" else 1)
        except ValueError:
            share = math.nan
        if not 0 <= share <= 1:
            self.fail(f"{text!r} is not a share such as 0.01 or 1%", param, ctx)
        return share


class Rule(click.ParamType):
    """A hard rule ``axis=tier``."""

    name = "axis=tier"

    def convert(
        self,
        value: Any,
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> tuple[str, str]:
        """Axis and tier that ``value`` names."""
        axis, equals, tier = str(value).partition("=")
        if not (axis.strip() and equals and tier.strip()):
            self.fail(f"{value!r} is not a rule such as tp=rack", param, ctx)
        return axis.strip(), tier.strip()


def topology_option(function: _Function) -> _Function:
    """``-t/--topology``."""
    return click.option(
        "-t",
        "--topology",
        required=True,
        metavar="T",
        help='Preset, file (- is stdin) or text like "rack:8 node:18 gpu:4".',
    )(function)


def job_option(function: _Function) -> _Function:
    """``-j/--job``."""
    return click.option(
        "-j",
        "--job",
        required=True,
        metavar="J",
        help="Preset or file (- is stdin).",
    )(function)


def hosts_option(function: _Function) -> _Function:
    """``--hosts``."""
    return click.option(
        "--hosts",
        metavar="H",
        help='Allocation in launch order: "n[01-16]" or @FILE. Default: every node.',
    )(function)


def seed_option(function: _Function) -> _Function:
    """``--seed``."""
    return click.option(
        "--seed",
        type=click.IntRange(0, 2**31 - 1),
        default=0,
        show_default=True,
        help="Seed of everything random.",
    )(function)


def format_option(*formats: str) -> _Decorator[_Function]:
    """``--format`` with these choices, the first of which is the default."""
    return click.option(
        "--format",
        "format_name",
        type=click.Choice(formats),
        default=formats[0],
        show_default=True,
        help="What to print.",
    )


def output_option(help: str) -> _Decorator[_Function]:
    """``-o/--output``."""
    return click.option("-o", "--output", metavar="PATH", help=help)


def quiet_option(help: str) -> _Decorator[_Function]:
    """``-q/--quiet``."""
    return click.option("-q", "--quiet", is_flag=True, help=help)
