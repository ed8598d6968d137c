"""NICs of gradient groups against cuts of pipelines.

A *lane* is one pipeline group: a rank of every stage. The hops between stages that lie
in different scale-up domains are its *cuts*; between two cuts it *runs* through one
domain. Many members of a gradient group in a domain drive many NICs, and leave it room
for few stages, so for short runs. No placement escapes both:

    step  >=  least over x of  x + g(x)

``q_s(x)`` is the fewest members of a gradient group in a domain with which stage ``s``
alone exposes at most ``x`` seconds of data-parallel time. A placement that exposes
``x`` keeps to ``q_s(x)`` everywhere, so runs are no longer than rooms allow, and
``g(x)`` is the least time of a pipeline with as many cuts. By hand: two stages on nodes
of three. With two members of a group in each node a node has room for one stage, so
each lane is cut once. Shapes: P stages.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf
from typing import NamedTuple

import numpy as np

from placer.base.arrays import FloatArray, IntArray
from placer.cost.schedule import pipeline_times
from placer.cost.step import Step
from placer.job.model import Job
from placer.solve.bounds.case import Case
from placer.solve.bounds.ideal import IdealNetwork
from placer.solve.bounds.limits import (
    FREE,
    Floor,
    exposed_by_members,
    gradient_groups,
    sets_of,
)


class Level(NamedTuple):
    """Data-parallel time that a placement may expose, and what it must then obey."""

    exposed_s: float  # s
    # (P,): fewest members that a gradient group of each stage must have in every domain
    # that it touches.
    members: IntArray
    # Fewest runs of a lane around the ring of stages, 0 where one domain holds it.
    runs: int


@dataclass(frozen=True, eq=False)
class NicTrade:
    """All compromises of one job whose pipelines leave their scale-up domains."""

    # By exposed time, least first; they need less and less, the last nothing.
    levels: list[Level]
    lane_s: FloatArray  # s: least time of a lane with so many runs or more
    other_s: float  # s: fixed time and custom groups

    @classmethod
    def of(cls, case: Case) -> NicTrade:
        """The compromises on the best network imaginable."""
        step, network = case.step, case.network
        outer = network.fabric.scale_up_tier + 1
        message_s = network.fabric.least_message_s(outer, step.model.volumes.pp_message)
        other_s = step.model.fixed_s + sum(step.exposed_custom_s.values())
        return cls([*_levels(case)], lane_seconds(step, message_s), other_s)

    def least(self, floor: Floor = FREE, *, is_cut: bool = True) -> tuple[float, Level]:
        """(s, level) of the best compromise.

        ``floor``: what a placement takes for other reasons. ``is_cut``: whether some
        lane is known to leave its domain.
        """

        def seconds(level: Level) -> float:
            lane_s = self.lane_s[max(level.runs, 2 * is_cut)]
            exposed_s = max(level.exposed_s, floor.exposed_s)
            return self.other_s + exposed_s + max(floor.pipeline_s, float(lane_s))

        best = min(self.levels, key=seconds)
        return seconds(best), best


def lane_seconds(step: Step, message_s: float) -> FloatArray:
    """Least pipeline time of a lane with 0 .. P + 1 runs or more, s.

    A run ends at a hop that takes ``message_s`` or longer. A pipeline of one chunk ends
    one at its last stage at no cost, a closed ring has no single run, and no lane has
    more runs than stages. Numbers of cuts that have too many sets (`sets_of`) are not
    timed: the bound on fewer stands in.
    """
    job = step.model.job
    stages, closed = job.parallelism.pp, job.parallelism.vp > 1
    hops = stages if closed else stages - 1
    plain = step.patterns(step.axes)[0]
    schedule = job.micro_batches, job.parallelism.vp, job.overlap.pp
    found = np.full(stages + 2, -inf)
    found[-1] = inf
    for count in range(hops + 1):
        sets = sets_of(step, hops, count)
        if sets is not None and not (closed and count == 1):
            patterns = np.tile(plain, (len(sets), 1))
            hop = patterns[:, 2 * stages : 3 * stages]
            at = np.arange(len(sets))[:, None], sets
            hop[at] = np.maximum(hop[at], message_s)
            runs = count if closed or not count else count + 1
            found[runs] = pipeline_times(patterns, *schedule).min()
    return np.maximum.accumulate(found)


def fewest_runs(ranks: IntArray, room: int) -> int:
    """Fewest runs around a ring of stages that fit, 0 if it fits whole.

    One more than there are stages if some does not fit. Runs are made as long as they
    can be from every stage in turn, which is best for one of the starts.
    """
    if ranks.max() > room:
        return len(ranks) + 1
    if ranks.sum() <= room:
        return 0
    fewest = len(ranks)
    for start in range(len(ranks)):
        runs, filled = 1, 0
        for more in np.roll(ranks, -start).tolist():
            filled += more
            if filled > room:
                runs, filled = runs + 1, more
        fewest = min(fewest, runs)
    return fewest


def _levels(case: Case) -> Iterator[Level]:
    """What placements obey that expose less and less, by exposed time."""
    job, network = case.step.model.job, case.network
    groups, room = gradient_groups(job), int(case.room.max())
    shape = _shape_of_parts(job, network, groups)
    members, exposed = exposed_by_members(
        case.step, network, groups, room, shape.members
    )
    for seconds in np.unique(exposed):
        enough = exposed <= seconds
        if enough.any(axis=0).all():
            fewest = members[enough.argmax(axis=0)]
            yield Level(
                float(seconds), fewest, fewest_runs(shape.room_for(fewest), room)
            )


class _PartShape(NamedTuple):
    """How gradient groups lie in the parts that a domain holds whole."""

    members: int  # members of a group that one part brings
    groups: int  # groups that a part has members of

    def room_for(self, members: IntArray) -> IntArray:
        """Ranks of a stage that a domain holds with so many of each group."""
        parts = -(-members // self.members)
        return np.asarray(parts * self.members * self.groups)


def _shape_of_parts(job: Job, network: IdealNetwork, groups: IntArray) -> _PartShape:
    """The shape of all parts; that of single ranks where parts differ."""
    scale_up = network.fabric.scale_up_tier
    single = _PartShape(1, 1)
    if scale_up < 0:
        return single
    _, first, part, sizes = np.unique(
        network.label[scale_up],
        return_index=True,
        return_inverse=True,
        return_counts=True,
    )
    stage = job.parallelism.coordinates["pp"]
    several = (stage != stage[first][part]).any()
    if several or (sizes != sizes[0]).any():
        return single
    key = np.arange(len(groups))[:, None] * len(sizes) + part[groups]
    counts = np.unique(key, return_counts=True)[1]
    if (counts != counts[0]).any():
        return single
    return _PartShape(int(counts[0]), int(sizes[0] // counts[0]))
