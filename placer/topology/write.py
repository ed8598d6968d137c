"""A compiled machine back in the topology format, every node by itself."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from placer.topology.model import Tier, Topology


def to_document(topology: Topology) -> dict[str, Any]:
    """The machine as plain data of the topology format, ready for JSON.

    Every usable node has an entry with its domain at every tier above it; nodes that
    are unavailable are not part of the machine. Numbers are SI: B/s and s.
    """
    size = int(topology.gpus_of_node.max())
    document: dict[str, Any] = {
        "format": "placer/topology",
        "version": 1,
        "name": topology.name,
    }
    if topology.description:
        document["description"] = topology.description
    tiers = [tier_entry(tier) for tier in topology.tiers]
    tiers[0]["size"] = size
    return document | {
        "sources": list(topology.sources),
        **topology.gpu.to_document(),
        "tiers": tiers,
        "nodes": _nodes(topology, size),
    }


def to_text(topology: Topology) -> str:
    """The machine as a topology file in JSON, with each node on its own line."""
    document = to_document(topology)
    parts = []
    for key, value in document.items():
        if key in ("tiers", "nodes"):
            lines = ",\n".join(f"  {json.dumps(entry)}" for entry in value)
            parts.append(f'"{key}": [\n{lines}\n]')
        else:
            parts.append(f'"{key}": {json.dumps(value)}')
    return "{" + ",\n".join(parts) + "}\n"


def tier_entry(tier: Tier) -> dict[str, Any]:
    """A tier as an entry of ``tiers``, without the size of a node."""
    return {
        "name": tier.name,
        "bandwidth": tier.bandwidth,
        "latency": tier.latency,
        "scale_up": tier.scale_up,
        "oversubscription": tier.oversubscription,
        "efficiency": tier.efficiency,
        "distance": tier.distance,
    }


def _nodes(topology: Topology, size: int) -> list[dict[str, Any]]:
    """One entry a node; GPUs and bandwidth factor only where they are not the usual."""
    tier_names = [tier.name for tier in topology.tiers]
    entries: list[dict[str, Any]] = [{"names": n} for n in topology.node_names]
    for t in range(1, len(tier_names)):
        names = topology.domain_names[t]
        row = topology.domain_of_node[t].tolist()
        for entry, domain in zip(entries, row, strict=True):
            entry[tier_names[t]] = names[domain]
    columns = topology.gpus_of_node.tolist(), topology.bandwidth_factor.tolist()
    for entry, gpus, factor in zip(entries, *columns, strict=True):
        if gpus != size:
            entry["gpus"] = gpus
        if factor != 1.0:
            entry["bandwidth_factor"] = factor
    return entries
