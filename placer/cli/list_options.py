"""Options that take lists, and sizes of memory; the framework whose rules hold."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from placer.cli.options import OneOf

framework_option = click.option(
    "--framework",
    type=OneOf(["megatron", "torchtitan", "deepspeed", "jax"]),
    default="megatron",
    help="Framework whose rules the degrees obey. Default: megatron.",
)


def size_option(name: str, help: str) -> Callable[[Any], Any]:
    """An option of whole numbers: ``1,2,4`` or ``1-8``."""
    return click.option(name, metavar="LIST", callback=_sizes, help=help)


def _sizes(
    _context: click.Context, _option: click.Parameter, text: str | None
) -> tuple[int, ...] | None:
    from placer.sweep.grid import parse_sizes

    try:
        return None if text is None else parse_sizes(text)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


def names(
    _context: click.Context, _option: click.Parameter, text: str | None
) -> tuple[str, ...] | None:
    """Names of a list."""
    if text is None:
        return None
    return tuple(name.strip() for name in text.split(",") if name.strip())


def size_in_bytes(
    _context: click.Context, _option: click.Parameter, text: str | None
) -> float | None:
    """Bytes of a quantity such as ``80GB``."""
    from placer.base.units import parse_bytes

    try:
        return None if text is None else parse_bytes(text)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None
