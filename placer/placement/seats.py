"""Where ranks sit: node and GPU of every rank, and what keeps it from having a seat.

Shapes: R ranks, N nodes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from placer.base.arrays import BoolArray, IntArray
from placer.base.units import counted
from placer.placement.placement import Placement
from placer.placement.plan import Plan
from placer.topology.model import Topology

_SHOWN_RANKS = 4


def share(count: int, total: int, noun: str, one: str, many: str) -> str:
    """``3 of 1,024 ranks use``: a count of a total, and the verb that fits it."""
    return f"{count:,} of {counted(total, noun)} {one if count == 1 else many}"


def some_ranks(ranks: IntArray) -> str:
    """``(ranks 0, 8, 16, 24, ...)``: the first few of ``ranks``, shape (any,)."""
    shown = ", ".join(str(rank) for rank in ranks[:_SHOWN_RANKS])
    return f"(ranks {shown}{', ...' if len(ranks) > _SHOWN_RANKS else ''})"


@dataclass(frozen=True, eq=False)
class Seats:
    """Seat of every rank."""

    node: IntArray  # (R,): index of the node in the topology
    gpu: IntArray  # (R,): index of the GPU inside its node


def seats_of_plan(plan: Plan, topology: Topology) -> tuple[Seats, list[str]]:
    """Seats of a plan's ranks, and the faults; seats hold only when there is none."""
    if plan.node_of_rank.shape != plan.gpu_of_rank.shape:
        return Seats(plan.node_of_rank, plan.gpu_of_rank), [
            f"{plan.node_of_rank.size:,} ranks have a node, "
            f"{plan.gpu_of_rank.size:,} have a GPU"
        ]
    index = {name: i for i, name in enumerate(topology.node_names)}
    # One entry more than there are nodes: -1 stands for "no node" and indexes it.
    of_entry = np.array([index.get(n, -1) for n in plan.nodes] + [-1], dtype=np.int64)
    room_of_node = np.append(topology.gpus_of_node, 0)
    entry, gpu = plan.node_of_rank, plan.gpu_of_rank
    listed = (entry >= 0) & (entry < len(plan.nodes))
    node = of_entry[np.where(listed, entry, -1)]
    outside = (node >= 0) & ((gpu < 0) | (gpu >= room_of_node[node]))
    return Seats(node, gpu), [
        *_fault(~listed, entry, "points", "point", "outside the list of nodes"),
        *_fault(listed & (node < 0), entry, "has", "have", "no usable node"),
        *_fault(outside, gpu, "uses", "use", "a GPU that the node does not have"),
    ]


def seats_of_placement(
    placement: Placement, topology: Topology
) -> tuple[Seats, list[str]]:
    """Seats of a placement's ranks, and the faults, as for a plan."""
    gpu = placement.gpu_of_rank
    end = np.cumsum(topology.gpus_of_node)
    outside = (gpu < 0) | (gpu >= topology.gpus_of_node.sum())
    if outside.any():
        return Seats(gpu, gpu), _fault(
            outside, gpu, "uses", "use", "a GPU that the topology does not have"
        )
    node = np.searchsorted(end, gpu, side="right").astype(np.int64)
    shut = [i for i, n in enumerate(topology.node_names) if n in topology.unavailable]
    return Seats(node, topology.index_of_gpu[gpu]), _fault(
        np.isin(node, shut), node, "has", "have", "a node that must not be used"
    )


def _fault(
    bad: BoolArray, value: IntArray, one: str, many: str, what: str
) -> list[str]:
    """One sentence when ``bad`` marks any rank; both arrays have shape (R,)."""
    ranks = np.flatnonzero(bad)
    if not ranks.size:
        return []
    return [
        f"{share(ranks.size, bad.size, 'rank', one, many)} {what}: "
        f"the first is rank {ranks[0]} (index {value[ranks[0]]})"
    ]
