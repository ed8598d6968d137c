"""``placer draw``: pictures of a plan, and of a sweep."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from placer.cli import complete
from placer.cli.grouped import PlanCommand
from placer.cli.options import OneOf, format_by_suffix_option, output_option
from placer.cli.plan_inputs import plan_input_options, plan_inputs

if TYPE_CHECKING:
    from collections.abc import Callable

    from placer.cost.step import Step
    from placer.placement.plan import Plan

_FORMATS = ("svg", "png")
_INPUTS = (
    "topology",
    "job",
    "hardware",
    "gpus_per_node",
    "oversubscription",
    "labels",
    "order",
    "force",
)


@click.command(
    cls=PlanCommand,
    epilog="Example: placer draw plan.json --zoom rack=r012 --colour pp -o r012.png",
)
@click.argument("file", shell_complete=complete.files)
@click.argument(
    "picture",
    type=OneOf(
        ["map", "traffic", "timeline", "pipeline", "scaling"],
        gone={
            "poster": "All pictures are on one page: placer draw FILE --format html."
        },
    ),
    default="map",
)
@click.option(
    "--colour",
    "--color",
    type=OneOf(["role", "dp", "pp", "ep", "tp"]),
    help="Colours of the map: roles of a workload, replicas, stages, or groups of the "
    "axis. Default: the first of them with members.",
)
@click.option(
    "--zoom",
    metavar="DOMAIN",
    help="Map of one domain: r012, rack=r012 or b01/r012.",
)
@click.option(
    "--theme",
    type=OneOf(["auto", "light", "dark"]),
    default="auto",
    show_default=True,
    help="Colours of text and background; auto follows the reader's (PNG: light).",
)
@format_by_suffix_option(*_FORMATS, "html")
@plan_input_options
@output_option("Write the picture here; - is stdout, as without it.")
def draw(file: str, picture: str, **options: Any) -> None:
    """Draw a plan: the map, the traffic or a step over time.

    The map shows every GPU, rack or block, whichever is readable, and outlines groups
    that leave their domain where these are few. `pipeline` draws when the stages of the
    slowest replica work; it looks at the plan's topology and job. `scaling` draws the
    rows that `placer sweep --format json` printed. HTML is the report page of the plan,
    with map, times and pipeline.
    """
    if picture != "pipeline" and any(options[key] for key in _INPUTS):
        raise click.UsageError("Only the pipeline needs a topology and a job.")
    if picture != "map" and (options["colour"] or options["zoom"]):
        raise click.UsageError("--colour and --zoom are for the map.")
    output = options["output"] or "-"
    if options["format_name"] == "html" or output.lower().endswith(".html"):
        _write_page(file, picture, output)
        return
    write_picture(
        lambda theme: _drawn(file, picture, theme, options),
        output,
        options["theme"],
        options["format_name"],
    )


def _write_page(file: str, picture: str, output: str) -> None:
    """Write the report page of a plan.

    Raises
    ------
    click.UsageError
        If one picture is asked for: the page has them all.
    """
    from placer.api.report import report_html
    from placer.cli.output import write_text
    from placer.placement.plan_file import read_plan

    if picture != "map":
        raise click.UsageError("The HTML page shows all pictures; leave PICTURE out.")
    path = "plan.json" if file == "-" else file
    write_text(output, report_html(read_plan(file), None, path=path))


def write_picture(
    drawn: Callable[[str], str],
    output: str,
    theme: str = "auto",
    format_name: str | None = None,
) -> None:
    """Write what ``drawn`` makes of a theme to ``output``, as SVG or PNG.

    Raises
    ------
    click.BadParameter
        If the suffix of ``output`` says neither, and ``format_name`` is None.
    """
    from placer.cli.output import write_bytes, write_text

    if format_name is None:
        format_name = _format_of(output)
    if format_name == "png":
        from placer.draw.png import png

        # resvg follows no preference.
        data = png(drawn("light" if theme == "auto" else theme))
        write_bytes(output, data)
    else:
        write_text(output, drawn(theme))


def _format_of(output: str) -> str:
    suffix = output.rpartition(".")[2].lower()
    if output == "-":
        return "svg"
    if suffix not in _FORMATS:
        message = f"{output!r} ends in neither .svg nor .png; say --format"
        raise click.BadParameter(message, param_hint="--output")
    return suffix


def _drawn(file: str, picture: str, theme: str, options: dict[str, Any]) -> str:
    """The SVG."""
    from placer.draw.heat_map import traffic_map
    from placer.draw.pipeline import pipeline_chart
    from placer.draw.placement_map import placement_map
    from placer.draw.time_line import time_line
    from placer.placement.plan_file import read_plan
    from placer.sweep.plot import sweep_plot
    from placer.sweep.rows import read_rows

    if picture == "scaling":
        return sweep_plot(*read_rows(file), theme)
    plan = read_plan(file)
    if picture == "traffic":
        return traffic_map(plan, theme)
    if picture == "timeline":
        return time_line(plan, theme)
    if picture == "pipeline":
        return pipeline_chart(_step(plan, options), theme)
    return placement_map(plan, options["colour"], options["zoom"], theme)


def _step(plan: Plan, options: dict[str, Any]) -> Step:
    """The cost of the plan's placement."""
    from placer.cost.step import StepModel
    from placer.placement.build import placement_of_plan

    inputs = plan_inputs(plan, options)
    machine = inputs.topology
    gpu_of_rank = placement_of_plan(plan, machine).gpu_of_rank
    return StepModel(machine, inputs.job).step(gpu_of_rank)
