"""NICs of gradient groups against cuts of pipelines.

``q_s(x)`` is the fewest members, and ``u_s(x)`` the slowest pace, with which stage
``s`` alone exposes at most ``x`` seconds of data-parallel time; ``g(x)`` the least
pipeline time of a lane of which every run fits a domain. A placement that exposes ``x``
keeps to ``q_s(x)`` everywhere, and on an uplink some stage is at ``u_s(x)`` at the
most. So its step takes ``x + g(x)`` or longer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from placer.base.arrays import FloatArray, IntArray
from placer.solve.bounds.case import Case
from placer.solve.bounds.gradients.crossings import Crossings, Need
from placer.solve.bounds.network.limit import (
    FREE,
    Floor,
    Limit,
    exposed_by_members,
    exposed_by_stage,
    gradient_groups,
)
from placer.solve.problem.colocation import are_together

if TYPE_CHECKING:
    from placer.cost.step import Step, StepModel
    from placer.job.model import Job
    from placer.solve.bounds.network.ideal import IdealNetwork
    from placer.solve.problem.colocation import Colocation
    from placer.solve.problem.params import Params

ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class Level:
    """Data-parallel time that a placement may expose, and what it must then obey.

    Attributes
    ----------
    exposed_s : float, s
    members : ndarray, shape (P,)
        Fewest members that a gradient group of each stage must have in every domain
        that it touches.
    pace : ndarray, shape (P,), s/B
        Slowest pace of a ring of each stage, inf where rings may keep inside a domain.
    need : Need
        Of the runs of a lane.
    """

    exposed_s: float
    members: IntArray
    pace: FloatArray
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
    rings : int
        Gradient groups of a stage that are together in a domain.
    """

    levels: list[Level]
    crossings: Crossings
    other_s: float
    rings: int

    @classmethod
    def of(cls, case: Case) -> NicTrade:
        """The compromises on the best network imaginable."""
        step, network = case.step, case.network
        rooms, params, job = case.room, case.params, case.step.model.job
        groups = gradient_groups(job)
        shape = _shape_of_parts(job, network, groups)
        outer = network.fabric.scale_up_tier + 1
        message_s = network.message_from(outer, step.model.volumes.pp_message)
        return cls(
            list(_levels(case, groups, shape, int(rooms.max()))),
            Crossings.of(step, message_s, params.cut_sets, _sent_s(step, network)),
            step.model.fixed_s + sum(step.exposed_custom_s.values()),
            shape.groups,
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


def nic_trade(
    model: StepModel,
    colocation: Colocation,
    params: Params | None = None,
) -> NicTrade | None:
    """What pipelines that leave scale-up domains trade for NICs; None if none may.

    Parameters
    ----------
    model, colocation, params
        As for `time_bound`.
    """
    scale_up = model.fabric.scale_up_tier
    axes = model.job.parallelism
    if model.job.model is None or axes.pp == 1:
        return None
    if not model.fabric.can_leave_scale_up:
        return None
    if are_together(colocation.label[scale_up], axes.ranks_of_group["pp"]):
        return None
    return NicTrade.of(Case.of(model, colocation, params))


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


def _of_experts(
    case: Case, shape: _PartShape, groups: IntArray
) -> Callable[[int], Sequence[Limit]]:
    """What holds expert gradients back where a gradient group has so few members.

    Where every part has members of all gradient groups of its stage, those of experts
    and others, a domain with few of one kind has few of the other.
    """
    job = case.step.model.job
    axes, experts = job.parallelism, job.parallelism.ranks_of_group["edp"]
    of_part = _shape_of_parts(job, case.network, experts)
    held, every = (shape.groups, of_part.groups), (len(groups), len(experts))
    if axes.ep == 1 or held != tuple(number // axes.pp for number in every):
        return lambda _few: ()
    return lambda few: [Limit(experts, few // shape.members * of_part.members)]


def _levels(
    case: Case, groups: IntArray, shape: _PartShape, room: int
) -> Iterator[Level]:
    network = case.network
    members, by_members = exposed_by_members(
        case.step,
        network,
        groups,
        room,
        shape.members,
        _of_experts(case, shape, groups),
    )
    paces, by_pace = _by_pace(case, groups, shape)
    fabric, stages = network.fabric, by_pace.shape[1]
    whole = int(shape.room_for(np.array([groups.shape[1]]))[0])
    for seconds in np.unique(np.concatenate((by_members.ravel(), by_pace.ravel()))):
        enough = by_members <= seconds
        # Paces rise, and with them the time.
        turns = (by_pace <= seconds).sum(axis=0)
        if not enough.any(axis=0).all() or (whole > room and not turns.all()):
            continue
        fewest = members[enough.argmax(axis=0)]
        # Of groups on one uplink those that drive few NICs are the slowest, and as slow
        # as all their bytes make it.
        one_nic = 1 / fabric.bandwidth[fabric.scale_up_tier + 1 :].max()
        pace = np.maximum(np.append(0.0, paces)[turns], one_nic / fewest)
        if whole <= room or not fabric.has_thin_leaves:
            pace = np.full(stages, inf)
        # Where not one ring may leave a domain a stage is whole there.
        ranks = np.where(turns > 0, shape.room_for(fewest), whole)
        longest = np.full(stages, stages)
        need = Need(ranks, longest, room, turns, whole)
        yield Level(float(seconds), fewest, pace, need)


def _by_pace(
    case: Case, groups: IntArray, shape: _PartShape
) -> tuple[FloatArray, FloatArray]:
    """Paces on the widest uplink (P,), and seconds exposed if one stage is as slow.

    A pace for every number of stages whose rings may share an uplink of a scale-up
    domain, and a row of seconds for each, (P, P). One that carries what all its GPUs
    send holds no ring back.
    """
    step, fabric, size = case.step, case.network.fabric, int(groups.shape[1])
    stages = step.model.job.parallelism.pp
    if not fabric.has_thin_leaves:
        return np.zeros(stages), np.full((stages, stages), step.exposed_data_parallel_s)
    widest = fabric.uplink_capacity[fabric.scale_up_tier + 1].max()
    paces = np.arange(1, stages + 1) * shape.groups / widest
    limits = (Limit(groups, size, pace) for pace in paces.tolist())
    exposed = [exposed_by_stage(step, case.network, limit) for limit in limits]
    return paces, np.array(exposed)


def _sent_s(step: Step, network: IdealNetwork) -> float:
    """Seconds of a message of a pipeline on the widest uplink, if that is thin."""
    fabric = network.fabric
    if not fabric.has_thin_leaves:
        return 0.0
    widest = float(fabric.uplink_capacity[fabric.scale_up_tier + 1].max())
    return step.model.volumes.pp_message / widest
