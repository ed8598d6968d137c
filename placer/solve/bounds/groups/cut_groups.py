"""Groups of an axis that placements cut: how many, and what one costs.

A group that is cut has no more than half of its members in some domain, so its stage
waits for so few NICs.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from placer.base.arrays import IntArray
from placer.solve.bounds.network.best_network import Leaving
from placer.solve.bounds.network.limit import Limit, slow_pipelines_s

if TYPE_CHECKING:
    from placer.cost.step import Step
    from placer.solve.bounds.network.ideal import IdealNetwork


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
    """

    step: Step
    network: IdealNetwork
    axis: str
    members: IntArray
    room: IntArray

    @property
    def is_certain(self) -> bool:
        """Whether every placement cuts a group."""
        return self.network.leaves_scale_up(self.members) or self.fewest > 0

    @cached_property
    def fewest(self) -> int:
        """Groups that are cut at the least."""
        groups, size = self.members.shape
        return int(max(0, groups - (self.room // size).sum()))

    @cached_property
    def pipeline_s(self) -> float:
        """Least time of the slowest pipeline of a placement that cuts a group, s."""
        split = Leaving.of(self.network, self.network.fabric.scale_up_tier + 1)
        half = max(1, self.members.shape[1] // 2)
        limited = split.with_limits(Limit(self.members, half))
        slow = self.step.model.step_on(limited).stage_times[self.axis]
        return float(slow_pipelines_s(self.step, self.axis, slow).min())
