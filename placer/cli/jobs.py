"""``placer jobs``: the job presets."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from placer.cli import complete
from placer.cli.options import format_option
from placer.cli.output import write_line

if TYPE_CHECKING:
    from placer.job.model import Job


@click.group()
def jobs() -> None:
    """List and show jobs."""


@jobs.command("list")
@format_option("text", "json")
def list_presets(format_name: str) -> None:
    """List the presets with their number of ranks."""
    import json

    from placer.job.read import read_job
    from placer.presets import preset_names

    found = {name: read_job(name) for name in preset_names("jobs")}
    if format_name == "json":
        rows = [
            {"name": name, "ranks": job.world_size, "description": job.description}
            for name, job in found.items()
        ]
        write_line(json.dumps(rows, indent=2))
        return
    width = max(map(len, found), default=0)
    lines = (
        f"{name:<{width}} {job.world_size:>8,} ranks  {job.description}".rstrip()
        for name, job in found.items()
    )
    write_line("\n".join(lines))


@jobs.command()
@click.argument("job", shell_complete=complete.jobs)
@format_option("text", "json")
def show(job: str, format_name: str) -> None:
    """Show JOB, a preset or a file (- is stdin).

    With --format json, print it as a job file with every default written out.
    """
    from placer.cli.output import write_text
    from placer.job.read import read_job
    from placer.job.write import to_document
    from placer.placement.plan_encode import json_text

    found = read_job(job)
    if format_name == "json":
        write_text("-", json_text(to_document(found)))
    else:
        write_text("-", "\n".join(_lines(found)) + "\n")


def _lines(job: Job) -> list[str]:
    """What the job is, what it requires and where its figures come from."""
    from placer.report.columns import wrapped

    axes = job.parallelism
    sizes = {a: axes.size(a) for a in ("tp", "cp", "ep", "etp", "pp", "vp", "dp")}
    rows = {
        "description": job.description,
        "ranks": f"{job.world_size:,}",
        "axes": " ".join(f"{a} {size}" for a, size in sizes.items() if size > 1),
        "order": "auto" if axes.auto_order else "-".join(axes.order),
        "model": job.model.name if job.model else "",
        "batch": f"{job.micro_batches} micro-batches of {job.micro_batch} x "
        f"{job.sequence:,} tokens a replica"
        if job.model
        else "",
        "groups": ", ".join(f"{g.name} ({g.collective})" for g in job.groups),
        "require": ", ".join(f"{a} in one {t}" for a, t in job.require.items()),
        "launcher": job.launcher,
        "weights": ", ".join(f"{a} {w:,.9g}" for a, w in job.weights.items()),
        "sha256": job.sha256,
    }
    rows |= {f"source {i}": text for i, text in enumerate(job.sources, start=1)}
    width = max(map(len, rows)) + 2
    lines = [job.name]
    for key, text in rows.items():
        if text:
            lines += wrapped(f"  {key:<{width}}{text}", " " * (width + 2))
    return lines
