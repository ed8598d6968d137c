"""A machine whose nodes have islands, seen island by island.

Shapes: K tiers below the node, T tiers in all, N nodes, L islands with GPUs.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from placer.base.arrays import IntArray
from placer.topology.machine import Machine

if TYPE_CHECKING:
    from placer.topology.build import Nodes
    from placer.topology.model import Tier, Topology


@dataclass(frozen=True, eq=False)
class Islands:
    """The tiers inside a node: groups of its GPUs that talk faster than the others.

    Shapes: K tiers below the node, I islands of the innermost one in every node.
    """

    tiers: tuple[Tier, ...]  # length K: innermost first
    # Length K + 1: GPUs of an innermost island, then how many islands of a tier the
    # next one holds; the last counts the outermost islands of a node.
    sizes: tuple[int, ...]
    gpus: IntArray  # (N, I): healthy GPUs of each innermost island of each node
    # What a launcher calls the GPUs of a node that misses none, island by island.
    members: tuple[int, ...]

    def of_nodes(self, nodes: IntArray) -> Islands:
        """Those of some nodes, in that order."""
        return replace(self, gpus=self.gpus[nodes])

    @property
    def groups(self) -> list[list[int]]:
        """What a launcher calls the GPUs of each island of a node that misses none."""
        size, members = self.sizes[0], [*self.members]
        return [members[i : i + size] for i in range(0, len(members), size)]

    @property
    def are_whole(self) -> bool:
        """Whether no GPU of any island is missing."""
        return bool((self.gpus == self.sizes[0]).all())


def seen_by_island(topology: Topology) -> Machine:
    """The view that `Topology.by_island` describes.

    An island without a healthy GPU is left out, as a node without one is; the uplinks
    keep the size they were built with.
    """
    islands = topology.islands
    same = {one.name: getattr(topology, one.name) for one in fields(Machine)}
    if islands is None:
        return Machine(**same)
    num_nodes, num_islands = islands.gpus.shape
    node_of_island = np.repeat(np.arange(num_nodes), num_islands)
    kept = np.flatnonzero(islands.gpus.ravel() > 0)
    rows: list[IntArray] = []
    names: list[tuple[str, ...]] = []
    built: list[IntArray] = []
    for size, count in inner_tiers(islands.sizes):
        per_node = num_islands // count
        inside = np.tile(np.arange(num_islands) // count, num_nodes)
        domain = node_of_island * per_node + inside
        known, row = np.unique(domain[kept], return_inverse=True)
        rows.append(row.astype(np.int64))
        names.append(
            tuple(
                f"{topology.node_names[d // per_node]}/{d % per_node}"
                for d in known.tolist()
            )
        )
        built.append(np.full(len(known), size, dtype=np.int64))
    node_of_kept = node_of_island[kept]
    speed, share = topology.compute_factor, topology.uplink_share
    outer = [topology.gpus_of_domain(t) for t in range(len(topology.tiers))]
    own: dict[str, Any] = {
        "tiers": (*islands.tiers, *topology.tiers),
        "gpus_of_node": islands.gpus.ravel()[kept],
        "bandwidth_factor": topology.bandwidth_factor[node_of_kept],
        "compute_factor": None if speed is None else speed[node_of_kept],
        "domain_of_node": np.vstack([*rows, topology.domain_of_node[:, node_of_kept]]),
        "domain_names": (*names, *topology.domain_names),
        "built": (*built, *outer),
        # No other job uses those inside the nodes.
        "uplink_share": share and (*(np.ones(len(gpus)) for gpus in built), *share),
        "node_tier": len(islands.tiers),
        "gpu_index": topology.index_of_gpu,
    }
    return Machine(**same | own)


def launcher_indices(islands: Islands) -> IntArray:
    """What a launcher calls each GPU on its node; shape (G,).

    It counts the GPUs that are there.
    """
    rows, row_of_node = np.unique(islands.gpus, axis=0, return_inverse=True)
    of_row = [np.argsort(np.argsort(_members_there(islands, row))) for row in rows]
    return np.concatenate([of_row[row] for row in row_of_node.ravel().tolist()])


def island_on(
    islands: Islands, listed: Nodes | None, host: str, index: IntArray
) -> IntArray:
    """Island of each GPU that a launcher called ``index`` on a host; shape (any,).

    The host may be gone, or have fewer GPUs than it had. Then it is taken to have had
    all of them, unless the machine lists those that it had.
    """
    gpus = np.full(len(islands.groups), islands.sizes[0])
    if listed is not None and listed.islands and host in listed.names[0]:
        own = listed.islands.gpus[listed.names[0].index(host)]
        gpus = own if own.sum() > index.max() else gpus
    island = np.repeat(np.arange(len(gpus)), gpus)
    by_index = island[np.argsort(_members_there(islands, gpus))]
    found: IntArray = by_index[np.minimum(index, len(by_index) - 1)]
    return found


def _members_there(islands: Islands, gpus: IntArray) -> IntArray:
    """What a launcher calls the GPUs of a host, island by island, if none was missing.

    Those an island misses are taken to be its last.
    """
    pairs = zip(np.array(islands.groups), gpus.tolist(), strict=True)
    return np.concatenate([own[:count] for own, count in pairs])


def inner_tiers(sizes: tuple[int, ...]) -> list[tuple[int, int]]:
    """GPUs of a domain of each tier below the node, and its innermost islands."""
    return [
        (prod(sizes[: k + 1]), prod(sizes[1 : k + 1])) for k in range(len(sizes) - 1)
    ]
