"""``placer sweep``: the best placement over a grid of jobs and machines."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

import click

import placer
from placer.cli import complete, shared
from placer.cli.exit_codes import INFEASIBLE, INVALID
from placer.cli.folder import with_folder
from placer.cli.grouped import command
from placer.cli.inputs import read_given_job, read_machine
from placer.cli.interrupt import end_if_interrupted, interrupts
from placer.cli.options import called, option, teller
from placer.cli.output import has_bars, write_found, write_plan
from placer.cli.progress import CountBar, Due
from placer.documents.files import check_target

if TYPE_CHECKING:
    from placer.workers.engine import Stop

    Progress = Callable[[int, int], None]


def _rates(text: str) -> tuple[float, ...]:
    from placer.sweep.grid import parse_rates

    return parse_rates(text)


def _ratios(texts: tuple[str, ...]) -> dict[str, tuple[float, ...]]:
    from placer.sweep.grid import parse_oversubscriptions

    found: dict[str, tuple[float, ...]] = {}
    for text in texts:
        tier, ratios = parse_oversubscriptions(text)
        if tier in found:
            message = f"{tier or 'the outermost tier'} is given twice"
            raise ValueError(f"{message}: put all its values in one list")
        found[tier] = ratios
    return found


@command("placer sweep -t nvl72 -j quickstart --dp 1,2,4")
@shared.topology(uplinks=False)
@shared.job()
@shared.script
@shared.sizes("--dp", "Data-parallel sizes: 112,128 or 1-8 or 8:128:8.")
@shared.sizes("--tp", "Tensor-parallel sizes.")
@shared.sizes("--pp", "Pipeline sizes.")
@shared.sizes("--cp", "Context-parallel sizes.")
@shared.sizes("--ep", "Expert-parallel sizes.")
@shared.sizes("--vp", "Chunks per pipeline rank.")
@shared.sizes("--gpus", "Numbers of GPUs; dp follows.")
@shared.sizes("--global-batch", "Samples per step; micro-batches follow.")
@shared.sizes("--micro-batches", "Micro-batches per replica and step.")
@option(
    "--nic-rate LIST",
    "Bandwidths per GPU of every scale-out tier: 50GB/s,100GB/s.",
    _rates,
)
@option(
    "--oversubscription [TIER=]LIST",
    "Ratios of TIER, else of the outermost tier: 1,2,4. Repeatable.",
    _ratios,
    shell_complete=complete.tiers,
    to="ratios",
)
@shared.framework
@shared.hosts
@shared.objective
@shared.seed
@shared.time_limit("the search of one point")
@shared.engine
@shared.plot("Also draw the times")
@shared.output("Write the plan of rank 1 here.")
@shared.formats("text", "json", "csv")
@shared.quiet("No progress and notes.")
@click.pass_context
def sweep(context: click.Context, /, **options: Any) -> None:
    """Score the best placement over a grid of sizes.

    Shows how the step time changes with a size, a NIC or an uplink: every point is
    placed. For the best degrees of a job use `placer tune`.

    Every combination of the lists is a row, in the order given. Rank 1 trains the most
    samples per second. With --dp or --gpus the micro-batches of a replica stay and the
    global batch grows (weak scaling), unless --global-batch is given. Ctrl-C prints the
    rows done so far.
    """
    for name in ("output", "plot"):
        check_target(options[name] or "-")
    shared.check_plot(options["plot"])
    options = with_folder(options | {"oversubscription": {}})
    with interrupts.searching() as stop:
        with _progress(options["quiet"]) as progress:
            found = _run(options, progress, stop)
        _write(found, options)
        _note(found, teller(options))
    said = f"{len(found.rows)} of {found.points} points done"
    end_if_interrupted(context, said)
    if all("error" in row for row in found.rows):
        click.echo("error: no point of the grid has a placement", err=True)
        statuses = {row["status"] for row in found.rows}
        context.exit(INFEASIBLE if "infeasible" in statuses else INVALID)


def _run(options: dict[str, Any], progress: Progress, stop: Stop) -> placer.Sweep:
    """The sweep that the options ask for."""
    from placer.topology.allocation import allocate

    machine = read_machine(options)
    gpus = options["gpus"]
    ranks = gpus[0] if gpus else allocate(machine, options["hosts"]).num_gpus
    return called(
        placer.sweep,
        options,
        topology=machine,
        job=read_given_job(options, machine, ranks=ranks),
        oversubscription=options["ratios"],
        engine=shared.engine_of(options),
        progress=progress,
        stop=stop,
    )


def _progress(quiet: bool) -> AbstractContextManager[Progress]:
    """Who is told how many points are done: nobody, a bar, a line every few seconds."""
    if quiet:
        return nullcontext(lambda _done, _total: None)
    if has_bars():
        return CountBar()
    line = Due()

    def tell(done: int, total: int) -> None:
        if line.is_due():
            click.echo(f"{done:,} of {total:,} points done", err=True)

    return nullcontext(tell)


def _write(found: placer.Sweep, options: dict[str, Any]) -> None:
    from placer.cli.draw import write_picture
    from placer.sweep.result import sweep_plot

    if options["output"] == "-" and found.best is not None:
        pass  # stdout is the plan
    elif found.rows or options["format_name"] != "text":
        write_found(options["format_name"], found, found.summary)
    if options["plot"] and found.rows:
        rows, swept = found.rows, found.swept
        write_picture(lambda theme: sweep_plot(rows, swept, theme), options["plot"])
    if options["output"] and found.best is not None:
        write_plan(options["output"], found.place(found.best).plan)


def _note(found: placer.Sweep, tell: Callable[[str], None]) -> None:
    """What the sweep changed beside the keys of the rows."""
    swept, job = set(found.swept), found.task.job
    if swept & {"dp", "gpus"} and "global_batch" not in swept and job.model:
        tell(
            "weak scaling: the micro-batches of a replica stay, so the global batch "
            "grows with dp"
        )
    if swept & {"tp", "cp", "pp"} and job.compute.micro_batch_time:
        tell(
            "the measured micro_batch_time is taken to shrink as tp x cp x pp grows, "
            "less where products get small"
        )
