"""``placer tune``: the degrees of a job and its placement, chosen together."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import inf
from typing import TYPE_CHECKING, Any

import click

import placer
from placer.base.errors import InputError, StoppedError
from placer.base.units import format_seconds, parse_bytes
from placer.cli import shared
from placer.cli.folder import with_folder
from placer.cli.grouped import command
from placer.cli.inputs import read_given_job, read_machine
from placer.cli.interrupt import end_if_interrupted, interrupts
from placer.cli.options import Whole, called, flag, option
from placer.cli.output import write_document, write_found, write_plan
from placer.cli.progress import Due
from placer.documents.files import check_target

if TYPE_CHECKING:
    from placer.tune.found import State

# How much longer the steps are that a picture shows.
SLACK = 0.5


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


@command("placer tune -t machine.yaml -j job.yaml --gpus 4096 -o plan.json")
@shared.topology()
@shared.job()
@shared.script
@shared.hosts
@shared.sizes("--gpus", "Numbers of GPUs to use. Default: as many as help.")
@option(
    "--global-batch N", "Samples per step. Default: what the job says.", type=Whole(1)
)
@option(
    "--memory SIZE",
    "Memory per GPU: 80GB. Default: what the machine says, else of the usual GPU.",
    parse_bytes,
)
@shared.framework
@shared.sizes("--tp", "Only these tensor-parallel sizes: 1,2,4 or 1-8.")
@shared.sizes("--cp", "Only these context-parallel sizes.")
@shared.sizes("--ep", "Only these expert-parallel sizes.")
@shared.sizes("--etp", "Only these tensor-parallel sizes of experts.")
@shared.sizes("--pp", "Only these pipeline sizes.")
@shared.sizes("--vp", "Only these numbers of chunks per pipeline rank.")
@shared.sizes("--micro-batch", "Only these numbers of samples per micro-batch.")
@option(
    "--recompute LIST",
    "Only these modes: none, selective, full, op, or modules such as moe_act+mlp.",
    _names,
)
@option("--sharding LIST", "Only these modes: ddp, zero1, zero2, zero3, hsdp.", _names)
@option("--top N", "Rows to print. Default: 10.", type=Whole(1, 1000), default=10)
@flag("--explain", "Say why the first row beats the second, and the job's own degrees.")
@option(
    "--row N",
    "Row whose flags are printed and that -o and --job-output write. Default: 1.",
    type=Whole(1, 1000),
    default=1,
)
@shared.output("Write the plan of the row here.")
@option("--job-output FILE", "Write the job with the degrees of the row here.")
@shared.plot("Also draw step time over memory and GPUs")
@shared.seed
@shared.time_limit("the whole search")
@shared.engine
@shared.formats("text", "json", "csv")
@shared.quiet("No progress and notes.")
@click.pass_context
def tune(context: click.Context, /, **options: Any) -> None:
    """Choose tp, cp, ep, pp and dp together with the placement.

    Finds the best degrees, and drops bad ones early. For the step time at every point
    of a grid use `placer sweep`.

    All degrees that the framework accepts are considered, with micro-batches,
    interleaving, recomputation and sharding. Degrees that do not fit into memory are
    left out, and so are those with a lower bound above the best placement found.
    """
    from placer.topology.allocation import allocate

    if options["output"] == options["job_output"] == "-":
        message = "only one of -o and --job-output can be written to standard output"
        raise InputError(message)
    for name in ("output", "job_output", "plot"):
        check_target(options[name] or "-")
    shared.check_plot(options["plot"])
    options = with_folder(options)
    with interrupts.searching() as stop:
        machine = read_machine(options)
        gpus, hosts = options["gpus"], options["hosts"]
        try:
            ranks = gpus[0] if gpus else allocate(machine, hosts).num_gpus
            found = called(
                placer.tune,
                options,
                topology=machine,
                job=read_given_job(options, machine, ranks=ranks, cuts_batch=True),
                top=max(options["top"], options["row"]),
                slack=SLACK if options["plot"] else 0.0,
                engine=shared.engine_of(options),
                stop=stop,
                progress=_progress(options["quiet"]),
            )
        except StoppedError:
            end_if_interrupted(context, "nothing was placed yet")
            raise
        _write(found, options)
    end_if_interrupted(context, found.proof)


def _progress(quiet: bool) -> Callable[[State], None]:
    """Who is told how far the search is: nobody, or a line now and then.

    There is one at once when something better is placed.
    """
    line, best = Due(), inf

    def tell(state: State) -> None:
        nonlocal best
        if quiet or not line.is_due(at_once=state.best_s < best):
            return
        best = state.best_s
        said = f"{state.considered:,} choices"
        if state.placed:
            said += f", {state.placed:,} placed, best {format_seconds(state.best_s)}"
        if state.least_s:
            bound = min(state.least_s, state.best_s)
            said += f", none below {format_seconds(bound)}"
        click.echo(f"  {said}", err=True)

    return tell


def _write(found: placer.Tuning, options: dict[str, Any]) -> None:
    from placer.api.tune import plan_of
    from placer.cli.draw import write_picture
    from placer.job.write import to_document
    from placer.tune.plot import tune_plot

    there = options["row"] <= len(found.rows)
    row = options["row"] - 1 if there else 0
    if there and options["job_output"]:
        write_document(options["job_output"], to_document(found.job_of(row)))
    if there and options["output"]:
        write_plan(options["output"], plan_of(found, row))
    if options["plot"]:
        write_picture(lambda theme: tune_plot(found, theme), options["plot"])

    def summary() -> str:
        place = _place_lines(options, found, row)
        return found.summary(explain=options["explain"], row=row, place=place)

    # Else stdout is the plan, or the job.
    if not (there and "-" in (options["output"], options["job_output"])):
        write_found(options["format_name"], found, summary)
    if not there and not interrupts.exit_code:
        message = f"there are {len(found.rows)} rows, and none {options['row']}"
        raise InputError(message, key="row")


def _place_lines(
    options: dict[str, Any], found: placer.Tuning, row: int
) -> Iterator[str]:
    """How the job with the degrees of a row is placed.

    A script is read again once its flags are changed; of any other job the file with
    these degrees is needed.
    """
    from placer.report.columns import WIDTH
    from placer.report.next_text import typed
    from placer.report.tune_words import has_degrees

    job, sources = options["job_output"], options["job"]
    chosen = found.rows[row]
    is_script = all(":" in one for one in sources) and has_degrees(
        found.to_dict()["own"]
    )
    if job is None and is_script and chosen["flags"]:
        names = ", ".join(source.partition(":")[2] for source in sources)
        first = f"  # once the flags are changed in {names}"
    elif job is None:
        job = "job.yaml"
        first = f"  # after this command with --job-output {job}"
    else:
        first = ""
    pairs = [("-t", source) for source in options["topology"]]
    pairs += [("-j", job)] if job else [("-j", source) for source in sources]
    if not job:
        pairs.append(("--gpus", str(chosen["gpus"])))
    for name in ("hardware", "gpu", "gpus_per_node", "hosts", *["tflops"] * (not job)):
        if options[name] is not None:
            pairs.append((f"--{name.replace('_', '-')}", str(options[name])))
    for tier, ratio in options["oversubscription"].items():
        pairs.append(("--oversubscription", f"{tier}={ratio:g}"))
    words = [word for pair in pairs for word in pair]
    lines = typed(["placer", "place", *words, "-o", "plan.json"], WIDTH)
    yield from [*[first] * bool(first), *lines] if lines else ()
