"""Placements whose pipelines are stitched together over fragmented domains."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from placer.placement.placement import Placement
from placer.solve.fill import tree_order
from placer.solve.parts import node_capacity, parent_of_domain
from placer.solve.replica_order import MOST_REPLICAS, ReplicaTour
from placer.solve.segments import Stitching

if TYPE_CHECKING:
    from placer.job.model import Job
    from placer.solve.objective import Objective
    from placer.solve.parts import Parts
    from placer.solve.segments import Segment
    from placer.topology.model import Topology

IntArray = npt.NDArray[np.int64]
Candidate = tuple[str, IntArray, bool]
FloatArray = npt.NDArray[np.float64]

# Joints a replica may have, tried in turn when the slowest replica sets the cost.
JOINT_LIMITS = (1, 2, 3, None)


class _Units(NamedTuple):
    """The stages of all replicas, each a unit that stays in one leaf domain.

    Attributes
    ----------
    ranks : ndarray, shape (replicas, stages, ranks of a unit)
    can_halve : bool
        Whether the halves of a unit's ranks differ in their cp coordinate only, so that
        a unit may be cut in two between leaves.
    """

    ranks: IntArray
    can_halve: bool

    @property
    def size(self) -> int:
        """Ranks of a unit."""
        return int(self.ranks.shape[2])


def stitched_pipelines(
    topology: Topology,
    job: Job,
    parts: Parts,
    goal: Objective,
    time_limit: float,
    seed: int,
    stop: Callable[[], bool] = lambda: False,
) -> Iterator[Candidate]:
    """(name, GPU of every rank, whether ended in time) of stitched placements.

    Nothing when the job has no pipeline, when its stages do not fit leaf domains, or on
    a machine of equal domains (nestings cover those). ``stop`` is asked between
    programs; True ends the work. Stages are cut in halves only where leaves cannot hold
    all of them whole.
    """
    if job.parallelism.pp > 1:
        work = _Stitcher(topology, job, parts, goal)
        if work.is_worthwhile():
            yield from work.solve(time_limit, seed, stop)


def _units(job: Job) -> _Units:
    """All ranks of one stage of one replica (of one expert replica) as a unit."""
    axes = job.parallelism
    replica = axes.coordinates["edp" if axes.ep > 1 else "dp"]
    stage, cp = axes.coordinates["pp"], axes.coordinates["cp"]
    order = np.lexsort((np.arange(axes.world_size), cp, stage, replica))
    ranks = order.reshape(int(replica.max()) + 1, axes.pp, -1)
    return _Units(ranks, axes.cp % 2 == 0 and axes.ep == 1)


class _Stitcher:
    """One job's units on one machine's leaf domains."""

    def __init__(
        self, topology: Topology, job: Job, parts: Parts, goal: Objective
    ) -> None:
        self.topology, self.job, self.parts, self.goal = topology, job, parts, goal
        self.units = _units(job)
        self.leaf_tier = _leaf_tier(topology, goal)
        ranks = node_capacity(topology, parts.block)
        inside = np.bincount(topology.domain_of_node[self.leaf_tier], ranks)
        self.room = inside.astype(np.int64)
        self.capacity = self.room // self.units.size
        replicas, stages, _ = self.units.ranks.shape
        self.missing = replicas * stages - int(self.capacity.sum())

    @property
    def outer_tiers(self) -> range:
        """Tiers above the leaves."""
        return range(self.leaf_tier + 1, len(self.topology.tiers))

    @property
    def spare_halves(self) -> IntArray:
        """Half units each leaf has room for beside its whole ones."""
        return (self.room % self.units.size >= self.units.size // 2).astype(np.int64)

    def is_worthwhile(self) -> bool:
        """Whether the units fit, stay whole, and stitching them is needed."""
        return (
            (self.missing <= 0 or self._fits_in_halves())
            and len(self.outer_tiers) > 0
            and self._keeps_parts(self.units.ranks)
            and not self._is_regular()
        )

    def solve(
        self, time_limit: float, seed: int, stop: Callable[[], bool]
    ) -> Iterator[Candidate]:
        """(name, GPU of every rank, whether ended in time)."""
        # The program solver takes a while to load, and most searches do without.
        from placer.solve.stitch import stitch

        limits = JOINT_LIMITS if self.goal.name == "time" else (None,)
        end = monotonic() + time_limit

        def over() -> bool:
            return stop() or monotonic() > end

        for most_joints in limits:
            if over():
                return
            problem = self._problem(most_joints)
            stitched = stitch(problem, end - monotonic(), seed, stop)
            if stitched is None:
                continue
            joints = sum(len(replica) - 1 for replica in stitched.replicas)
            name = f"stitched pipelines, {joints} joints"
            if most_joints is not None:
                name += f", at most {most_joints} a replica"
            node_of_rank = self._realise(stitched.replicas, seed, over)
            placement = Placement.on_nodes(self.topology, node_of_rank)
            yield name, placement.gpu_of_rank, not stitched.cut_short
            return

    def _fits_in_halves(self) -> bool:
        """Whether the stages that do not fit whole fit as two halves."""
        return (
            self.units.can_halve
            and int(self.spare_halves.sum()) // 2 >= self.missing
            and self._keeps_parts(self._halves())
        )

    def _halves(self) -> IntArray:
        """Ranks of each half unit; shape (replicas, 2 stages, ranks of a half)."""
        replicas, stages, _ = self.units.ranks.shape
        return self.units.ranks.reshape(replicas, 2 * stages, -1)

    def _keeps_parts(self, ranks: IntArray) -> bool:
        """Whether ranks that must share a leaf domain, or a node, are in one unit."""
        label = self.parts.label[self.leaf_tier]
        unit_of_rank = np.empty(len(label), dtype=np.int64)
        number = np.arange(ranks.shape[0] * ranks.shape[1])
        unit_of_rank[ranks] = number.reshape(*ranks.shape[:2], 1)
        first = np.unique(label, return_index=True)[1]
        return bool((unit_of_rank == unit_of_rank[first][label]).all())

    def _is_regular(self) -> bool:
        """Whether leaves hold equally much and domains have equally many children."""
        if len(np.unique(self.capacity)) > 1:
            return False
        return all(
            len(np.unique(np.bincount(parent_of_domain(self.topology, t)))) == 1
            for t in self.outer_tiers
        )

    def _problem(self, most_joints: int | None) -> Stitching:
        topology, weights, size = self.topology, self.goal.weights, self.units.size
        replicas, stages, _ = self.units.ranks.shape
        nearest = topology.tiers[self.leaf_tier].distance
        steps = [topology.tiers[t].distance - nearest for t in self.outer_tiers]
        # Cutting a cp ring in two halves cuts it twice, a pair once.
        cp = self.job.parallelism.cp
        cuts = size // cp * min(cp // 2, 2)
        return Stitching(
            capacity=np.minimum(self.capacity, replicas * stages),
            parents=[parent_of_domain(topology, t) for t in self.outer_tiers],
            joint_cost=[weights.get("pp", 0.0) * size * step for step in steps],
            length=stages,
            replicas=replicas,
            shared_gain=weights.get("dp", 0.0) * size * steps[0],
            most_joints=most_joints,
            spare_halves=self.spare_halves if self.missing > 0 else None,
            half_cost=[weights.get("cp", 0.0) * cuts * step for step in steps],
        )

    def _realise(
        self, replicas: list[Segment], seed: int, over: Callable[[], bool]
    ) -> IntArray:
        """Node of every rank: replicas numbered along a short tour, leaves filled."""
        has_halves = self.missing > 0
        leaf = self._along_tree(replicas, has_halves)
        if len(replicas) <= MOST_REPLICAS:
            tour = ReplicaTour(leaf, *self._leaf_distances())
            tour.improve(seed, over)
            leaf = tour.leaf
        ranks_of_unit = self._halves() if has_halves else self.units.ranks
        leaf_of_node = self.topology.domain_of_node[self.leaf_tier]
        room = node_capacity(self.topology, self.parts.block)
        node_of_rank = np.empty(ranks_of_unit.size, dtype=np.int64)
        for domain in np.unique(leaf):
            ranks = ranks_of_unit[leaf == domain].ravel()
            nodes = np.flatnonzero(leaf_of_node == domain)
            node_of_rank[ranks] = np.repeat(nodes, room[nodes])[: len(ranks)]
        return node_of_rank

    def _along_tree(self, replicas: list[Segment], has_halves: bool) -> IntArray:
        """Leaf of every unit (or half), replicas in tree order."""
        order = tree_order(self.topology)
        leaves = self.topology.domain_of_node[self.leaf_tier][order]
        position = np.empty(int(leaves.max()) + 1, dtype=np.int64)
        position[leaves[::-1]] = np.arange(len(leaves) - 1, -1, -1)
        rows = [
            [
                leaf
                for piece in replica
                for _ in range(piece.length)
                for leaf in ((piece.leaf, piece.twin) if has_halves else (piece.leaf,))
            ]
            for replica in replicas
        ]
        return np.array(sorted(rows, key=lambda row: position[row].tolist()))

    def _leaf_distances(self) -> tuple[IntArray, FloatArray]:
        """Domains of each leaf and steps of the distance, from the leaf tier out."""
        tiers = self.topology.tiers
        parent = np.arange(len(self.topology.domain_names[self.leaf_tier]))
        domains, steps = [], []
        for t in range(self.leaf_tier, len(tiers) - 1):
            if t > self.leaf_tier:
                parent = parent_of_domain(self.topology, t)[parent]
            domains.append(parent)
            steps.append(tiers[t + 1].distance - tiers[t].distance)
        return np.array(domains), np.array(steps)


def _leaf_tier(topology: Topology, goal: Objective) -> int:
    """Largest tier inside which a hop costs the least."""
    if goal.name == "time":
        return max(topology.scale_up_tier, 0)
    distance = [tier.distance for tier in topology.tiers]
    last = 0
    while last + 2 < len(distance) and distance[last + 1] == distance[0]:
        last += 1
    return last
