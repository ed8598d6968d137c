"""What sweeps and tune share: lists, a plot, other machines that help."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from placer.cli.options import Decorator, OneOf, Whole, option, together

if TYPE_CHECKING:
    from placer.workers.engine import Engine

engine_options = together(
    option(
        "--workers",
        "N",
        "Processes that work at a time. Default: one per core that is granted.",
        type=Whole(1, 1024),
    ),
    option(
        "--scheduler", "ADDRESS", "Run on the Dask cluster at this address instead."
    ),
)
framework_option = option(
    "--framework",
    "",
    "Framework whose rules the degrees obey. Default: megatron.",
    type=OneOf(["megatron", "torchtitan", "deepspeed", "jax"]),
    default="megatron",
)


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


def plot_option(what: str) -> Decorator:
    """The option; ``what`` begins its help."""
    return option("--plot", "FILE", f"{what}: FILE.svg or FILE.png.")


def check_plot(file: str | None) -> None:
    """Refuse a plot that could not be written, before the work."""
    if file is None:
        return
    if not file.lower().endswith((".svg", ".png")):
        raise click.BadParameter("FILE must end in .svg or .png", param_hint="--plot")
    if file.lower().endswith(".png"):
        from placer.draw.png import check_png

        check_png()


def size_option(name: str, help: str) -> Decorator:
    """An option of whole numbers: ``1,2,4`` or ``1-8``."""
    return option(name, "LIST", help, _sizes)


def _sizes(text: str) -> tuple[int, ...]:
    from placer.sweep.grid import parse_sizes

    return parse_sizes(text)
