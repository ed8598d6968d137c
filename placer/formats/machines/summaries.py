"""One line for every source: what was read of it, what assumed, what left out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from placer.formats.machines.findings import count_of
from placer.formats.machines.inside import ISLAND
from placer.formats.machines.joined import renamed

if TYPE_CHECKING:
    from placer.formats.machines.combine import Tree
    from placer.formats.machines.findings import Findings, NodeFacts
    from placer.topology.model import Topology


def summaries(
    findings: Sequence[Findings],
    tree: Tree,
    hardware: Topology,
    gpus_per_node: int | None,
) -> Iterator[str]:
    """A line for each source: nodes, GPUs, domains by tier, assumptions, leftovers.

    Parameters
    ----------
    tree : Tree
        What they are together.
    gpus_per_node : int or None
        GPUs of nodes that no source counts, instead of the hardware's.
    """
    gpus = dict(zip(tree.nodes, tree.gpus, strict=True))
    usual = gpus_per_node or int(hardware.gpus_of_node.max())
    for found, nodes in zip(findings, renamed(findings), strict=True):
        counted = sum(
            usual if gpus[name] is None else gpus[name] or 0 for name in nodes
        )
        sound = sum(1 for facts in nodes.values() if not facts.unavailable)
        islands = sound * len(found.islands)
        size = ", ".join(
            count_of(number, what)
            for number, what in (
                (len(nodes), "node"),
                (islands, ISLAND),
                (counted, "GPU"),
            )
            if number or what != ISLAND
        )
        alike = _nvlink(found, tree)
        uncounted = sum(gpus[name] is None for name in nodes)
        if uncounted and gpus_per_node is None:
            where = "a node" if uncounted == len(nodes) else f"on {uncounted} nodes"
            alike.insert(0, f"{count_of(usual, 'GPU')} {where}")
        parts = (
            size if nodes else _no_nodes(found),
            _domains(found, nodes),
            f"assumed {', '.join(alike)}, as on {hardware.name}" if alike else "",
            f"assumed that {', '.join(found.assumed)}" if found.assumed else "",
            _left_out(found),
        )
        yield f"{found.format}:{found.source}: {'; '.join(p for p in parts if p)}"


def _no_nodes(found: Findings) -> str:
    if found.aliases:
        return count_of(len(found.aliases), "name")
    if found.label_orders:
        return f"{count_of(sum(map(len, found.label_orders)), 'label')} in order"
    return "no nodes"


def _domains(found: Findings, nodes: Mapping[str, NodeFacts]) -> str:
    """How many domains each level has: ``4 leaves, 1 spine``."""
    columns = zip(*(facts.domains for facts in nodes.values()), strict=True)
    counts = [len(set(column) - {""}) for column in columns]
    named = zip(found.levels, counts, strict=False)
    return ", ".join(count_of(count, level.name) for level, count in named if count)


def _nvlink(found: Findings, tree: Tree) -> list[str]:
    """Levels that the kind of node made NVLink domains."""
    unsure = {level.name for level in found.levels if level.scale_up is None}
    return [
        f"NVLink within a {layer.name}"
        for layer in tree.levels
        if layer.source == found.source and layer.scale_up and layer.name in unsure
    ]


def _left_out(found: Findings) -> str:
    counts = {"line": len(found.ignored)} if found.ignored else {}
    counts |= found.unused
    listed = ", ".join(count_of(n, what) for what, n in counts.items())
    return f"ignored {listed}" if listed else ""
