"""Where ranks were before a failure, on the machine that is left."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from placer.placement.plan import Plan
    from placer.topology.model import Topology

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Before:
    """The seats of a plan, some of which are gone.

    Attributes
    ----------
    gpu_of_rank : ndarray, shape (R,)
        GPU of the machine that is left; -1 for a rank whose node is gone.
    domain : ndarray, shape (T, R)
        Domain of every rank at each tier, numbered as the machine's. Nodes and domains
        that are gone have numbers of their own, beyond those.
    """

    gpu_of_rank: IntArray
    domain: IntArray

    @property
    def is_lost(self) -> BoolArray:
        """Whether each rank needs another seat; shape (R,)."""
        return self.gpu_of_rank < 0

    def moved(self, gpu_of_rank: IntArray) -> int:
        """How many ranks a placement puts elsewhere."""
        return int(np.count_nonzero(gpu_of_rank != self.gpu_of_rank))


def before_of(plan: Plan, machine: Topology) -> Before:
    """Where ``plan`` has its ranks on ``machine``, which may lack some of its nodes.

    A node that has fewer GPUs than the plan uses of it counts as gone.
    """
    index = {name: i for i, name in enumerate(machine.node_names)}
    node = np.array([index.get(name, -1) for name in plan.nodes], dtype=np.int64)
    needed = np.zeros(len(node), dtype=np.int64)
    np.maximum.at(needed, plan.node_of_rank, plan.gpu_of_rank + 1)
    is_there = (node >= 0) & (needed <= machine.gpus_of_node[node])
    seat = machine.first_gpu_of_node[node[plan.node_of_rank]] + plan.gpu_of_rank
    rows = [np.where(is_there, node, machine.num_nodes + np.arange(len(node)))]
    for t, tier in enumerate(machine.tiers[1:-1], start=1):
        named = _numbered(plan.domains.get(tier.name, plan.nodes), machine, t)
        rows.append(np.where(node >= 0, machine.domain_of_node[t][node], named))
    if len(machine.tiers) > 1:
        rows.append(np.zeros(len(node), dtype=np.int64))
    return Before(
        np.where(is_there[plan.node_of_rank], seat, -1),
        np.array(rows)[:, plan.node_of_rank],
    )


def _numbered(names: tuple[str, ...], machine: Topology, tier: int) -> IntArray:
    """Number of each domain of a tier; unknown ones are numbered beyond the others."""
    number = {name: d for d, name in enumerate(machine.domain_names[tier])}
    return np.array(
        [number.setdefault(name, len(number)) for name in names], dtype=np.int64
    )
