"""The machine that a command's options describe."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from placer.topology.model import Topology


def read_machine(
    options: dict[str, Any], sources: Sequence[str] = (), name: str | None = None
) -> Topology:
    """The machine of ``-t``, or of ``sources``, and of the options beside them.

    What the readers have to say goes to stderr, unless the command is quiet.
    """
    from placer.readers.machine import read_topology

    def tell(remark: str) -> None:
        if not options.get("quiet"):
            click.echo(f"note: {remark}", err=True)

    return read_topology(
        sources or options["topology"],
        hardware=options["hardware"],
        gpus_per_node=options["gpus_per_node"],
        labels=options["labels"],
        name=name,
        note=tell,
    )
