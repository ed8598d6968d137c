"""What is known of each node of a machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from placer.arrays import IntArray
    from placer.topology.machine import Domains
    from placer.topology.model import Topology


def node_rows(topology: Topology) -> list[dict[str, Any]]:
    """A plain mapping a usable node: its name, GPUs, factors and domains."""
    domains = {
        tier.name: [topology.domain_names[t][d] for d in topology.domain_of_node[t]]
        for t, tier in enumerate(topology.tiers)
        if t > 0
    }
    return [
        {
            "node": name,
            "gpus": int(topology.gpus_of_node[n]),
            "bandwidth_factor": float(topology.bandwidth_factor[n]),
            "compute_factor": float(topology.speed_of_node[n]),
            **{tier: names[n] for tier, names in domains.items()},
        }
        for n, name in enumerate(topology.node_names)
    ]


def kinds(topology: Domains) -> IntArray:
    """Number of each node's kind, as `Domains.kind_of_node` says; shape (N,)."""
    facts = [topology.bandwidth_factor, topology.speed_of_node]
    links = topology.links
    for name in dict.fromkeys(link.tier for link in links):
        t = topology.tier_index(name)
        linked = {end for link in links if link.tier == name for end in link.between}
        is_linked = np.array([end in linked for end in topology.domain_names[t]])
        row = topology.domain_of_node[t]
        facts.append(np.where(is_linked[row], row, -1))
    kind = np.zeros(topology.num_nodes, dtype=np.int64)
    for fact in facts:
        number = np.unique(fact, return_inverse=True)[1]
        both = kind * (int(number.max()) + 1) + number
        kind = np.unique(both, return_inverse=True)[1]
    return kind
