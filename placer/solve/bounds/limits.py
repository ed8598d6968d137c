"""What limits groups on an otherwise ideal network, and what domains hold of them.

A node of a node-contiguous launch holds one run of consecutive ranks, of any length up
to its GPUs ``g``, and a run shorter than ``g`` lies in one of ``g`` ranks. So,

    members of a group on a node  <=  its most members among any g consecutive ranks
    members of a group in a domain  <=  the sum of that over the nodes of the domain
    domains that a group touches  >=  fewest whose sums reach its size
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from math import comb
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from placer.base.arrays import FloatArray, IntArray
from placer.cost.gradients import SyncTime
from placer.cost.schedule import WALKED
from placer.cost.stage_times import StageTime
from placer.cost.step import Step, StepModel, distinct_rows
from placer.job.model import Job
from placer.solve.bounds import WORK

if TYPE_CHECKING:
    from placer.solve.bounds.ideal import IdealNetwork


class Floor(NamedTuple):
    """Seconds of a placement, of two kinds that add up."""

    pipeline_s: float = 0.0  # s: of the slowest replica
    exposed_s: float = 0.0  # s: data-parallel time


FREE = Floor()


@dataclass(frozen=True, eq=False)
class Limit:
    """What limits some groups that are otherwise at their best."""

    groups: IntArray  # (g, n)
    # Most members in the domain that has the fewest; with fewer than ``n`` the groups
    # leave their scale-up domain.
    nics: int
    # s/B: least seconds that a byte of a ring takes on an uplink.
    uplink_pace: float = 0.0
    # s: least seconds that an all-to-all takes on an uplink, without latency.
    exchange_s: float = 0.0
    # Outermost tier whose domains the groups are known to leave; -1 for none.
    far: int = -1

    @property
    def leaves(self) -> bool:
        """Whether the groups are known to leave their scale-up domain."""
        return self.far >= 0 or self.nics < int(self.groups.shape[1])

    def spread(self, fewest: IntArray) -> IntArray:
        """Fewest single GPUs and domains of each tier, when others have so few."""
        several = min(2, self.groups.shape[1])
        outside = np.arange(len(fewest)) < self.far + 2
        return np.asarray(np.maximum(fewest, np.where(outside, several, 1)))


def gradient_groups(job: Job) -> IntArray:
    """Groups that reduce gradients together; shard groups where there are some."""
    members = job.parallelism.ranks_of_group["dp_cp"]
    size = members.shape[1]
    return members.reshape(-1, job.data_parallel.shard_members(size, size))


def slow_sync(model: StepModel, network: IdealNetwork, *limits: Limit) -> SyncTime:
    """Data-parallel times of all stages with some groups limited."""
    return model.sync(network.with_limits(*limits))


def exposed_by_stage(step: Step, network: IdealNetwork, *limits: Limit) -> list[float]:
    """Data-parallel time exposed if one stage alone is limited, each in turn, s."""
    slow = replace(step, sync=slow_sync(step.model, network, *limits))
    slowed = map(
        partial(step.with_stage_of, slow), range(step.model.job.parallelism.pp)
    )
    return [one.exposed_data_parallel_s for one in slowed]


def exposed_by_members(
    step: Step,
    network: IdealNetwork,
    groups: IntArray,
    room: int,
    grain: int = 1,
) -> tuple[IntArray, FloatArray]:
    """Members of a gradient group in some domain, (M,), and what they expose, (M, P) s.

    That is exposed if one stage in turn has a group with no more of them in the domain
    with the fewest. The last number is as many as there may be, or as make no
    difference.

    ``step``: on ``network``. ``groups``: shape (g, n). ``room``: ranks that the largest
    domain may hold. ``grain``: members that are always together.
    """
    # In several domains the one with the fewest holds half of a group at most.
    size, members, exposed = int(groups.shape[1]), [], []
    free = [step.exposed_data_parallel_s] * step.model.job.parallelism.pp
    for few in range(grain, min(size // 2, room) + 1, grain):
        members.append(few)
        exposed.append(exposed_by_stage(step, network, Limit(groups, few)))
        if exposed[-1] == free:
            break
    else:
        members.append(size)
        exposed.append(free)
    return np.array(members), np.array(exposed)


def slow_pipelines_s(step: Step, axis: str, slow: StageTime) -> FloatArray:
    """Pipeline times when one stage has the slow time of an axis, each in turn, s.

    The pipelines of all stages are timed together.
    """
    slower = replace(step, stage_times={**step.stage_times, axis: slow})
    patterns, start = [], [0]
    for stage in range(step.model.job.parallelism.pp):
        slowed = step.with_stage_of(slower, stage)
        rows, _ = distinct_rows(slowed.patterns(step.axes))
        patterns.append(rows)
        start.append(start[-1] + len(rows))
    seconds = step.pipelines_s(np.concatenate(patterns))
    return np.asarray(np.maximum.reduceat(seconds, start[:-1]))


def sets_of(step: Step, positions: int, chosen: int) -> IntArray | None:
    """All ways to choose positions along a pipeline, a row each.

    None where to walk a pipeline for each would take too long.
    """
    axes = step.model.job.parallelism
    walk = 2 * WALKED * axes.pp**2 * axes.vp
    if comb(positions, chosen) * walk > WORK:
        return None
    return np.array([*combinations(range(positions), chosen)], dtype=np.int64)


def added_by_stage(
    step: Step, left_out: str = ""
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Forward, backward and hop times that axes add to a replica; shape (1, P), s."""
    forward, backward, hop = np.zeros((3, 1, step.model.job.parallelism.pp))
    for axis, time in step.stage_times.items():
        if axis == "pp":
            hop = time.forward[:1]
        elif axis != left_out:
            forward = forward + time.forward[:1]
            backward = backward + time.backward[:1]
    return forward, backward, hop


