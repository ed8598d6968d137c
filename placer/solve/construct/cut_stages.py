"""Stages of all replicas as units, and the leaf domains that have room for them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from placer.solve.tree.fill import tree_order

if TYPE_CHECKING:
    from placer.cost.step import StepModel
    from placer.job.model import Job
    from placer.solve.problem.colocation import Parts

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Stages:
    """One job's stages on one machine's scale-up domains, the leaves.

    Attributes
    ----------
    ranks : ndarray, shape (D, P, ranks of a stage)
        D replicas; expert replicas where there are experts.
    members : int
        Members of a gradient group in one stage of one replica.
    leaf_of_node : ndarray, shape (N,)
        Leaf of each node, leaves numbered along the tree.
    domain_of_leaf : list of ndarray
        Domain of each leaf at the next tier, domain of each of those at the tier above,
        and so on; the last tier has one.
    room_of_node : ndarray, shape (N,)
        Ranks that each node may hold.
    capacity : ndarray, shape (leaves,)
        Stages that each leaf has room for.
    uplink : float, B/s
        Uplink capacity that a leaf has for every stage it holds.
    """

    ranks: IntArray
    members: int
    leaf_of_node: IntArray
    domain_of_leaf: list[IntArray]
    room_of_node: IntArray
    capacity: IntArray
    uplink: float

    @classmethod
    def of(
        cls, model: StepModel, parts: Parts, room_of_node: IntArray
    ) -> Stages | None:
        """The stages, None where they do not fit leaves or must not be parted.

        Parameters
        ----------
        model : StepModel
        parts : Parts
        room_of_node : ndarray, shape (N,)
            Ranks that each node may hold.
        """
        fabric, tier = model.fabric, model.fabric.scale_up_tier
        outer = tier + 1
        sharded = model.job.data_parallel.sharding == "hsdp"
        if tier < 0 or outer == fabric.num_tiers or sharded:
            return None
        ranks = _ranks_of_stage(model.job)
        leaf_of_node = _along_tree(model.topology.domain_of_node[tier], model)
        room = np.bincount(leaf_of_node, room_of_node).astype(np.int64)
        size = ranks.shape[2]
        capacity = np.minimum(room // size, ranks.shape[0] * ranks.shape[1])
        if capacity.sum() * size < ranks.size or not _keeps(parts.label[tier], ranks):
            return None
        groups = model.job.parallelism.ranks_of_group["dp_cp"]
        row_of_rank = np.empty(ranks.size, dtype=np.int64)
        row_of_rank[groups] = np.arange(len(groups))[:, None]
        share = fabric.bandwidth[outer] / model.topology.tiers[outer].oversubscription
        return cls(
            ranks,
            size // len(np.unique(row_of_rank[ranks[0, 0]])),
            leaf_of_node,
            list(_parents(leaf_of_node, model, outer)),
            room_of_node,
            capacity,
            float(size * share),
        )

    @property
    def replicas(self) -> int:
        """Replicas, D."""
        return int(self.ranks.shape[0])

    @property
    def number(self) -> int:
        """Stages of a replica, P."""
        return int(self.ranks.shape[1])

    def node_of_rank(self, leaf: IntArray) -> IntArray:
        """Node of every rank when the stages lie on the leaves (D, P)."""
        seats = np.argsort(self.leaf_of_node, kind="stable")
        seats = np.repeat(seats, self.room_of_node[seats])
        room = np.bincount(self.leaf_of_node, self.room_of_node).astype(np.int64)
        by_leaf = np.argsort(leaf.ravel(), kind="stable")
        held = np.bincount(leaf.ravel(), minlength=len(room))
        first_stage, first_seat = np.cumsum(held) - held, np.cumsum(room) - room
        here = leaf.ravel()[by_leaf]
        place = np.arange(len(here)) - first_stage[here]
        size = self.ranks.shape[2]
        seat = (first_seat[here] + place * size)[:, None] + np.arange(size)
        node_of_rank = np.empty(self.ranks.size, dtype=np.int64)
        node_of_rank[self.ranks.reshape(-1, size)[by_leaf]] = seats[seat]
        return node_of_rank


def _ranks_of_stage(job: Job) -> IntArray:
    """Ranks of every stage of every replica; shape (D, P, ranks of a stage)."""
    axes = job.parallelism
    replica = axes.coordinates["edp" if axes.ep > 1 else "dp"]
    stage, cp = axes.coordinates["pp"], axes.coordinates["cp"]
    order = np.lexsort((np.arange(axes.world_size), cp, stage, replica))
    return order.reshape(int(replica.max()) + 1, axes.pp, -1)


def _along_tree(leaf_of_node: IntArray, model: StepModel) -> IntArray:
    """The same leaves, numbered by their first node in tree order."""
    leaves = leaf_of_node[tree_order(model.topology)]
    _, first, number = np.unique(leaves, return_index=True, return_inverse=True)
    place = np.empty(len(first), dtype=np.int64)
    place[np.argsort(first)] = np.arange(len(first))
    along = np.empty(len(leaves), dtype=np.int64)
    along[tree_order(model.topology)] = place[number]
    return along


def _parents(below: IntArray, model: StepModel, outer: int) -> Iterator[IntArray]:
    """Domain of each domain below, tier by tier, from domain of each node on."""
    for row in model.topology.domain_of_node[outer:]:
        parent = np.empty(int(below.max()) + 1, dtype=np.int64)
        parent[below] = row
        yield parent
        below = row


def _keeps(label: IntArray, ranks: IntArray) -> bool:
    """Whether ranks that must share a leaf are in one stage of one replica."""
    stage_of_rank = np.empty(ranks.size, dtype=np.int64)
    number = np.arange(ranks.shape[0] * ranks.shape[1])
    stage_of_rank[ranks] = number.reshape(*ranks.shape[:2], 1)
    _, first, part = np.unique(label, return_index=True, return_inverse=True)
    return bool((stage_of_rank == stage_of_rank[first][part]).all())
