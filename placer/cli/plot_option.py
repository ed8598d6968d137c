"""``--plot``: a picture beside what a command prints."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from placer.cli import complete


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
