"""``placer calibrate``: compute times of a job from measured steps."""

from __future__ import annotations

import click

from placer.cli import complete
from placer.cli.options import format_option


@click.command()
@click.argument("measurements", shell_complete=complete.files)
@format_option("text", "json", "yaml")
def calibrate(measurements: str, format_name: str) -> None:
    """Micro-batch time and fixed time from the measured steps in MEASUREMENTS.

    MEASUREMENTS is a file (- is stdin) that names a machine, a job and two or more
    points: dp, micro_batches and step_time, or step_times of several runs. The first
    line printed goes into the job file; intervals need repeated runs or more points.
    """
    from placer.calibrate.fit import calibrate as fit
    from placer.calibrate.measurements import read_measurements
    from placer.calibrate.text import as_data, as_text, as_yaml
    from placer.cli.output import write_text
    from placer.placement.plan_encode import json_text

    found = fit(read_measurements(measurements))
    for warning in found.warnings:
        click.echo(f"warning: {warning}", err=True)
    if format_name == "json":
        write_text("-", json_text(as_data(found)))
    else:
        text = as_text if format_name == "text" else as_yaml
        write_text("-", text(found) + "\n")
