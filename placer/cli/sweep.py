"""``placer sweep``: the best placement over a grid of jobs and machines."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from time import monotonic
from typing import TYPE_CHECKING, Any

import click

from placer.cli import complete
from placer.cli.engine import engine_of, engine_options
from placer.cli.folder import with_folder
from placer.cli.interrupt import end, interrupts
from placer.cli.options import (
    OneOf,
    format_option,
    hosts_option,
    quiet_option,
    read_given_job,
    seed_option,
    swept_job_option,
    time_limit_option,
    topology_option,
)
from placer.cli.plot_option import check_plot, plot_option

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from placer.sweep.grid import Axis, Point
    from placer.sweep.point import Row, Task
    from placer.topology.model import Topology

    Progress = Callable[[int, int], None]

INVALID, INFEASIBLE = 2, 3
SAY_EVERY_S = 5.0


def _sizes(
    _context: click.Context, option: click.Parameter, text: str | None
) -> Axis | None:
    from placer.sweep.grid import Axis, parse_sizes

    try:
        return None if text is None else Axis(str(option.name), parse_sizes(text))
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


def _rates(
    _context: click.Context, _option: click.Parameter, text: str | None
) -> Axis | None:
    from placer.sweep.grid import NIC_RATE, Axis, parse_rates

    try:
        return None if text is None else Axis(NIC_RATE, parse_rates(text))
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


def _ratios(
    _context: click.Context, _option: click.Parameter, texts: tuple[str, ...]
) -> list[Axis]:
    from placer.sweep.grid import OVERSUBSCRIPTION, Axis, parse_oversubscriptions

    axes = []
    for text in texts:
        try:
            tier, ratios = parse_oversubscriptions(text)
        except ValueError as error:
            raise click.BadParameter(str(error)) from None
        axes.append(Axis("_".join(filter(None, (OVERSUBSCRIPTION, tier))), ratios))
    return axes


def _size_option(name: str, help: str) -> Callable[[Any], Any]:
    return click.option(name, metavar="LIST", callback=_sizes, help=help)


@click.command()
@topology_option
@swept_job_option
@_size_option("--dp", "Data-parallel sizes: 112,128 or 1-8 or 8:128:8.")
@_size_option("--tp", "Tensor-parallel sizes.")
@_size_option("--pp", "Pipeline sizes.")
@_size_option("--cp", "Context-parallel sizes.")
@_size_option("--ep", "Expert-parallel sizes.")
@_size_option("--vp", "Chunks a pipeline rank.")
@_size_option("--gpus", "GPUs; dp follows.")
@_size_option("--global-batch", "Samples of a step; micro-batches follow.")
@_size_option("--micro-batches", "Micro-batches of a replica and step.")
@click.option(
    "--nic-rate",
    metavar="LIST",
    callback=_rates,
    help="Bandwidths a GPU of every scale-out tier: 50GB/s,100GB/s.",
)
@click.option(
    "--oversubscription",
    metavar="[TIER=]LIST",
    shell_complete=complete.tiers,
    multiple=True,
    callback=_ratios,
    help="Ratios of TIER, by default the outermost: 1,2,4. May be given again.",
)
@hosts_option
@click.option(
    "--objective",
    type=OneOf(["time", "hop-cost"]),
    help="What to minimise, as in place.",
)
@seed_option
@time_limit_option("the search of one point")
@engine_options
@plot_option("Also draw the times")
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    shell_complete=complete.files,
    help="Write the plan of rank 1.",
)
@format_option("text", "json", "csv")
@quiet_option("No progress and notes.")
@click.pass_context
def sweep(context: click.Context, /, **options: Any) -> None:
    """Score the best placement of job J on machine T over a grid.

    Every combination of the lists is a row, in the order given. Rank 1 trains the most
    samples a second. With --dp or --gpus the micro-batches of a replica stay and the
    global batch grows (weak scaling), unless --global-batch is given. Ctrl-C prints the
    rows done so far.
    """
    from placer.sweep.grid import grid
    from placer.sweep.run import sweep as run

    check_plot(options["plot"])
    axes = _axes(options)
    points = grid(axes)
    options = with_folder(options)
    task = _task(options, axes)
    engine = engine_of(options)
    with interrupts.searching() as stop:
        with _progress(options["quiet"]) as progress:
            rows = run(task, points, engine, progress, stop)
        _write(rows, [axis.key for axis in axes], options)
        if options["output"]:
            _write_best(task, points, rows, options)
        if not options["quiet"]:
            _note(task, axes)
    if interrupts.exit_code:
        click.echo(f"interrupted: {len(rows)} of {len(points)} points done", err=True)
        end(context, interrupts.exit_code)
    if all("error" in row for row in rows):
        click.echo("error: no point of the grid has a placement", err=True)
        statuses = {row["status"] for row in rows}
        context.exit(INFEASIBLE if "infeasible" in statuses else INVALID)


def _axes(options: dict[str, Any]) -> list[Axis]:
    from placer.sweep.grid import SIZES

    listed = [options[key] for key in (*SIZES, "nic_rate")]
    return [axis for axis in listed if axis is not None] + [
        *options["oversubscription"]
    ]


def _task(options: dict[str, Any], axes: list[Axis]) -> Task:
    """The inputs, with what is wrong for every point found before the first."""
    from placer.cli.machine import read_machine
    from placer.sweep.inputs import check_axes
    from placer.sweep.point import Task
    from placer.topology.allocation import allocate, parse_hosts

    machine: Topology = read_machine(options)
    check_axes(machine, axes)
    hosts = None if options["hosts"] is None else tuple(parse_hosts(options["hosts"]))
    allocate(machine, hosts)
    return Task(
        machine,
        read_given_job(options, ranks=_first(options["gpus"]) or machine.num_gpus),
        hosts,
        options["objective"],
        options["time_limit"],
        options["seed"],
    )


def _first(axis: Axis | None) -> int | None:
    """The first size of an axis that is swept."""
    return None if axis is None else int(axis.values[0])


def _progress(quiet: bool) -> AbstractContextManager[Progress]:
    from placer.cli.look import has_bars

    if quiet:
        return nullcontext(lambda _done, _total: None)
    if not has_bars():
        return nullcontext(CountLines())
    from placer.cli.live import CountBar

    return CountBar()


class CountLines:
    """Says how many points are done, a line every few seconds."""

    def __init__(self) -> None:
        self._said = monotonic()

    def __call__(self, done: int, total: int) -> None:
        """Tell that ``done`` of ``total`` are done."""
        if monotonic() - self._said >= SAY_EVERY_S:
            self._said = monotonic()
            click.echo(f"{done:,} of {total:,} points done", err=True)


def _write(rows: list[Row], swept: Sequence[str], options: dict[str, Any]) -> None:
    from placer.cli.draw import write_picture
    from placer.cli.output import write_text
    from placer.placement.plan_encode import json_text
    from placer.report.sweep_table import sweep_csv, sweep_text
    from placer.sweep.plot import sweep_plot

    if options["format_name"] == "json":
        write_text("-", json_text({"rows": rows}))
    elif options["format_name"] == "csv":
        write_text("-", sweep_csv(rows))
    elif rows:
        write_text("-", sweep_text(rows, swept) + "\n")
    if options["plot"] and rows:
        write_picture(lambda theme: sweep_plot(rows, swept, theme), options["plot"])


def _write_best(
    task: Task, points: Sequence[Point], rows: list[Row], options: dict[str, Any]
) -> None:
    """The plan of the row of rank 1, where there is one."""
    from placer.placement.plan_file import write_plan

    best = next((i for i, row in enumerate(rows) if row.get("rank") == 1), None)
    if best is not None:
        write_plan(task.placed(points[best]).plan, options["output"])


def _note(task: Task, axes: list[Axis]) -> None:
    """What the sweep changed beside the keys of the rows."""
    swept = {axis.key for axis in axes}
    if swept & {"dp", "gpus"} and "global_batch" not in swept and task.job.model:
        click.echo(
            "note: weak scaling: the micro-batches of a replica stay, so the global "
            "batch grows with dp",
            err=True,
        )
    if swept & {"tp", "cp", "pp"} and task.job.compute.micro_batch_time:
        click.echo(
            "note: the measured micro_batch_time is taken to shrink as tp x cp x pp "
            "grows, less where products get small",
            err=True,
        )
