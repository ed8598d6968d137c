"""What pods must say on the nodes of a machine, out of what its sources say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from placer.base.hostlist import fold
from placer.documents.tree import MAX_TEXT
from placer.topology.kubernetes import GPU, Kubernetes

if TYPE_CHECKING:
    from placer.formats.machines.findings import Findings

Fact = TypeVar("Fact")


def pod_facts(
    findings: Sequence[Findings], labels: Mapping[str, str], nodes: Sequence[str]
) -> Kubernetes:
    """What is known of the nodes that can be used.

    Parameters
    ----------
    findings : sequence of Findings
    labels : mapping of str to str
        Key of the label of each tier; empty where it has none.
    nodes : sequence of str
        The nodes that can be used.
    """
    host_of = {own: host for found in findings for own, host in found.aliases.items()}
    return Kubernetes(
        next((found.gpu_resource for found in findings if found.gpu_resource), GPU),
        {tier: key for tier, key in labels.items() if key},
        tuple(_of(nodes, [found.taints for found in findings], host_of)),
        tuple(_of(nodes, [found.resources for found in findings], host_of)),
    )


def _of(
    nodes: Sequence[str],
    found: Sequence[Mapping[Fact, Sequence[str]]],
    host_of: Mapping[str, str],
) -> Iterator[tuple[Fact, str]]:
    """Facts of the nodes, each with its host list, empty where all nodes have it."""
    for fact, names in (item for facts in found for item in facts.items()):
        own = {host_of.get(name, name) for name in names}
        concerned = [node for node in nodes if node in own]
        if len(concerned) == len(nodes):
            yield fact, ""
        elif concerned:
            yield from ((fact, text) for text in fold(concerned, MAX_TEXT))
