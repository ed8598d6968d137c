"""A machine as the shortest document that reads back as the same machine."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any

import numpy as np

from placer.assumed import assumed_entry
from placer.base.hostlist import fold
from placer.documents.scalars import MAX_TEXT
from placer.topology.budgets import budgets_entry
from placer.topology.build import Nodes
from placer.topology.layout import Level, lay_out
from placer.topology.links import link_entries
from placer.topology.model import Topology
from placer.topology.write import (
    affinity_entry,
    listed_gpus,
    node_size,
    scheduler_entry,
    speeds,
    tier_entries,
    unusual,
)


def compact_document(topology: Topology) -> dict[str, Any]:
    """The machine as plain data of the topology format, ready for JSON.

    A regular machine has its ``layout``, any other an entry for each run of alike nodes
    of a domain. All nodes are there, those that must not be used too: the uplinks are
    made for them. Reading it gives a machine with the same digest. Numbers are SI: B/s
    and s.
    """
    nodes = topology.listed or _own_nodes(topology)
    size = node_size(nodes.gpus, nodes.islands)
    document: dict[str, Any] = {
        "format": "placer/topology",
        "version": 1,
        "name": topology.name,
        **({"description": topology.description} if topology.description else {}),
        "sources": list(topology.sources),
        **scheduler_entry(topology),
        **topology.gpu.to_document(),
        **budgets_entry(topology.budgets),
        **assumed_entry(topology.assumed),
        "tiers": tier_entries(topology, size),
        **affinity_entry(topology, size),
    }
    names = [tier.name for tier in topology.tiers]
    if layout := _layout(nodes, names):
        document["layout"] = layout
    else:
        document["nodes"] = list(_entries(nodes, names, size))
    document |= link_entries(nodes.links)
    if nodes.unavailable:
        document["unavailable"] = dict(_unavailable(nodes))
    return document


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


def _entries(nodes: Nodes, tiers: list[str], size: int) -> Iterator[dict[str, Any]]:
    """Entries of ``nodes``, in order; the whole machine is named once at most."""
    alike = zip(
        *nodes.domains[1:-1].tolist(),
        listed_gpus(nodes.gpus, nodes.islands),
        nodes.bandwidth_factor.tolist(),
        speeds(nodes.compute_factor, len(nodes.gpus)),
        strict=True,
    )
    whole = {tiers[-1]: nodes.names[-1][0]} if nodes.names[-1] != (tiers[-1],) else {}
    named = zip(alike, nodes.names[0], strict=True)
    for (*path, gpus, factor, speed), group in groupby(named, key=lambda pair: pair[0]):
        entry: dict[str, Any] = {
            tier: nodes.names[t][domain]
            for t, (tier, domain) in enumerate(
                zip(tiers[1:-1], path, strict=True), start=1
            )
        }
        entry |= whole
        whole = {}
        entry |= unusual(size, gpus, factor, speed)
        for text in fold([name for _, name in group], MAX_TEXT):
            yield {"names": text, **entry}


def _unavailable(nodes: Nodes) -> Iterator[tuple[str, str]]:
    """Host lists with the reason their hosts must not be used."""
    hosts_of: dict[str, list[str]] = {}
    for host, reason in nodes.unavailable.items():
        hosts_of.setdefault(reason, []).append(host)
    for reason, hosts in hosts_of.items():
        for text in fold(hosts, MAX_TEXT):
            yield text, reason
