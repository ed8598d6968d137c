"""Placements whose chains are stitched together over fragmented domains."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from math import inf
from typing import TYPE_CHECKING

import numpy as np

from placer.arrays import FloatArray, IntArray
from placer.job.edges import hop_edges
from placer.solve.construct.chains.distances import Distances
from placer.solve.construct.chains.laid import laid
from placer.solve.construct.chains.lanes import Lanes, arrange
from placer.solve.construct.chains.segments import Stitching
from placer.solve.construct.chains.shapes import Shape, shapes
from placer.solve.construct.chains.stitch import stitch
from placer.solve.tree.capacity import parent_of_domain, whole_sets
from placer.solve.tree.fill import fill, share_down, tree_order

if TYPE_CHECKING:
    from placer.solve.construct.chains.segments import Segment, Stitched
    from placer.solve.problem.compiled import Problem
    from placer.solve.run.budget import Budget
    from placer.solve.run.incumbent import Incumbent
    from placer.topology.machine import Machine

Candidate = tuple[str, IntArray, bool]


def stitched(problem: Problem, incumbent: Incumbent, budget: Budget) -> None:
    """Chains stitched out of what fragmented domains hold."""
    for name, gpu_of_rank, in_time in stitched_chains(problem, budget):
        incumbent.cut_short |= not in_time
        incumbent.offer(name, gpu_of_rank)


def laid_chains(problem: Problem, incumbent: Incumbent, _budget: Budget) -> None:
    """Chains one after another along the tree, in whole units: found at once.

    Nothing on a machine of equal nodes in equal domains, where nestings are as good.
    """
    if not _is_even(problem.machine, 0, problem.capacity):
        stitchers = (_Stitcher(problem, shape) for shape in shapes(problem))
        incumbent.offer_all(
            candidate
            for stitcher in stitchers
            if stitcher.is_worthwhile()
            for candidate in stitcher.along_tree()
        )


def stitched_chains(problem: Problem, budget: Budget) -> Iterator[Candidate]:
    """(name, GPU of every rank, whether ended in time) of stitched placements.

    Nothing when no units fit leaf domains, or on a machine of equal domains that hold
    whole chains (nestings cover those). Units are cut in halves only where leaves
    cannot hold all of them whole.
    """
    for shape in _promising(problem):
        if budget.is_over():
            return
        yield from _Stitcher(problem, shape).solve(budget)


def _promising(problem: Problem) -> list[Shape]:
    """Shapes worth stitching, the cheapest first when filled into the tree."""
    goal = problem.goal
    priced: dict[bytes, tuple[float, int, Shape]] = {}
    for shape in shapes(problem):
        if not _Stitcher(problem, shape).is_worthwhile():
            continue
        node_of_rank = _filled(problem, shape)
        if node_of_rank is None:
            continue
        # Of shapes that fill the tree alike, the one with the largest units.
        key = node_of_rank.tobytes()
        value, unit, _ = priced.get(key, (inf, 0, shape))
        if key not in priced:
            value = goal.value(problem.machine.gpus_on(node_of_rank))
        if shape.unit > unit:
            priced[key] = value, shape.unit, shape
    if not priced:
        return []
    cheapest = sorted(priced.values(), key=lambda found: found[:2])
    least = _least(problem)
    most = least + problem.params.shape_spread * (cheapest[0][0] - least)
    several = cheapest[: problem.params.shapes[goal.name]]
    return [shape for value, _, shape in several if value <= most]


def _is_even(topology: Machine, tier: int, capacity: IntArray) -> bool:
    """Whether domains of a tier hold equally much, and those above equally many."""
    return len(np.unique(capacity)) == 1 and all(
        len(np.unique(np.bincount(parent_of_domain(topology, t)))) == 1
        for t in range(tier + 1, len(topology.tiers))
    )


def _least(problem: Problem) -> float:
    """Hop cost if all neighbours were in one node; 0 where time is the objective."""
    if problem.goal.name == "time":
        return 0.0
    edges = sum(axis.weight * len(axis.edges) for axis in hop_edges(problem.job))
    return edges * problem.machine.tiers[0].distance


def _filled(problem: Problem, shape: Shape) -> IntArray | None:
    """Node of every rank when the tree is filled with chain after chain."""
    whole = shape.unit if shape.missing <= 0 else shape.inner[-1]
    above = [max(shape.unit * m, whole) if m > 1 else whole for m in shape.multiples]
    units = [*shape.inner[:-1], whole, *above, (above or [whole])[-1]]
    return fill(problem.machine, problem.capacity, shape.ranks.ravel(), units)


class _Stitcher:
    """One shape of a job on one machine."""

    def __init__(self, problem: Problem, shape: Shape) -> None:
        self.whole, self.topology, self.shape = problem, problem.machine, shape
        self.has_halves = shape.missing > 0

    @property
    def outer_tiers(self) -> range:
        """Tiers above the leaves."""
        return range(self.shape.leaf_tier + 1, len(self.topology.tiers))

    def is_worthwhile(self) -> bool:
        """Whether the units fit, stay whole, and stitching them is needed."""
        shape = self.shape
        needed = len(shape.ranks) * shape.length
        return (
            not (
                shape.closed
                and shape.length > self.whole.params.ring_leaves * shape.capacity.max()
            )
            and (not self.has_halves or self._fits_in_halves())
            and self._keeps(shape.ranks)
            and not self._is_regular()
            and (self.has_halves or self.problem.usable.sum() >= needed - 0.5)
        )

    def along_tree(self) -> Iterator[tuple[str, IntArray]]:
        """(name, GPU of every rank) of the chains laid along the tree, if they fit."""
        replicas = laid(self.problem)
        if replicas is not None:
            name = f"{self.shape.name} along the tree"
            yield name, self._realised(self._along_tree(replicas))

    def solve(self, budget: Budget) -> Iterator[Candidate]:
        """(name, GPU of every rank, whether ended in time)."""
        # The slowest pipeline sets the step; a ring is as slow in two as in more.
        is_time = self.whole.goal.name == "time"
        is_limited = is_time and not self.shape.closed
        # Its time is that of its slowest link: the number of joints matters little, and
        # rings over a large machine take long to stitch.
        in_windows = not (is_time and self.shape.closed)
        params = self.whole.params
        limits = params.joint_limits if is_limited else (None,)
        for most_joints in limits:
            if budget.is_over():
                return
            problem = replace(self.problem, most_joints=most_joints)
            within = budget.anew(params.stitching_time * budget.seconds_left)
            stitched = stitch(
                problem, params, self.whole.seed, within, in_windows=in_windows
            )
            if stitched is None:
                continue
            yield from self._offered(stitched, problem.most_joints, budget)
            return

    def _offered(
        self, stitched: Stitched, most_joints: int | None, budget: Budget
    ) -> Iterator[Candidate]:
        """Placements of a stitching, chains in order last."""
        joints = sum(len(replica) - 1 for replica in stitched.replicas)
        name = f"stitched {self.shape.name}, {joints} joints"
        if most_joints is not None:
            name += f", at most {most_joints} a chain"
        rows = self._along_tree(stitched.replicas)
        if stitched.cut_short:
            yield name, self._realised(rows), False
        yield name, self._realised(self._arranged(rows, budget)), True

    def _fits_in_halves(self) -> bool:
        """Whether the units that do not fit whole fit as two halves."""
        shape = self.shape
        return (
            shape.half_weight > 0
            and int(shape.spare_halves.sum()) // 2 >= shape.missing
            and self._keeps(shape.halves)
        )

    def _keeps(self, ranks: IntArray) -> bool:
        """Whether ranks that must share a leaf domain, or a node, are in one unit."""
        return self.whole.colocation.lie_in(self.shape.leaf_tier, ranks)

    def _is_regular(self) -> bool:
        """Whether leaves hold equally much and domains have equally many children.

        Nestings cover such machines unless chains do not divide what leaves hold.
        """
        shape = self.shape
        if not _is_even(self.topology, shape.leaf_tier, shape.capacity):
            return False
        held = int(shape.capacity[0])
        whole = held // shape.length * len(shape.capacity)
        return shape.length % held == 0 or whole >= len(shape.ranks)

    @cached_property
    def problem(self) -> Stitching:
        """The chains to be stitched, at the prices of their edges."""
        topology, shape = self.topology, self.shape
        lanes, length, _ = shape.ranks.shape
        nearest = topology.tiers[shape.leaf_tier].distance
        steps = [topology.tiers[t].distance - nearest for t in self.outer_tiers]
        # Of many chains some are neighbours that can share a leaf. There are few rings,
        # and to count on it gives dearer placements there.
        counted = shape.lanes and not shape.closed
        shared = shape.lanes[0].weight if counted else 0.0
        return Stitching(
            capacity=np.minimum(shape.capacity, lanes * length),
            parents=[parent_of_domain(topology, t) for t in self.outer_tiers],
            joint_cost=[shape.joint_weight * step for step in steps],
            length=length,
            replicas=lanes,
            shared_gain=shared * steps[0],
            spare_halves=shape.spare_halves if self.has_halves else None,
            half_cost=[shape.half_weight * step for step in steps],
            closed=shape.closed,
            multiples=shape.multiples,
        )

    def _arranged(self, rows: IntArray, budget: Budget) -> IntArray:
        """Chains numbered as lanes."""
        starts = self.shape.length if self.shape.closed else 1
        lanes = Lanes(self.shape.lanes, starts, Distances(*self._leaf_distances()))
        return arrange(rows, lanes, self.whole.params, self.whole.seed, budget)

    def _realised(self, rows: IntArray) -> IntArray:
        """GPU of every rank when the units of each lane lie in these leaves."""
        ranks_of_unit = self.shape.halves if self.has_halves else self.shape.ranks
        leaf_of_rank = np.empty(ranks_of_unit.size, dtype=np.int64)
        leaf_of_rank[ranks_of_unit] = rows[..., None]
        node_of_rank = self._on_nodes(leaf_of_rank, ranks_of_unit.ravel())
        return self.topology.gpus_on(node_of_rank)

    def _on_nodes(self, leaf_of_rank: IntArray, sequence: IntArray) -> IntArray:
        """Node of every rank, the ranks of a leaf in the order of ``sequence``."""
        topology, tier, inner = self.topology, self.shape.leaf_tier, self.shape.inner
        units = [*inner, *[inner[-1]] * len(self.outer_tiers)]
        takes = whole_sets(topology, self.whole.capacity, units)[: tier + 1]
        amounts = share_down(
            topology, takes, np.bincount(leaf_of_rank, minlength=len(takes[-1]))
        )
        order = tree_order(topology)
        leaves = topology.domain_of_node[tier][order]
        by_leaf = self._position(leaves)[leaf_of_rank[sequence]]
        node_of_rank = np.empty(len(sequence), dtype=np.int64)
        node_of_rank[sequence[np.argsort(by_leaf, kind="stable")]] = np.repeat(
            order, amounts[order]
        )
        return node_of_rank

    @staticmethod
    def _position(leaves: IntArray) -> IntArray:
        """Place of each leaf where it first appears in a row of leaves."""
        position = np.empty(int(leaves.max()) + 1, dtype=np.int64)
        position[leaves[::-1]] = np.arange(len(leaves) - 1, -1, -1)
        return position

    def _along_tree(self, replicas: list[Segment]) -> IntArray:
        """Leaf of every unit (or half), chains in tree order."""
        order = tree_order(self.topology)
        position = self._position(
            self.topology.domain_of_node[self.shape.leaf_tier][order]
        )
        rows = [
            [
                leaf
                for fragment in replica
                for _ in range(fragment.length)
                for leaf in (
                    (fragment.leaf, fragment.twin)
                    if self.has_halves
                    else (fragment.leaf,)
                )
            ]
            for replica in replicas
        ]
        return np.array(sorted(rows, key=lambda row: position[row].tolist()))

    def _leaf_distances(self) -> tuple[IntArray, FloatArray]:
        """Domains of each leaf and steps of the distance, from the leaf tier out."""
        tiers = self.topology.tiers
        leaf_tier = self.shape.leaf_tier
        parent = np.arange(len(self.topology.domain_names[leaf_tier]))
        domains, steps = [], []
        for t in range(leaf_tier, len(tiers) - 1):
            if t > leaf_tier:
                parent = parent_of_domain(self.topology, t)[parent]
            domains.append(parent)
            steps.append(tiers[t + 1].distance - tiers[t].distance)
        return np.array(domains), np.array(steps)
