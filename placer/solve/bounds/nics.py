"""NICs of gradient groups against cuts of pipelines.

``q_s(x)`` is the fewest members of a gradient group in a domain with which stage ``s``
alone exposes at most ``x`` seconds of data-parallel time; ``g(x)`` the least pipeline
time of a lane of which every run fits a domain (`crossings`). A placement that exposes
``x`` keeps to ``q_s(x)`` everywhere, so its step takes ``x + g(x)`` or longer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from placer.base.arrays import IntArray
from placer.solve.bounds.crossings import Crossings, Need
from placer.solve.bounds.network.limit import (
    FREE,
    Floor,
    exposed_by_members,
    gradient_groups,
)

if TYPE_CHECKING:
    from placer.cost.step import Step
    from placer.job.model import Job
    from placer.solve.bounds.case import Case
    from placer.solve.bounds.network.ideal import IdealNetwork


@dataclass(frozen=True, eq=False)
class Level:
    """Data-parallel time that a placement may expose, and what it must then obey.

    Attributes
    ----------
    exposed_s : float, s
    members : ndarray, shape (P,)
        Fewest members that a gradient group of each stage must have in every domain
        that it touches.
    need : Need
        Of the runs of a lane.
    """

    exposed_s: float
    members: IntArray
    need: Need


@dataclass(frozen=True, eq=False)
class NicTrade:
    """All compromises of one job whose pipelines leave their scale-up domains.

    Attributes
    ----------
    levels : list of Level
        By exposed time, least first; they ask for less and less, the last for nothing.
    crossings : Crossings
    other_s : float, s
        Fixed time and custom groups.
    """

    levels: list[Level]
    crossings: Crossings
    other_s: float

    @classmethod
    def of(cls, case: Case) -> NicTrade:
        """The compromises on the best network imaginable."""
        step, network = case.step, case.network
        rooms, job = case.room, case.step.model.job
        groups = gradient_groups(job)
        shape = _shape_of_parts(job, network, groups)
        outer = network.fabric.scale_up_tier + 1
        message_s = network.message_from(outer, step.model.volumes.pp_message)
        return cls(
            list(_levels(case, groups, shape, int(rooms.max()))),
            Crossings.of(step, message_s, _sent_s(step, network)),
            step.model.fixed_s + sum(step.exposed_custom_s.values()),
        )

    def least(self, floor: Floor = FREE, *, is_cut: bool = True) -> tuple[float, Level]:
        """(s, level) of the best compromise.

        Parameters
        ----------
        floor : Floor
            What a placement takes for other reasons.
        is_cut : bool
            Whether some lane is known to leave its domain.
        """
        once = 1 if self.crossings.is_open else 2
        fewest = once if is_cut else 0
        pipeline_s: dict[int, float] = {}
        best = inf, 0
        spans = [(0, len(self.levels) - 1)]
        while spans:
            low, high = spans.pop()
            for index in {low, high} - pipeline_s.keys():
                level = self.levels[index]
                lane_s = self.crossings.least_seconds(level.need, fewest)
                pipeline_s[index] = max(floor.pipeline_s, lane_s)
                value = self._above(floor, index) + pipeline_s[index]
                best = min(best, (value, index))
            # Levels ask for less and less, so pipelines between are as fast as that of
            # the last at the most.
            if low + 1 < high and pipeline_s[low] > pipeline_s[high]:
                least = self._above(floor, low + 1) + pipeline_s[high]
                if least < best[0]:
                    middle = (low + high) // 2
                    spans += [(low, middle), (middle, high)]
        return best[0], self.levels[best[1]]

    def _above(self, floor: Floor, index: int) -> float:
        """What a step takes beside its pipeline at a level, s."""
        return self.other_s + max(self.levels[index].exposed_s, floor.exposed_s)


class _PartShape(NamedTuple):
    """How gradient groups lie in the parts that a domain holds whole.

    Attributes
    ----------
    members : int
        Members of a group that one part brings.
    groups : int
        Groups that a part has members of.
    """

    members: int
    groups: int

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


def _levels(
    case: Case, groups: IntArray, shape: _PartShape, room: int
) -> Iterator[Level]:
    members, exposed = exposed_by_members(
        case.step, case.network, groups, room, shape.members
    )
    for seconds in np.unique(exposed):
        enough = exposed <= seconds
        if enough.any(axis=0).all():
            fewest = members[enough.argmax(axis=0)]
            need = Need(shape.room_for(fewest), room)
            yield Level(float(seconds), fewest, need)


def _sent_s(step: Step, network: IdealNetwork) -> float:
    """Seconds of a message of a pipeline on the widest uplink, if that is thin."""
    fabric = network.fabric
    if not fabric.has_thin_leaves:
        return 0.0
    widest = float(fabric.uplink_capacity[fabric.scale_up_tier + 1].max())
    return step.model.volumes.pp_message / widest
