"""The machine as a graph, for analyses of the user's own."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import networkx as nx
import numpy as np

if TYPE_CHECKING:
    from placer.topology.model import Topology


def machine_tree(topology: Topology, gpus: bool) -> nx.DiGraph:
    """The tree that `Topology.to_networkx` describes."""
    tree = nx.DiGraph(name=topology.name)
    usable = topology.gpus_of_node
    keys = []
    for t, (tier, names) in enumerate(
        zip(topology.tiers, topology.domain_names, strict=True)
    ):
        keys.append([(tier.name, name) for name in names])
        sizes = np.bincount(topology.domain_of_node[t], usable).astype(int)
        facts = {
            "tier": tier.name,
            "bandwidth": tier.bandwidth,
            "latency": tier.latency,
            "scale_up": tier.scale_up,
        }
        for key, size in zip(keys[t], sizes.tolist(), strict=True):
            tree.add_node(key, size=size, **facts)
    for t, (inner, outer) in enumerate(pairwise(topology.domain_of_node)):
        tier = topology.tiers[t + 1]
        uplinks = topology.gpus_of_domain(t) * tier.bandwidth / tier.oversubscription
        for child, parent in dict(
            zip(inner.tolist(), outer.tolist(), strict=True)
        ).items():
            uplink = float(uplinks[child])
            tree.add_edge(keys[t + 1][parent], keys[t][child], bandwidth=uplink)
    if gpus:
        tier = topology.tiers[0]
        uplink = tier.bandwidth / tier.oversubscription
        for node, count in zip(keys[0], usable.tolist(), strict=True):
            for k in range(count):
                tree.add_node(("gpu", node[1], k), tier="gpu", size=1)
                tree.add_edge(node, ("gpu", node[1], k), bandwidth=uplink)
    return tree
