"""Stages of all replicas as units, and how runs of them fill the leaf domains.

Shapes: L leaves in tree order, F patterns, K kinds of runs, W ways to cut a replica, D
replicas, C lanes of a replica, P stages.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from placer.base.arrays import IntArray, by_appearance, row_of_number
from placer.solve.count.deal import Pool, outward
from placer.solve.tree.fill import tree_order

if TYPE_CHECKING:
    from placer.cost.step import StepModel
    from placer.job.model import Job
    from placer.solve.construct.stages.cut_patterns import Counted, Question, Run
    from placer.solve.problem.colocation import Colocation


@dataclass(frozen=True, eq=False)
class Stages:
    """One job's stages on one machine's scale-up domains, the leaves.

    Attributes
    ----------
    ranks : ndarray, shape (D C, P, ranks of a stage)
        D replicas; expert replicas where there are experts.
    lanes : int
        Parts of a replica that may lie apart but are cut alike, C: members of context
        parallel groups, or 1 where these keep together.
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
    """

    ranks: IntArray
    lanes: int
    members: int
    leaf_of_node: IntArray
    domain_of_leaf: list[IntArray]
    room_of_node: IntArray
    capacity: IntArray

    @classmethod
    def of(
        cls,
        model: StepModel,
        colocation: Colocation,
        room_of_node: IntArray,
        *,
        parts_cp: bool = False,
    ) -> Stages | None:
        """The stages, None where they do not fit leaves or must not be parted.

        Parameters
        ----------
        room_of_node : ndarray, shape (N,)
            Ranks that each node may hold.
        parts_cp : bool
            Whether context parallel groups may be parted.
        """
        fabric, tier = model.fabric, model.fabric.scale_up_tier
        outer = tier + 1
        members = model.job.parallelism.ranks_of_group["dp_cp"].shape[1]
        sharded = model.job.data_parallel.shard_members(members, members) < members
        if tier < 0 or outer == fabric.num_tiers or sharded:
            return None
        ranks = _ranks_of_stage(model.job, parts_cp=parts_cp)
        if ranks is None:
            return None
        leaf_of_node = _along_tree(model.topology.domain_of_node[tier], model)
        room = np.bincount(leaf_of_node, room_of_node).astype(np.int64)
        size = ranks.shape[2]
        capacity = np.minimum(room // size, ranks.shape[0] * ranks.shape[1])
        if capacity.sum() * size < ranks.size or not colocation.lie_in(tier, ranks):
            return None
        groups = model.job.parallelism.ranks_of_group["dp_cp"]
        row_of_rank = row_of_number(groups)
        return cls(
            ranks,
            model.job.parallelism.cp if parts_cp else 1,
            size // len(np.unique(row_of_rank[ranks[0, 0]])),
            leaf_of_node,
            list(_parents(leaf_of_node, model, outer)),
            room_of_node,
            capacity,
        )

    @property
    def replicas(self) -> int:
        """Replicas, D."""
        return len(self.ranks) // self.lanes

    @property
    def number(self) -> int:
        """Stages of a replica, P."""
        return int(self.ranks.shape[1])

    def node_of_rank(self, leaf: IntArray) -> IntArray:
        """Node of every rank when the stages lie on the leaves (D C, P)."""
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


def _ranks_of_stage(job: Job, *, parts_cp: bool) -> IntArray | None:
    """Ranks of every stage of every replica; shape (D C, P, ranks of a stage).

    None where they are not as many: expert groups may lie across those of cp.
    """
    axes = job.parallelism
    replica = axes.coordinates["edp" if axes.ep > 1 else "dp"]
    stage, cp = axes.coordinates["pp"], axes.coordinates["cp"]
    if parts_cp:
        replica = replica * axes.cp + cp
    held = np.bincount(replica * axes.pp + stage)
    if held.min() < held.max():
        return None
    order = np.lexsort((np.arange(axes.world_size), cp, stage, replica))
    return order.reshape(int(replica.max()) + 1, axes.pp, -1)


def _along_tree(leaf_of_node: IntArray, model: StepModel) -> IntArray:
    """The same leaves, numbered by their first node in tree order."""
    leaves = leaf_of_node[tree_order(model.topology)]
    along = np.empty(len(leaves), dtype=np.int64)
    along[tree_order(model.topology)] = by_appearance(leaves)[1]
    return along


def _parents(below: IntArray, model: StepModel, outer: int) -> Iterator[IntArray]:
    """Domain of each domain below, tier by tier, from domain of each node on."""
    for row in model.topology.domain_of_node[outer:]:
        parent = np.empty(int(below.max()) + 1, dtype=np.int64)
        parent[below] = row
        yield parent
        below = row


def leaf_of_stage(question: Question, found: Counted, stages: Stages) -> IntArray:
    """Leaf of every stage of every replica; shape (D C, P).

    Replicas come in tree order, those inside the smallest domains first: a ring takes a
    leaf where a replica first has it, so those that lie across find their leaves taken
    and lengthen no ring.
    """
    patterns = np.vstack((question.patterns, np.zeros_like(question.patterns[:1])))
    chosen = _pattern_of_leaf(question, found, stages.capacity)
    held = patterns[chosen]
    pools: dict[int, Pool[Run, int]] = {}
    for leaf, run in np.argwhere(held).tolist():
        names = [leaf] * int(held[leaf, run])
        pools.setdefault(leaf, Pool())[question.runs[run]].extend(names)
    left = found.replicas_of_set.copy()
    rows: list[IntArray] = []
    for domain_of_leaf in stages.domain_of_leaf:
        pools = outward(pools, domain_of_leaf)
        made = [
            row
            for domain in sorted(pools)
            for row in _joined(question, pools[domain], left, stages)
        ]
        rows += sorted(made, key=lambda row: row.tolist())
    return np.concatenate(rows)


def evenly(counts: IntArray) -> list[int]:
    """Every index as often as ``counts`` says, spread evenly over the list."""
    places = [
        ((turn + 0.5) / count, index)
        for index, count in enumerate(counts.tolist())
        for turn in range(count)
    ]
    return [index for _, index in sorted(places)]


def _pattern_of_leaf(
    question: Question, found: Counted, capacity: IntArray
) -> IntArray:
    """Pattern of every leaf, the last one and one more for none; shape (L,).

    Large patterns go to the smallest leaves that they fit; among leaves of one size
    patterns take turns along the tree.
    """
    sizes = question.sizes
    of_size = {
        room: np.zeros(len(sizes) + 1, dtype=np.int64)
        for room in np.unique(capacity).tolist()
    }
    free = {room: int((capacity == room).sum()) for room in of_size}
    for pattern in np.argsort(-sizes, kind="stable").tolist():
        left = int(found.leaves_of_pattern[pattern])
        for room in (room for room in of_size if room >= sizes[pattern]):
            taken = min(left, free[room])
            of_size[room][pattern] += taken
            free[room] -= taken
            left -= taken
    chosen = np.empty(len(capacity), dtype=np.int64)
    for room, counts in of_size.items():
        counts[-1] = free[room]
        chosen[capacity == room] = evenly(counts)
    return chosen


def _joined(
    question: Question, pool: Pool[Run, int], left: IntArray, stages: Stages
) -> list[IntArray]:
    """Replicas (C, P) of the runs of a domain, taken out of ``pool`` and ``left``."""
    rows: list[IntArray] = []
    lanes, number = stages.lanes, stages.number
    for way, runs in enumerate(question.sets):
        count = min(int(left[way]), *(len(pool[run]) // lanes for run in runs))
        if not count:
            continue
        left[way] -= count
        made = np.empty((count, lanes, number), dtype=np.int64)
        for run in runs:
            here = np.arange(run.start, run.start + run.length) % number
            taken = np.array(pool.take(run, count * lanes), dtype=np.int64)
            made[:, :, here] = taken.reshape(count, lanes, 1)
        rows += list(made)
    return rows
