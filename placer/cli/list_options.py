"""What sweeps and tune share: lists, a plot, other machines that help."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from placer.cli import complete
from placer.cli.options import OneOf, Whole

if TYPE_CHECKING:
    from placer.workers.engine import Engine

_Function = TypeVar("_Function", bound=Callable[..., Any])


def engine_options(function: _Function) -> _Function:
    """``--workers`` and ``--scheduler``."""
    workers = click.option(
        "--workers",
        type=Whole(1, 1024),
        metavar="N",
        help="Processes that work at a time. Default: one per core that is granted.",
    )
    scheduler = click.option(
        "--scheduler",
        metavar="ADDRESS",
        help="Run on the Dask cluster at this address instead.",
    )
    return workers(scheduler(function))


def engine_of(options: dict[str, Any]) -> Engine:
    """The engine that the options of `engine_options` ask for."""
    from placer.base.threads import granted_cores
    from placer.workers.cluster import Cluster
    from placer.workers.pool import Pool

    if options["scheduler"] is None:
        return Pool(options["workers"] or granted_cores())
    if options["workers"] is not None:
        raise click.UsageError("--workers is for this machine, not for a --scheduler.")
    return Cluster(options["scheduler"])


def plot_option(what: str) -> Callable[[Any], Any]:
    """The option; ``what`` begins its help."""
    return click.option(
        "--plot",
        metavar="FILE",
        shell_complete=complete.files,
        help=f"{what}: FILE.svg or FILE.png.",
    )


def check_plot(file: str | None) -> None:
    """Refuse a plot that could not be written, before the work."""
    if file is None:
        return
    if not file.lower().endswith((".svg", ".png")):
        raise click.BadParameter("FILE must end in .svg or .png", param_hint="--plot")
    if file.lower().endswith(".png"):
        from placer.draw.png import check_png

        check_png()


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
