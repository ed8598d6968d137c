"""What an allocation leaves free, in numbers for people and schedulers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from placer.solve.run.rest import Rest

if TYPE_CHECKING:
    from placer.allocation.demand import Demand
    from placer.base.arrays import BoolArray
    from placer.topology.model import Topology


def left(machine: Topology, free: BoolArray, demand: Demand) -> dict[str, Any]:
    """The free nodes by domain, and what they are worth.

    ``useful_nodes`` are those that jobs to come can fill in one domain of the innermost
    tier above the node, of the sizes and shares of ``demand``; ``stranded_nodes`` are
    the others. Where there is no such tier, the cluster is the one domain.
    Domains without a free node count 0.
    """
    tiers = range(1, len(machine.tiers) - 1)
    counts = {
        t: np.bincount(
            machine.domain_of_node[t], free, len(machine.domain_names[t])
        ).astype(np.int64)
        for t in tiers
    }
    count = int(free.sum())
    found: dict[str, Any] = {
        "free_nodes": count,
        "whole_domains": {
            machine.tiers[t].name: int(
                (own == np.bincount(machine.domain_of_node[t])).sum()
            )
            for t, own in counts.items()
        },
        "free_by_domain": {
            machine.tiers[t].name: dict(
                zip(machine.domain_names[t], own.tolist(), strict=True)
            )
            for t, own in counts.items()
        },
        "largest_free": {
            machine.tiers[t].name: int(own.max()) for t, own in counts.items()
        },
        "slurm_fragmentation": slurm_fragmentation(machine, free),
    }
    if len(machine.tiers) > 1:
        by_domain = counts.get(1, np.array([count]))
        found |= _useful(machine, by_domain, count, demand)
    return found


def _useful(
    machine: Topology, by_domain: Any, count: int, demand: Demand
) -> dict[str, Any]:
    filled, _ = Rest(machine, demand).worth(1, by_domain)
    often = sum(share for _, share in demand)
    useful = int(filled.sum()) / often
    return {
        "useful_nodes": useful,
        "stranded_nodes": round(count - useful, 9),
        "demand": {str(nodes): share / often for nodes, share in demand},
    }


def slurm_fragmentation(machine: Topology, free: BoolArray) -> int:
    """Slurm's figure of how broken the free nodes are; 0 where all are free.

    Nodes that are not free, and the nodes of every block, of each size, that is not
    wholly free. Blocks are the domains of the tiers above the node. Source: Slurm,
    ``src/plugins/topology/block/topology_block.c``.
    """
    total = int((~free).sum())
    for row in machine.domain_of_node[1:]:
        size = np.bincount(row)
        broken = np.bincount(row, ~free) > 0
        total += int(size[broken].sum())
    return total
