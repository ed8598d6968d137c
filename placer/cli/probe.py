"""``placer probe``: what this node says of itself, one line of JSON."""

from __future__ import annotations

import click

from placer.cli.grouped import command
from placer.cli.options import option
from placer.injob.cloud import CLOUDS


@command("srun --ntasks-per-node=1 placer probe")
@option(
    "--cloud",
    "",
    "Also ask the metadata service of this cloud, for half a second.",
    type=click.Choice([*CLOUDS]),
)
def probe(cloud: str | None) -> None:
    """Print what this node knows of itself.

    One line of JSON, the same keys on every node: GPUs, NVLink domain, switches, labels
    and NICs. What cannot be told stands under
    problems, and the exit code is 0. The lines of all nodes are a machine: placer
    place -t probe:FILE.
    """
    from placer.documents.files.writing import write_text
    from placer.injob.probe import probe as find
    from placer.injob.probe import probe_line

    write_text("-", f"{probe_line(find(cloud))}\n")
