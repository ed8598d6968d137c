"""``placer allocate``: which nodes one job or several get, with their placements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import placer
from placer.base.errors import read_all
from placer.base.naming import numbered
from placer.base.units import parse_duration
from placer.cli import complete, shared
from placer.cli.folder import with_folder
from placer.cli.grouped import command
from placer.cli.inputs import read_given_job, read_machine
from placer.cli.interrupt import end, end_if_interrupted, interrupts
from placer.cli.options import by_name, called, option, share, teller
from placer.cli.output import write_found, write_plan, write_text
from placer.cli.progress import JobLines
from placer.documents.files import make_folder

if TYPE_CHECKING:
    from placer.formats.jobs.job_list import Listed

    Jobs = Sequence[placer.Job | Listed]


@command("placer allocate -t machine.yaml -j a.yaml -j b.yaml --busy @busy")
@shared.topology()
@shared.job("Each -j is one job, or a file of several.")
@shared.sources
@option(
    "--free H",
    "Free hosts: a list, @FILE, or the idle ones of sinfo:FILE. Default: all.",
)
@option("--busy H", "Hosts that are not free: a list or @FILE.")
@option("--keep PLAN", "Plan of a job that runs and stays. Repeatable.")
@option("--move PLAN", "Plan of a job that runs and may move. Repeatable.")
@option(
    "--move-price TIME",
    "What moving a job costs, as time of a step: 5ms. Default: 0.",
    parse_duration,
    default="0",
)
@option(
    "--weight NAME=W",
    "Weight of a job's step time beside the others. Default: 1. Repeatable.",
    by_name(float, "a name and a number: llama=2", cut=str.rpartition),
    to="weights",
)
@option(
    "--apart TIER",
    "Tier that jobs must not share: with rack, no rack has hosts of two jobs.",
    shell_complete=complete.tiers,
)
@option(
    "--tolerance SHARE",
    "How much longer a step may be for a more useful rest: 1%. Default: 0.",
    share,
    default="0",
)
@option(
    "--demand LIST",
    "Nodes that jobs to come want, and how often: 16=4,8=3,1, or @FILE with what "
    "squeue -h -t PD -o %D prints. Default: 16=4,8=3,4=2,1=1.",
    shell_complete=complete.files,
)
@option("--grade H", "Hosts that the job was granted: say how good they are.")
@shared.objective
@shared.require("those of every job")
@shared.rules
@shared.output("Folder for the plan of every job and requests for schedulers.")
@shared.seed
@shared.time_limit("the whole search")
@shared.formats("text", "json", "csv")
@shared.quiet("No progress and notes.")
@click.pass_context
def allocate(context: click.Context, /, **options: Any) -> None:
    """Choose the nodes of jobs among those that are free.

    The weighted sum of the step times is made as small as possible. Of steps that
    nobody can tell apart the one on the fewest leaves is taken, then the one that
    leaves the most useful rest.
    """
    options = with_folder(options)
    if options["output"] == "-":
        raise click.UsageError("Plans are several files: -o names a folder.")
    with interrupts.searching() as stop:
        lines = nullcontext(lambda _job, _number: None)
        with lines if options["quiet"] else JobLines() as progress:
            found = _found(options, stop, progress)
        if options["output"]:
            _write_plans(found, options["output"])
        write_found(options["format_name"], found, found.summary)
    end_if_interrupted(context, "this is the best allocation so far")
    end(context, 0)


def _found(
    options: dict[str, Any],
    stop: Callable[[], bool],
    progress: Callable[[str, int], None],
) -> placer.Allocation:
    """The allocation that the options describe."""
    named = options["job"]
    sources = [named] if isinstance(named, str) else [*named]

    def jobs_on(
        machine: placer.Topology | None, quiet: bool
    ) -> list[Callable[[], Jobs]]:
        told = options | {"quiet": quiet}
        return [partial(_jobs_of, source, told, machine) for source in sources]

    machine = read_machine(options, beside=jobs_on(None, quiet=True))
    jobs = read_all(jobs_on(machine, options["quiet"]))
    return called(
        placer.allocate,
        options,
        topology=machine,
        jobs=[*chain.from_iterable(jobs)],
        busy=options["busy"] or (),
        require=options["require"] | options["even"],
        even=None,
        rules=shared.rules_of_options(options),
        requests=options["output"] is not None,
        stop=stop,
        progress=progress,
    )


def _jobs_of(
    source: str, options: dict[str, Any], machine: placer.Topology | None
) -> Jobs:
    """The jobs that one ``-j`` names."""
    from placer.formats.jobs.job_list import is_job_list, read_job_list

    if is_job_list(source):
        return read_job_list(source, teller(options), machine)
    return [read_given_job(options | {"job": (source,)}, machine)]


def _write_plans(found: placer.Allocation, folder: str) -> None:
    """The plan of every job, and the requests that schedulers can be given for it."""
    from placer.emit.manifest import label_name
    from placer.emit.registry import requests

    make_folder(folder)
    # Neither a Kubernetes object nor every file system tells names apart as we do.
    names = numbered((file_name(job.name) or "job" for job in found.jobs), label_name)
    for job, name in zip(found.jobs, names, strict=True):
        stem = str(Path(folder) / name)
        write_plan(f"{stem}.json", job.plan)
        for suffix, text in requests(job.plan, name).items():
            write_text(f"{stem}.{suffix}", text)


def file_name(name: str) -> str:
    """The name of a job as that of a file."""
    return "".join(c if c.isalnum() or c in "._-" else "_" for c in name).lstrip(".")
