"""What is known to limit groups on an otherwise ideal network."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from placer.base.arrays import FloatArray, IntArray
from placer.cost.gradients import SyncTime
from placer.cost.stage_times import StageTime
from placer.cost.step import Step, StepModel, distinct_rows
from placer.job.model import Job

if TYPE_CHECKING:
    from placer.solve.bounds.network.ideal import IdealNetwork


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
    slow, found = slow_sync(step.model, network, *limits), []
    for stage in range(step.model.job.parallelism.pp):
        slowed = with_slow_stage(step, slow, stage)
        found.append(slowed.exposed_data_parallel_s)
    return found


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


def with_slow_stage(step: Step, slow: SyncTime, stage: int) -> Step:
    """The step when a stage has slow data-parallel times."""
    base = step.sync
    if base is None:
        return step
    changed = {}
    for name in ("reduce", "gather", "again_reduce"):
        changed[name] = getattr(base, name).copy()
        changed[name][stage] = getattr(slow, name)[stage]
    bucket = base.first_bucket if stage else slow.first_bucket
    return replace(step, sync=replace(base, **changed, first_bucket=bucket))


def slow_pipelines_s(step: Step, axis: str, slow: StageTime) -> FloatArray:
    """Pipeline times when one stage has the slow time of an axis, each in turn, s.

    The pipelines of all stages are timed together.
    """
    axes = step.axes
    patterns, start = [], [0]
    for stage in range(step.model.job.parallelism.pp):
        rows, _ = distinct_rows(with_slow_axis(step, axis, slow, stage).patterns(axes))
        patterns.append(rows)
        start.append(start[-1] + len(rows))
    seconds = step.pipelines_s(np.concatenate(patterns))
    return np.asarray(np.maximum.reduceat(seconds, start[:-1]))


def with_slow_axis(step: Step, axis: str, slow: StageTime, stage: int) -> Step:
    """The step when a stage of one replica has the slow time of ``axis``."""
    time = step.stage_times[axis]
    forward, backward = time.forward.copy(), time.backward.copy()
    forward[0, stage] = slow.forward[0, stage]
    backward[0, stage] = slow.backward[0, stage]
    times = {
        **step.stage_times,
        axis: replace(time, forward=forward, backward=backward),
    }
    return replace(step, stage_times=times)
