"""``placer draw``: pictures of a plan, and of a sweep."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

import placer
from placer.cli import complete, shared
from placer.cli.options import OneOf, option, tell_new_name
from placer.cli.output import output_path, write_bytes, write_text
from placer.cli.placements import placement_alone, plan_command, with_inputs

_FORMATS = ("svg", "png")


@plan_command("placer draw plan.json --zoom rack=r012 --colour pp -o r012.png")
@click.argument("plan", shell_complete=complete.placements)
@click.argument(
    "picture",
    type=OneOf(
        ["map", "traffic", "timeline", "pipeline", "scaling"],
        gone={"poster": "All pictures are on one page: placer report PLAN."},
    ),
    default="map",
)
@option(
    "--colour --color",
    "What the colours of the map tell apart: roles, replicas (dp), stages (pp) or "
    "groups of ep or tp. Default: the first of them with members.",
    type=OneOf(["role", "dp", "pp", "ep", "tp"]),
)
@option("--zoom DOMAIN", "Map of one domain: r012, rack=r012 or b01/r012.")
@option(
    "--theme",
    "Colours of text and background. Default: auto, as the viewer's (PNG: light).",
    type=OneOf(["auto", "light", "dark"]),
    default="auto",
)
@option(
    "--format [svg|png]",
    "What to write. Default: by the suffix of PATH, or svg.",
    type=OneOf([*_FORMATS, "html"]),
    to="format_name",
)
@shared.placement
@shared.output(
    "Write the picture here; - is stdout. Default: a file named after PLAN on a "
    "terminal, else stdout."
)
@shared.quiet("No notes.")
def draw(plan: str, picture: str, **options: Any) -> None:
    """Draw a placement: the map, the traffic or a step over time.

    The map shows every GPU, rack or block, whichever is readable, and outlines groups
    that leave their domain where there are few. `pipeline` shows when the stages of the
    slowest replica work. For `scaling`, PLAN is what `placer sweep --format json`
    printed. `placer report` has all pictures on one page.
    """
    if picture != "map" and (options["colour"] or options["zoom"]):
        raise click.UsageError("--colour and --zoom are for the map.")
    suffix = options["format_name"] or "svg"
    output = output_path(options["output"], plan, picture, suffix)
    if suffix == "html" or output.lower().endswith(".html"):
        _write_page(plan, picture, output, options)
        return
    write_picture(
        lambda theme: _drawn(plan, picture, theme, options),
        output,
        options["theme"],
        options["format_name"],
    )


def _write_page(file: str, picture: str, output: str, options: dict[str, Any]) -> None:
    """Write the report page of a plan.

    Raises `click.UsageError` if one picture is asked for: the page has them all.
    """
    if picture != "map":
        raise click.UsageError("The HTML page shows all pictures; leave PICTURE out.")
    path = "plan.json" if file == "-" else file
    new = f"placer report {file}" + (f" -o {output}" if output != "-" else "")
    tell_new_name(options, "draw as HTML", new)
    write_text(output, placer.report_html(placer.read_plan(file), None, path=path))


def write_picture(
    drawn: Callable[[str], str],
    output: str,
    theme: str = "auto",
    format_name: str | None = None,
) -> None:
    """Write what ``drawn`` makes of a theme to ``output``, as SVG or PNG.

    Raises `click.BadParameter` if the suffix of ``output`` says neither, and
    ``format_name`` is None.
    """
    if format_name is None:
        format_name = "svg" if output == "-" else output.rpartition(".")[2].lower()
    if format_name not in _FORMATS:
        message = f"{output!r} ends in neither .svg nor .png; say --format"
        raise click.BadParameter(message, param_hint="--output")
    if format_name == "png":
        from placer.draw.png import png

        # resvg follows no preference.
        data = png(drawn("light" if theme == "auto" else theme))
        write_bytes(output, data)
    else:
        write_text(output, drawn(theme))


def _drawn(file: str, picture: str, theme: str, options: dict[str, Any]) -> str:
    """The SVG."""
    from placer.draw.picture import drawn
    from placer.draw.pipeline import pipeline_chart, step_of

    if picture == "scaling":
        from placer.sweep.result import read_rows, sweep_plot

        return sweep_plot(*read_rows(file), theme)
    if picture == "pipeline":
        plan, inputs = with_inputs(file, options)
        return pipeline_chart(step_of(plan, inputs.topology, inputs.job), theme)
    plan = placement_alone(file, options)
    return drawn(plan, picture, options["colour"], options["zoom"], theme)
