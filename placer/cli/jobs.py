"""``placer job``: presets, and jobs from other programs' files."""

from __future__ import annotations

from functools import partial
from typing import Any

import click

import placer
from placer.base.errors import read_all
from placer.cli import complete, shared
from placer.cli.folder import SOURCE_OPTIONS
from placer.cli.format_list import format_list, preset_list
from placer.cli.grouped import Group
from placer.cli.inputs import notes_told, read_given_job
from placer.cli.options import flag, option, together
from placer.cli.output import (
    write_answer,
    write_document,
    write_rows,
    write_text,
    yaml_text,
)

_job_options = together(
    click.argument(
        "jobs", nargs=-1, required=True, metavar="JOB...", shell_complete=complete.jobs
    ),
    shared.sources,
    shared.quiet("No notes."),
)


@click.group(cls=Group, epilog="Example: placer job show megatron:pretrain.sh")
def job() -> None:
    """List, show, validate and convert jobs.

    JOB is a preset, a file (- is stdin), or FORMAT:FILE, what another program is given.
    `placer job formats` lists these; several of them are joined.
    """


def _preset(name: str) -> dict[str, Any]:
    from placer.job.read import read_job

    found = read_job(name)
    return {"name": name, "ranks": found.world_size, "description": found.description}


job.add_command(
    preset_list("jobs", "their number of ranks", _preset, "{ranks:>8,} ranks")
)
job.add_command(format_list("a job", "jobs"))


@job.command(epilog="Example: placer job convert megatron:pretrain.sh -o job.yaml")
@_job_options
@flag("--strict", "Refuse what is assumed or not modelled.")
@option("--name NAME", "Name of the job. Default: that of the first file.")
@shared.output("Write the job here; - is stdout, as without it.")
def convert(jobs: tuple[str, ...], **options: Any) -> None:
    """Write JOB as one job file, with the origin of each value.

    For a preset or a job file every default is written out.

    What was read, derived, assumed and ignored goes to stderr, one line per key. What
    is missing is asked for, with the option that says it.
    """
    from placer.formats.jobs.convert import origins
    from placer.formats.jobs.job import Options, open_job
    from placer.job.write import to_document

    given = {name: options[name] for name in SOURCE_OPTIONS}
    with notes_told(options):
        opened = open_job(
            jobs, Options(**given, strict=options["strict"], name=options["name"])
        )
    found = opened if isinstance(opened, placer.Job) else opened.job()
    output = options["output"] or "-"
    if output.lower().endswith(".json"):
        write_document(output, to_document(found))
    elif isinstance(opened, placer.Job):
        write_text(output, yaml_text(to_document(found)))
    else:
        write_text(output, opened.text())
    if not (isinstance(opened, placer.Job) or options["quiet"]):
        for line in (*origins(opened.found), *opened.remarks()):
            click.echo(line, err=True)


@job.command(epilog="Example: placer job validate job.yaml megatron:pretrain.sh")
@_job_options
@shared.formats("text", "json")
def validate(jobs: tuple[str, ...], format_name: str, **options: Any) -> None:
    """Say whether JOB can be read, with all that is wrong.

    Several FORMAT:FILE are one job together, every preset and file is one.
    """

    def row(sources: tuple[str, ...]) -> dict[str, Any]:
        found = read_given_job({"job": sources} | options)
        return {
            "source": " ".join(sources),
            "name": found.name,
            "ranks": found.world_size,
            "sha256": found.sha256,
        }

    rows = read_all(partial(row, sources) for sources in _each(jobs))
    write_rows(
        format_name, rows, lambda r: f"{r['source']}: valid, {r['ranks']:,} ranks"
    )


def _each(sources: tuple[str, ...]) -> list[tuple[str, ...]]:
    """The sources of every job: files stand alone, those of formats are joined."""
    from placer.formats.jobs.registry import FORMATS

    joined = tuple(text for text in sources if text.partition(":")[0] in FORMATS)
    alone = ((text,) for text in sources if text not in joined)
    return [*alone, *([joined] if joined else ())]


@job.command(epilog="Example: placer job show megatron:pretrain.sh --gpus 64")
@_job_options
@shared.formats("text", "json")
def show(jobs: tuple[str, ...], format_name: str, **options: Any) -> None:
    """Show the sizes, the model and the rules of JOB.

    With --format json, print it as a job file with every default written out.
    """
    from placer.job.write import to_document

    found = read_given_job({"job": jobs} | options)
    write_answer(format_name, to_document(found), lambda: "\n".join(_lines(found)))


def _lines(job: placer.Job) -> list[str]:
    """What the job is, what it requires and where its figures come from."""
    from placer.report.columns import wrapped
    from placer.report.machine_text import facts

    rows = facts(job)
    rows |= {f"source {i}": text for i, text in enumerate(job.sources, start=1)}
    width = max(map(len, rows)) + 2
    lines = [job.name]
    for key, text in rows.items():
        if text:
            lines += wrapped(f"  {key:<{width}}{text}", " " * (width + 2))
    return lines
