"""``placer schema``: what a format of placer allows, for editors and other tools."""

from __future__ import annotations

import click

from placer.cli.grouped import command
from placer.cli.output import write_text
from placer.formats.schemas import SCHEMAS, schema_text


@command("placer schema job > placer-job-1.json")
@click.argument("format_name", metavar="FORMAT", type=click.Choice(SCHEMAS))
def schema(format_name: str) -> None:
    """Print the JSON Schema of a file format.

    FORMAT is topology, job, jobs, workload, plan, probe or folder (placer.yaml). An
    editor that knows the schema completes keys, explains them and marks what is wrong
    while you type.
    """
    write_text("-", schema_text(format_name))