Counts = tuple[IntArray, IntArray, list[IntArray]]


def fewest_domains(network: IdealNetwork, members: IntArray) -> Counts:
    """Fewest domains that hold a row of ``members``, and most in each domain.

    Of the first, shape (T + 1,), entry 0 counts single GPUs, entry ``t + 1`` domains of
    tier ``t``. The second has scale-up domains, the fullest first, the third all of
    each tier.
    """
    fewest, most = [num_members := members.shape[1]], list[IntArray]()
    room = np.ones(1, dtype=np.int64)
    topology, scale_up = network.fabric.topology, network.fabric.scale_up_tier
    for t, capacity in enumerate(network.capacities):
        inside = most_alike(network.label[t][members]) * (
            capacity // network.smallest_sets[t]
        )
        if t > 0:
            around = topology.domain_around[t - 1]
            children = np.bincount(around, most[-1], len(inside)).astype(np.int64)
            inside = np.minimum(inside, children)
        if network.in_runs and t in network.run_tiers:
            gpus = np.bincount(topology.domain_of_node[t], topology.gpus_of_node)
            inside = np.minimum(inside, most_in_runs(members, gpus))
        if network.replica is not None:
            of_one = most_alike(network.replica[members])
            inside = np.minimum(inside, network.most_replicas[t] * of_one)
        if network.crowd is not None and t <= scale_up:
            near = network.crowd(members, network.capacities[scale_up])
            inside = np.minimum(inside, near if t == scale_up else near.max())
        most.append(inside)
        descending = np.sort(inside)[::-1]
        filled = np.cumsum(descending)
        fewest.append(int(np.searchsorted(filled, num_members)) + 1)
        if t == scale_up:
            room = descending
    # A case that no placement meets may leave too little room: any number holds.
    fewest[-1] = 1
    return np.array(fewest), room, most


def most_in_runs(members: IntArray, lengths: IntArray) -> IntArray:
    """Most members of one row among so many consecutive ranks; shape of ``lengths``.

    ``k`` members fit a run of ``g`` ranks where the first and the last of ``k``
    neighbours in a row are less than ``g`` apart: found by bisection over ``k``.
    """
    in_order = np.sort(members, axis=1)
    sizes, place = np.unique(lengths.astype(np.int64), return_inverse=True)
    most = []
    for size in sizes.tolist():
        low, high = min(size, 1), min(size, in_order.shape[1])
        while low < high:
            count = (low + high + 1) // 2
            apart = in_order[:, count - 1 :] - in_order[:, : 1 - count]
            low, high = (count, high) if (apart < size).any() else (low, count - 1)
        most.append(low)
    return np.array(most, dtype=np.int64)[place]


def most_alike(values: IntArray) -> int:
    """How often a value comes in a row, at the most; found like `most_in_runs`."""
    in_order = np.sort(values, axis=1)
    low, high = 1, in_order.shape[1]
    while low < high:
        count = (low + high + 1) // 2
        alike = in_order[:, count - 1 :] == in_order[:, : 1 - count]
        low, high = (count, high) if alike.any() else (low, count - 1)
    return low
