"""Placements whose pipelines are stitched together over fragmented domains."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from placer.placement.placement import Placement
from placer.solve.fill import tree_order
from placer.solve.parts import Parts, node_capacity, parent_of_domain
from placer.solve.replica_order import MOST_REPLICAS, ReplicaTour

if TYPE_CHECKING:
    from placer.job.model import Job
    from placer.solve.objective import Objective
    from placer.solve.stitch import Segment, Stitching
    from placer.topology.model import Topology

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]

# Joints a replica may have, tried in turn when the slowest replica sets the cost.
JOINT_LIMITS = (1, 2, 3, None)
# Beyond this many integers the program takes minutes and gigabytes.
MOST_JOINT_VARIABLES = 50_000


class Units(NamedTuple):
    """Stages of replicas as units that stay in one leaf domain.

    Attributes
    ----------
    size : int
        Ranks of a unit.
    stages, replicas : int
    ranks : ndarray, shape (replicas, stages, size)
    """

    size: int
    stages: int
    replicas: int
    ranks: IntArray


def stitched_pipelines(
    topology: Topology,
    job: Job,
    parts: Parts,
    goal: Objective,
    time_limit: float,
    seed: int,
) -> Iterator[tuple[str, IntArray, bool]]:
    """(name, GPU of every rank, whether solved to the end) of stitched placements.

    Nothing when the job has no pipeline, when its stages do not fit a leaf domain
    whole, on a machine of equal domains (nestings cover those) or when the program
    would be too large.
    """
    leaf_tier = _leaf_tier(topology, goal)
    units = _units(job)
    if units is None or not _keeps_parts(parts, units, leaf_tier):
        return
    from placer.solve.stitch import stitch

    capacity = _leaf_capacity(topology, parts, units, leaf_tier)
    if _regular(topology, leaf_tier, capacity):
        return
    if _too_large(topology, units, leaf_tier):
        return
    limits = JOINT_LIMITS if goal.name == "time" else (None,)
    for most_joints in limits:
        problem = _problem(topology, goal, units, leaf_tier, capacity, most_joints)
        stitched = stitch(problem, time_limit, seed)
        if stitched is not None:
            at_most = (
                "" if most_joints is None else f", at most {most_joints} a replica"
            )
            node_of_rank = _realise(
                topology, parts, units, leaf_tier, stitched.replicas, seed
            )
            placement = Placement.on_nodes(topology, node_of_rank)
            joints = sum(len(replica) - 1 for replica in stitched.replicas)
            name = f"stitched pipelines, {joints} joints{at_most}"
            yield name, placement.gpu_of_rank, stitched.proved
            return


def _leaf_tier(topology: Topology, goal: Objective) -> int:
    """Largest tier inside which a hop costs the least."""
    if goal.name == "time":
        return max(topology.scale_up_tier, 0)
    nearest = topology.tiers[0].distance
    last = 0
    while (
        last + 2 < len(topology.tiers) and topology.tiers[last + 1].distance == nearest
    ):
        last += 1
    return last


def _units(job: Job) -> Units | None:
    """All ranks of one stage of one replica (of one expert replica) as a unit."""
    axes = job.parallelism
    if axes.pp == 1:
        return None
    replica = axes.coordinates["edp" if axes.ep > 1 else "dp"]
    replicas = int(replica.max()) + 1
    stage = axes.coordinates["pp"]
    order = np.lexsort((np.arange(axes.world_size), stage, replica))
    size = axes.world_size // (replicas * axes.pp)
    return Units(size, axes.pp, replicas, order.reshape(replicas, axes.pp, size))


def _keeps_parts(parts: Parts, units: Units, leaf_tier: int) -> bool:
    """Whether ranks that must share a leaf domain are in the same unit."""
    label = parts.label[leaf_tier]
    unit_of_rank = np.empty(len(label), dtype=np.int64)
    unit_of_rank[units.ranks] = np.arange(units.replicas * units.stages).reshape(
        units.replicas, units.stages, 1
    )
    first = np.unique(label, return_index=True)[1]
    return bool((unit_of_rank == unit_of_rank[first][label]).all())


def _leaf_capacity(
    topology: Topology, parts: Parts, units: Units, leaf_tier: int
) -> IntArray:
    """Units that each leaf domain can hold."""
    ranks = node_capacity(topology, parts.block)
    inside = np.bincount(topology.domain_of_node[leaf_tier], ranks).astype(np.int64)
    return inside // units.size


def _regular(topology: Topology, leaf_tier: int, capacity: IntArray) -> bool:
    """Whether leaves hold equally much and domains have equally many children."""
    if len(np.unique(capacity)) > 1:
        return False
    return all(
        len(np.unique(np.bincount(parent_of_domain(topology, t)))) == 1
        for t in range(leaf_tier + 1, len(topology.tiers))
    )


def _too_large(topology: Topology, units: Units, leaf_tier: int) -> bool:
    """Whether the program would have too many joint variables to be solved in time."""
    domains = sum(len(names) for names in topology.domain_names[leaf_tier + 1 :])
    return domains * units.stages**2 // 4 > MOST_JOINT_VARIABLES


def _problem(
    topology: Topology,
    goal: Objective,
    units: Units,
    leaf_tier: int,
    capacity: IntArray,
    most_joints: int | None,
) -> Stitching:
    from placer.solve.stitch import Stitching

    outer = range(leaf_tier + 1, len(topology.tiers))
    nearest = topology.tiers[leaf_tier].distance
    weight = goal.weights.get("pp", 0.0) * units.size
    joint_steps = [topology.tiers[t].distance - nearest for t in outer] or [0.0]
    return Stitching(
        capacity=np.minimum(capacity, units.stages * units.replicas),
        parents=[parent_of_domain(topology, t) for t in outer]
        or [np.zeros(len(capacity), dtype=np.int64)],
        joint_cost=[weight * step for step in joint_steps],
        length=units.stages,
        replicas=units.replicas,
        shared_gain=goal.weights.get("dp", 0.0) * units.size * joint_steps[0],
        most_joints=most_joints,
    )


def _realise(
    topology: Topology,
    parts: Parts,
    units: Units,
    leaf_tier: int,
    replicas: list[Segment],
    seed: int,
) -> IntArray:
    """Node of every rank: replicas numbered along a short tour, leaves filled."""
    leaf = _along_tree(topology, leaf_tier, replicas)
    if len(replicas) <= MOST_REPLICAS:
        tour = ReplicaTour(leaf, *_leaf_distances(topology, leaf_tier))
        tour.improve(seed)
        leaf = tour.leaf
    room = node_capacity(topology, parts.block)
    node_of_rank = np.empty(units.ranks.size, dtype=np.int64)
    for domain in np.unique(leaf):
        ranks = units.ranks[leaf == domain].ravel()
        nodes = np.flatnonzero(topology.domain_of_node[leaf_tier] == domain)
        node_of_rank[ranks] = np.repeat(nodes, room[nodes])[: len(ranks)]
    return node_of_rank


def _along_tree(
    topology: Topology, leaf_tier: int, replicas: list[Segment]
) -> IntArray:
    """Leaf of every stage, replicas in tree order; shape (replicas, stages)."""
    order = tree_order(topology)
    leaves = topology.domain_of_node[leaf_tier][order]
    position = np.empty(int(leaves.max()) + 1, dtype=np.int64)
    position[leaves[::-1]] = np.arange(len(leaves) - 1, -1, -1)
    rows = [[piece.leaf for piece in r for _ in range(piece.length)] for r in replicas]
    return np.array(sorted(rows, key=lambda row: position[row].tolist()))


def _leaf_distances(topology: Topology, leaf_tier: int) -> tuple[IntArray, FloatArray]:
    """Domains of each leaf and the steps of the distance, from the leaf tier out."""
    parent = np.arange(len(topology.domain_names[leaf_tier]))
    domains, steps = [], []
    for t in range(leaf_tier, len(topology.tiers) - 1):
        if t > leaf_tier:
            parent = parent_of_domain(topology, t)[parent]
        domains.append(parent)
        steps.append(topology.tiers[t + 1].distance - topology.tiers[t].distance)
    return np.array(domains), np.array(steps)
