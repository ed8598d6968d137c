"""A compiled machine back in the topology format, every node by itself."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

from placer.assumed import assumed_entry
from placer.documents.records import entries as entries_of
from placer.topology.budgets import budgets_entry
from placer.topology.links import link_entries

if TYPE_CHECKING:
    from placer.base.arrays import FloatArray, IntArray
    from placer.topology.islands import Islands
    from placer.topology.model import Topology


def to_document(topology: Topology) -> dict[str, Any]:
    """The machine as plain data of the topology format, ready for JSON.

    Every usable node has an entry with its domain at every tier above it; nodes that
    are unavailable are not part of the machine. Numbers are SI: B/s and s.
    """
    size = node_size(topology.gpus_of_node, topology.islands)
    document: dict[str, Any] = {
        "format": "placer/topology",
        "version": 1,
        "name": topology.name,
    }
    if topology.description:
        document["description"] = topology.description
    return document | {
        "sources": list(topology.sources),
        **scheduler_entry(topology),
        **topology.gpu.to_document(),
        **budgets_entry(topology.budgets),
        **assumed_entry(topology.assumed),
        "tiers": tier_entries(topology, size),
        **affinity_entry(topology, size),
        "nodes": _nodes(topology, size),
        **link_entries(topology.links),
    }


def node_size(gpus: IntArray, islands: Islands | None) -> int:
    """GPUs of a usual node."""
    return prod(islands.sizes) if islands else int(gpus.max())


def tier_entries(topology: Topology, size: int) -> list[dict[str, Any]]:
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


def affinity_entry(topology: Topology, size: int) -> dict[str, Any]:
    """The key ``affinity`` with its value; empty where nothing is known."""
    known = entries_of(topology.affinity.of_node(size))
    return {"affinity": known} if known else {}


def scheduler_entry(topology: Topology) -> dict[str, Any]:
    """The keys ``scheduler`` and ``kubernetes``, those that are known."""
    known = {"scheduler": topology.scheduler} if topology.scheduler else {}
    return known | topology.kubernetes.to_document()


def listed_gpus(gpus: IntArray, islands: Islands | None) -> list[int | list[int]]:
    """``gpus`` of every entry: those of each island where only some have them all."""
    if islands is None:
        return [*map(int, gpus)]
    size, whole = islands.sizes[0], prod(islands.sizes)
    return [
        whole if min(row) == size else 0 if max(row) == 0 else row
        for row in islands.gpus.tolist()
    ]


def speeds(compute_factor: FloatArray | None, num_nodes: int) -> list[float]:
    """The compute factor of every node."""
    return [1.0] * num_nodes if compute_factor is None else compute_factor.tolist()


def unusual(
    size: int, gpus: int | list[int], bandwidth: float, compute: float
) -> dict[str, Any]:
    """What an entry of ``nodes`` says of its GPUs, bandwidth and compute factor."""
    facts = {
        "gpus": (gpus, size),
        "bandwidth_factor": (bandwidth, 1.0),
        "compute_factor": (compute, 1.0),
    }
    return {key: own for key, (own, usual) in facts.items() if own != usual}


def _nodes(topology: Topology, size: int) -> list[dict[str, Any]]:
    """One entry a node; GPUs and factors only where they are not the usual."""
    tier_names = [tier.name for tier in topology.tiers]
    entries: list[dict[str, Any]] = [{"names": n} for n in topology.node_names]
    for t in range(1, len(tier_names)):
        names = topology.domain_names[t]
        row = topology.domain_of_node[t].tolist()
        for entry, domain in zip(entries, row, strict=True):
            entry[tier_names[t]] = names[domain]
    gpus_of_node = listed_gpus(topology.gpus_of_node, topology.islands)
    speed = speeds(topology.compute_factor, topology.num_nodes)
    columns = gpus_of_node, topology.bandwidth_factor.tolist(), speed
    for entry, *facts in zip(entries, *columns, strict=True):
        entry |= unusual(size, *facts)
    return entries
