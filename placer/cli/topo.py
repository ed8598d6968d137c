"""``placer topo``: presets, drawing and validation of topologies."""

from __future__ import annotations

import click

_TOPOLOGY = click.argument("topology", required=False)
_TOPOLOGY_OPTION = click.option(
    "-t", "--topology", "option", metavar="T", help="The same as the argument."
)
_FORMAT = click.option(
    "--format",
    "output_format",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="What to print.",
)


@click.group()
def topo() -> None:
    """List, show and validate topologies.

    TOPOLOGY is a preset, a file (- is standard input), or a synthetic string such as
    "block:16 rack:8 node:18 gpu:4".
    """


@topo.command("list")
@_FORMAT
def list_presets(output_format: str) -> None:
    """List the presets with their size."""
    import json

    from placer.presets import preset_names
    from placer.topology.read import read_topology

    machines = [(name, read_topology(name)) for name in preset_names("topologies")]
    if output_format == "json":
        rows = [
            {
                "name": name,
                "nodes": machine.num_nodes,
                "gpus": machine.num_gpus,
                "description": machine.description,
            }
            for name, machine in machines
        ]
        click.echo(json.dumps(rows, indent=2))
        return
    width = max((len(name) for name, _ in machines), default=0)
    for name, machine in machines:
        size = f"{machine.num_nodes:>7} nodes {machine.num_gpus:>8} GPUs"
        click.echo(f"{name:<{width}} {size}  {machine.description}".rstrip())


@topo.command()
@_TOPOLOGY
@_TOPOLOGY_OPTION
@_FORMAT
def show(topology: str | None, option: str | None, output_format: str) -> None:
    """Draw TOPOLOGY: its tiers and its tree.

    With --format json, print the compiled machine: a topology file with one entry a
    node and its domain at every tier.
    """
    import json

    from placer.topology.drawing import draw
    from placer.topology.read import read_topology
    from placer.topology.write import to_document

    machine = read_topology(_one_source(topology, option))
    if output_format == "json":
        click.echo(json.dumps(to_document(machine), indent=2))
    else:
        click.echo(draw(machine))


@topo.command()
@click.argument("topologies", nargs=-1, metavar="[TOPOLOGY]...")
@_TOPOLOGY_OPTION
@_FORMAT
def validate(
    topologies: tuple[str, ...], option: str | None, output_format: str
) -> None:
    """Say whether every TOPOLOGY can be used, with all that is wrong."""
    import json

    from placer.errors import InputError, Problem
    from placer.topology.read import read_topology

    sources = topologies + ((option,) if option else ())
    if not sources:
        raise click.UsageError("Missing argument 'TOPOLOGY'.")
    problems: list[Problem] = []
    machines = []
    for source in sources:
        try:
            machines.append((source, read_topology(source)))
        except InputError as error:
            problems += error.problems
    if problems:
        raise InputError(problems)
    if output_format == "json":
        rows = [
            {
                "source": source,
                "name": machine.name,
                "nodes": machine.num_nodes,
                "gpus": machine.num_gpus,
                "sha256": machine.sha256,
            }
            for source, machine in machines
        ]
        click.echo(json.dumps(rows, indent=2))
        return
    for source, machine in machines:
        size = f"{machine.num_nodes} nodes, {machine.num_gpus} GPUs"
        click.echo(f"{source}: valid, {size}")


def _one_source(argument: str | None, option: str | None) -> str:
    """The topology named by the argument or by ``-t``."""
    source = argument or option
    if source is None:
        raise click.UsageError("Missing argument 'TOPOLOGY'.")
    if argument and option:
        raise click.UsageError("TOPOLOGY is given twice: as an argument and with -t.")
    return source
