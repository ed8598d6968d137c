"""Options that mean the same in every command."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar

import click

_Function = TypeVar("_Function", bound=Callable[..., Any])


def seconds(_context: click.Context, _option: click.Parameter, text: str) -> float:
    """Seconds that an option means: a bare number, or with a unit (``500ms``)."""
    from placer.units import parse_time

    try:
        return parse_time(text)
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


def format_option(*formats: str) -> Callable[[_Function], _Function]:
    """``--format`` with these choices, the first of which is the default."""
    return click.option(
        "--format",
        "format_name",
        type=click.Choice(formats),
        default=formats[0],
        show_default=True,
        help="What to print.",
    )


def output_option(help: str) -> Callable[[_Function], _Function]:
    """``-o/--output``."""
    return click.option("-o", "--output", metavar="PATH", help=help)


def quiet_option(help: str) -> Callable[[_Function], _Function]:
    """``-q/--quiet``."""
    return click.option("-q", "--quiet", is_flag=True, help=help)
