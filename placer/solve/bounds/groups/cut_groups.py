"""How many groups of an axis are cut by all placements.

Where c groups are cut, g of one stage of one replica, some of the ``dp`` replicas has
``k = ceil(ceil(c / g) / dp)`` stages with one. Its pipeline is as slow as with the k
stages that matter least, whose groups have no more than half of them in some domain.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import ceil
from typing import TYPE_CHECKING

from placer.arrays import IntArray
from placer.solve.bounds.network.best_network import Leaving
from placer.solve.bounds.network.limit import Limit, slow_pipeline_s

if TYPE_CHECKING:
    from placer.cost.stage_times import StageTime
    from placer.cost.step import Step
    from placer.job.axes import Parallelism
    from placer.solve.bounds.network.ideal import IdealNetwork
    from placer.solve.problem.params import Params

# Axes of which groups inside domains of each outer tier are a case of their own.
BY_TIER = ("tp", "cp")


@dataclass(frozen=True, eq=False)
class CutGroups:
    """Groups of an axis, and what keeps scale-up domains from holding them whole.

    Attributes
    ----------
    network : IdealNetwork
        What the step is priced on.
    members : ndarray, shape (g, n)
    room : ndarray, shape (D,)
        Ranks that each scale-up domain may hold.
    far : int
        Tier of which a group leaves its domain; the scale-up tier if no more is known.
    """

    step: Step
    network: IdealNetwork
    axis: str
    members: IntArray
    room: IntArray
    params: Params
    far: int

    @property
    def is_certain(self) -> bool:
        """Whether every placement cuts a group."""
        return self.network.leaves_scale_up(self.members) or self.fewest > 0

    @property
    def where(self) -> str:
        """Name of the domains that a group leaves."""
        if self.far == self.network.fabric.scale_up_tier:
            return "scale-up domain"
        return self.step.model.topology.tiers[self.far].name

    @cached_property
    def fewest(self) -> int:
        """Groups that are cut at the least."""
        groups, size = self.members.shape
        return int(max(0, groups - (self.room // size).sum()))

    @cached_property
    def pipeline_s(self) -> float:
        """Least time of the slowest pipeline of a placement that cuts a group, s."""
        scale_up = self.network.fabric.scale_up_tier
        stages = max(1, self._stages(self.step.model.job.parallelism))
        slow = [(stages, self._split(-1))]
        if self.far > scale_up:
            slow.append((1, self._split(self.far)))
        most = self.params.slow_sets
        return max(
            slow_pipeline_s(self.step, self.axis, one, n, most) for n, one in slow
        )

    def _split(self, far: int) -> StageTime:
        """Least time of a stage with a group that leaves its scale-up domain, s.

        Parameters
        ----------
        far : int
            Tier of which it leaves its domain; -1 if that is not known.
        """
        split = Leaving.of(self.network, self.network.fabric.scale_up_tier + 1)
        half = max(1, self.members.shape[1] // 2)
        limited = split.with_limits(Limit(self.members, half, far=far))
        return self.step.model.step_on(limited).stage_times[self.axis]

    def _stages(self, axes: Parallelism) -> int:
        """Stages of some replica that have one of the groups that are cut."""
        stage, replica = (axes.coordinates[name][self.members] for name in ("pp", "dp"))
        slots, groups = axes.pp * axes.dp, len(self.members)
        is_apart = (stage != stage[:, :1]).any() or (replica != replica[:, :1]).any()
        if is_apart or groups % slots:
            return min(self.fewest, 1)
        stages: int = ceil(Fraction(self.fewest * slots, groups * axes.dp))
        return stages
