"""``placer tune``: the degrees of a job and its placement, chosen together."""

from __future__ import annotations

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

if TYPE_CHECKING:
    from collections.abc import Callable

    from placer.degrees.search import State
    from placer.degrees.tuning import Tuning

_FRAMEWORKS = ("megatron", "torchtitan", "deepspeed", "jax")
_SIZES = ("tp", "cp", "ep", "etp", "pp", "vp", "micro_batch")
_MODES = ("recompute", "sharding")


def _sizes(
    _context: click.Context, _option: click.Parameter, text: str | None
) -> tuple[int, ...] | None:
    from placer.sweep.grid import parse_sizes

    try:
        return None if text is None else parse_sizes(text)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


def _bytes(
    _context: click.Context, _option: click.Parameter, text: str | None
) -> float | None:
    from placer.units import parse_bytes

    try:
        return None if text is None else parse_bytes(text)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


def _size_option(name: str, help: str) -> Callable[[Any], Any]:
    return click.option(name, metavar="LIST", callback=_sizes, help=help)


def _names(
    _context: click.Context, _option: click.Parameter, text: str | None
) -> tuple[str, ...] | None:
    if text is None:
        return None
    return tuple(name.strip() for name in text.split(",") if name.strip())


@click.command(
    epilog="Example: placer tune -t azure-gb200-mlperf-v6 -j llama3.1-405b-mlperf-v6 "
    "--gpus 4096 --global-batch 1024 -o plan.json"
)
@topology_option
@swept_job_option
@hosts_option
@_size_option("--gpus", "GPUs to use. Default: as many as help.")
@click.option(
    "--global-batch",
    type=click.IntRange(1),
    metavar="N",
    help="Samples of a step. Default: the job's.",
)
@click.option(
    "--memory",
    metavar="SIZE",
    callback=_bytes,
    help="Of a GPU: 80GB. Default: the machine's.",
)
@click.option(
    "--framework",
    type=OneOf(_FRAMEWORKS),
    default="megatron",
    help="Whose rules degrees obey. Default: megatron.",
)
@_size_option("--tp", "Only these tensor-parallel sizes: 1,2,4 or 1-8.")
@_size_option("--cp", "Only these context-parallel sizes.")
@_size_option("--ep", "Only these expert-parallel sizes.")
@_size_option("--etp", "Only these tensor-parallel sizes of experts.")
@_size_option("--pp", "Only these pipeline sizes.")
@_size_option("--vp", "Only so many chunks a pipeline rank.")
@_size_option("--micro-batch", "Only so many samples a micro-batch.")
@click.option(
    "--recompute",
    metavar="LIST",
    callback=_names,
    help="Only these modes: none, full, op, or modules as moe_act+mlp.",
)
@click.option(
    "--sharding",
    metavar="LIST",
    callback=_names,
    help="Only these: ddp, zero1, zero2, zero3, hsdp.",
)
@click.option(
    "--top", type=click.IntRange(1, 1000), default=10, help="Rows. Default: 10."
)
@click.option("--explain", is_flag=True, help="Say what the first two rows differ in.")
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    shell_complete=complete.files,
    help="Write the best row's plan.",
)
@click.option(
    "--job-output",
    metavar="FILE",
    shell_complete=complete.files,
    help="Write the job with the best degrees.",
)
@seed_option
@time_limit_option("all")
@engine_options
@format_option("text", "json", "csv")
@quiet_option("No progress.")
@click.pass_context
def tune(context: click.Context, /, **options: Any) -> None:
    """Choose the degrees of job J on machine T, and place them.

    All degrees that the framework accepts are considered, with their micro-batches,
    interleaving, recomputation and sharding. Those that do not fit into memory are left
    out, those whose lower bound is above the best placement found need no placement.
    """
    from placer.api.tune import tune as run
    from placer.cli.machine import read_machine

    options = with_folder(options)
    with interrupts.searching() as stop:
        machine = read_machine(options)
        gpus = options["gpus"]
        found = run(
            machine,
            read_given_job(options, ranks=gpus[0] if gpus else machine.num_gpus),
            options["hosts"],
            gpus=options["gpus"],
            global_batch=options["global_batch"],
            memory=options["memory"],
            framework=options["framework"],
            **{key: options[key] for key in (*_SIZES, *_MODES)},
            top=options["top"],
            time_limit=options["time_limit"],
            seed=options["seed"],
            engine=engine_of(options),
            stop=stop,
            progress=_told(options["quiet"]),
        )
        _write(found, options)
    if interrupts.exit_code:
        click.echo("interrupted: the best row is not proved", err=True)
        end(context, interrupts.exit_code)


def _told(quiet: bool) -> Callable[[State], None]:
    """Prints a line each time a better choice was placed."""
    from math import inf

    from placer.units import format_seconds

    best = inf

    def tell(state: State) -> None:
        nonlocal best
        if state.best_s < best and not quiet:
            best = state.best_s
            click.echo(
                f"  {state.placed:4} placed, best {format_seconds(best)}, "
                f"no choice below {format_seconds(state.least_s)}",
                err=True,
            )

    return tell


def _write(found: Tuning, options: dict[str, Any]) -> None:
    from placer.cli.output import write_text
    from placer.placement.plan_encode import json_text

    if options["output"] or options["job_output"]:
        _write_files(found, options)
    if options["format_name"] == "json":
        write_text("-", json_text(found.to_dict()))
    elif options["format_name"] == "csv":
        write_text("-", found.to_csv())
    else:
        write_text("-", found.summary(explain=options["explain"]) + "\n")


def _write_files(found: Tuning, options: dict[str, Any]) -> None:
    """The plan and the job of the best row."""
    from placer.api.place import place
    from placer.cli.output import write_text
    from placer.job.write import to_document
    from placer.placement.plan_encode import json_text
    from placer.placement.plan_file import write_plan

    if options["job_output"]:
        write_text(options["job_output"], json_text(to_document(found.best)))
    if options["output"]:
        result = place(found.machine, found.best, seed=options["seed"])
        write_plan(result.plan, options["output"])
