"""``placer topology``: presets, drawing, validation and conversion of topologies."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import click

import placer
from placer.base.errors import read_all
from placer.base.units import counted
from placer.cli import complete, shared
from placer.cli.format_list import format_list, preset_list
from placer.cli.grouped import Group
from placer.cli.inputs import read_alone, read_machine
from placer.cli.options import option, together
from placer.cli.output import write_document, write_line, write_rows

# As arguments or by ``-t``.
_machine_options = together(
    click.argument(
        "topologies",
        nargs=-1,
        metavar="[TOPOLOGY]...",
        shell_complete=complete.topologies,
    ),
    option(
        "-t --topology T",
        "TOPOLOGY, as other commands take it.",
        multiple=True,
        to="option",
    ),
    shared.hardware,
    shared.quiet("No notes."),
)


@click.group(
    cls=Group, epilog="Example: placer topology show slurm:topology.conf --gpu h100"
)
def topology() -> None:
    """List, show, validate and convert topologies.

    TOPOLOGY is a preset, a file (- is stdin), a text such as "rack:8 node:18 gpu:4", or
    FORMAT:FILE, what another program knows of the machine. `placer topology formats`
    lists these; several of them are joined by node.
    """


def _preset(name: str) -> dict[str, Any]:
    from placer.topology.read import read_topology

    machine = read_topology(name)
    return {
        "name": name,
        "nodes": machine.num_nodes,
        "gpus": machine.num_gpus,
        "description": machine.description,
    }


topology.add_command(
    preset_list(
        "topologies", "their size", _preset, "{nodes:>7,} nodes {gpus:>8,} GPUs"
    )
)
topology.add_command(format_list("a machine", "machines"))


@topology.command(
    epilog="Example: placer topology convert slurm:topology.conf --gpu h100"
)
@_machine_options
@shared.output("Write the topology here; - is stdout, as without it.")
@option("--name NAME", "Name of the machine. Default: that of the first file.")
def convert(**options: Any) -> None:
    """Write what TOPOLOGY describes as one topology file.

    Several FORMAT:FILE are joined by node. A file that ends in .yaml is YAML, any other
    is JSON.
    """
    from placer.topology.write import compact_document

    machine = read_machine(options, _sources(options), options["name"])
    write_document(options["output"] or "-", compact_document(machine))


@topology.command(epilog='Example: placer topology show "rack:4 node:18 gpu:4"')
@_machine_options
@shared.formats("text", "json")
def show(format_name: str, **options: Any) -> None:
    """Draw the tiers and the tree of TOPOLOGY.

    With --format json, print the compiled machine: a topology file with one entry per
    node, and the domain of the node at every tier.
    """
    from placer.report.machine_text import draw
    from placer.topology.write import to_document

    machine = read_machine(options, _sources(options))
    if format_name == "json":
        write_line(json.dumps(to_document(machine), indent=2))
    else:
        write_line(draw(machine))


@topology.command(
    epilog="Example: placer topology validate machine.yaml kubernetes:nodes.json"
)
@_machine_options
@shared.formats("text", "json")
def validate(format_name: str, **options: Any) -> None:
    """Say whether TOPOLOGY can be read, with all that is wrong.

    Each is read by itself. FORMAT:FILE needs no --hardware here; with --hardware the
    machine that both give is built.
    """
    rows = read_all(partial(_row, source, options) for source in _sources(options))
    write_rows(format_name, rows, _valid_line)


def _valid_line(row: dict[str, Any]) -> str:
    nodes = counted(row["nodes"], "node") if row["nodes"] else "it names no nodes"
    gpus = "" if row["gpus"] is None else f", {counted(row['gpus'], 'GPU')}"
    return f"{row['source']}: valid, {nodes}{gpus}"


def _row(source: str, options: dict[str, Any]) -> dict[str, Any]:
    """What ``validate`` says of a machine; null for what only the hardware tells."""
    found = read_alone(options, source)
    name = gpus = sha256 = None
    if isinstance(found, placer.Topology):
        name, gpus, sha256 = found.name, found.num_gpus, found.sha256
        nodes = found.num_nodes
    else:
        nodes = len(found.nodes)
        counts = [count for count in found.gpus if count is not None]
        if counts and len(counts) == nodes:
            gpus = sum(counts)
    row = {"source": source, "name": name, "nodes": nodes, "gpus": gpus}
    return row | {"sha256": sha256}


def _sources(options: dict[str, Any]) -> tuple[str, ...]:
    """The topologies named by the arguments and by ``-t``."""
    sources: tuple[str, ...] = options["topologies"] + options["option"]
    if not sources:
        raise click.UsageError("Missing argument 'TOPOLOGY'.")
    return sources
