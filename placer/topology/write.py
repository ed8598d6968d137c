"""A compiled machine back in the topology format, in full or as short as can be.

Numbers are SI: B/s and s.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import groupby
from math import prod
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from placer.assumed import assumed_entry
from placer.base.hostlist import fold
from placer.documents.records import entries as entries_of
from placer.documents.scalars import MAX_TEXT
from placer.topology.budgets import budget_entries
from placer.topology.build import Nodes
from placer.topology.layout import Level, lay_out

if TYPE_CHECKING:
    from placer.topology.model import Topology


def to_document(topology: Topology) -> dict[str, Any]:
    """The machine as plain data of the topology format, ready for JSON.

    Every usable node has an entry with its domain at every tier above it; nodes that
    are unavailable are not part of the machine.
    """
    own = _own_nodes(topology)
    nodes = [{"names": name, **entry} for name, entry in _rows(topology, own)]
    return _document(topology, own, nodes)


def compact_document(topology: Topology) -> dict[str, Any]:
    """The machine as the shortest such data that reads back as the same machine.

    A regular machine has its ``layout``, any other an entry for each run of alike nodes
    of a domain. All nodes are there, those that must not be used too: the uplinks are
    made for them. Reading it gives a machine with the same digest.
    """
    own = topology.listed or _own_nodes(topology)
    layout = _layout(own, [tier.name for tier in topology.tiers])
    nodes = [] if layout else list(_runs(topology, own))
    return _document(topology, own, nodes, layout, dict(_unavailable(own)))


def _document(
    topology: Topology,
    own: Nodes,
    nodes: list[dict[str, Any]],
    layout: str = "",
    unavailable: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """What is known of the machine, with its nodes as they are to be listed."""
    size = _usual_size(own)
    document = {
        "format": "placer/topology",
        "version": 1,
        "name": topology.name,
        "description": topology.description,
        "sources": list(topology.sources),
        "scheduler": topology.scheduler,
        "kubernetes": topology.kubernetes.to_document(),
        "gpu": entries_of(topology.gpu),
        "budgets": budget_entries(topology.budgets),
        **assumed_entry(topology.assumed),
        "tiers": _tiers(topology, size),
        "affinity": entries_of(topology.affinity.of_node(size)),
        "layout": layout,
        "nodes": nodes,
        "links": [*map(entries_of, own.links)],
        "unavailable": unavailable,
    }
    return {key: value for key, value in document.items() if value or key == "sources"}


def _usual_size(nodes: Nodes) -> int:
    """GPUs of a usual node."""
    return prod(nodes.islands.sizes) if nodes.islands else int(nodes.gpus.max())


def _tiers(topology: Topology, size: int) -> list[dict[str, Any]]:
    """All tiers, those inside the node first; ``size`` is the GPUs of a usual node."""
    islands = topology.islands
    inside = islands.tiers if islands else ()
    entries = [entries_of(tier) for tier in (*inside, *topology.tiers)]
    sizes = islands.sizes if islands else (size,)
    for entry, of_tier in zip(entries, sizes, strict=False):
        entry["size"] = of_tier
    if islands and islands.members != tuple(range(len(islands.members))):
        entries[0]["members"] = islands.groups
    return entries


def _own_nodes(topology: Topology) -> Nodes:
    return Nodes(
        topology.domain_of_node,
        topology.domain_names,
        topology.gpus_of_node,
        topology.bandwidth_factor,
        islands=topology.islands,
        compute_factor=topology.compute_factor,
        links=topology.links,
    )


def _layout(nodes: Nodes, tiers: list[str]) -> str:
    """The layout that gives these nodes; empty when none does."""
    if nodes.islands and not nodes.islands.are_whole:
        return ""
    if (nodes.gpus != nodes.gpus[0]).any() or (nodes.bandwidth_factor != 1).any():
        return ""
    if nodes.compute_factor is not None:
        return ""
    counts = [len(names) for names in nodes.names[::-1]]
    outside = [1, *counts]
    if any(own % outer for own, outer in zip(counts, outside, strict=False)):
        return ""
    levels = [
        Level(tier, own // outer)
        for tier, own, outer in zip(tiers[::-1], counts, outside, strict=False)
    ]
    try:
        domains, names = lay_out(levels)
    except ValueError:
        return ""
    if names != nodes.names or not np.array_equal(domains, nodes.domains):
        return ""
    return " ".join(f"{level.tier}:{level.count}" for level in levels)


def _rows(topology: Topology, nodes: Nodes) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each node with the domains around it, and what of its GPUs is not usual."""
    count = len(nodes.gpus)
    speed = nodes.compute_factor
    columns = {
        tier.name: [names[domain] for domain in row]
        for tier, names, row in zip(
            topology.tiers[1:], nodes.names[1:], nodes.domains[1:].tolist(), strict=True
        )
    }
    facts = {
        "gpus": (_listed_gpus(nodes), _usual_size(nodes)),
        "bandwidth_factor": (nodes.bandwidth_factor.tolist(), 1.0),
        "compute_factor": ([1.0] * count if speed is None else speed.tolist(), 1.0),
    }
    for n, name in enumerate(nodes.names[0]):
        entry = {tier: domains[n] for tier, domains in columns.items()}
        own = {key: each[n] for key, (each, usual) in facts.items() if each[n] != usual}
        yield name, entry | own


def _listed_gpus(nodes: Nodes) -> list[int | list[int]]:
    """``gpus`` of every node: those of each island where only some have them all."""
    if nodes.islands is None:
        return [*map(int, nodes.gpus)]
    size, whole = nodes.islands.sizes[0], _usual_size(nodes)
    return [
        whole if min(row) == size else 0 if max(row) == 0 else row
        for row in nodes.islands.gpus.tolist()
    ]


def _runs(topology: Topology, nodes: Nodes) -> Iterator[dict[str, Any]]:
    """Entries of ``nodes``, in order; the whole machine is named once at most."""
    last = topology.tiers[-1].name
    unnamed = last
    for entry, run in groupby(_rows(topology, nodes), key=itemgetter(1)):
        shown = {k: v for k, v in entry.items() if k != last or v != unnamed}
        unnamed = entry.get(last)  # a machine of one tier is not named at all
        for text in fold([name for name, _ in run], MAX_TEXT):
            yield {"names": text, **shown}


def _unavailable(nodes: Nodes) -> Iterator[tuple[str, str]]:
    """Host lists with the reason their hosts must not be used."""
    hosts_of: dict[str, list[str]] = {}
    for host, reason in nodes.unavailable.items():
        hosts_of.setdefault(reason, []).append(host)
    for reason, hosts in hosts_of.items():
        for text in fold(hosts, MAX_TEXT):
            yield text, reason
