"""A case of the bound on the step time: what is supposed of all its placements."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from placer.base.arrays import IntArray
from placer.solve.bounds.network.best import Leaving, best_network
from placer.solve.bounds.network.limit import Limit, slow_pipelines_s
from placer.solve.problem.params import Params

if TYPE_CHECKING:
    from placer.cost.step import Step, StepModel
    from placer.solve.bounds.network.ideal import IdealNetwork
    from placer.solve.problem.colocation import Colocation


@dataclass(frozen=True, eq=False)
class Case:
    """Placements whose ranks stay together as a network says.

    Attributes
    ----------
    step : Step
        On the network: no placement of the case has a shorter one.
    """

    step: Step
    network: IdealNetwork
    params: Params = field(default_factory=Params)

    @classmethod
    def of(
        cls,
        model: StepModel,
        colocation: Colocation,
        params: Params | None = None,
        label: IntArray | None = None,
    ) -> Case:
        """All placements of a colocation, or those that tie ranks as ``label`` does."""
        network = best_network(model, colocation, label)
        return cls(model.step_on(network), network, params or Params())

    @cached_property
    def room(self) -> IntArray:
        """Ranks that each scale-up domain may hold; single GPUs where there is none."""
        tier, topology = self.network.fabric.scale_up_tier, self.network.fabric.topology
        if tier < 0:
            return np.ones(1, dtype=np.int64)
        capacity = self.network.capacity_of_node
        return np.bincount(topology.domain_of_node[tier], capacity).astype(np.int64)

    def members(self, axis: str) -> IntArray:
        """Groups of an axis; shape (g, n)."""
        return self.step.model.job.parallelism.ranks_of_group[axis]

    def cut_s(self, axis: str) -> float:
        """Least time of the slowest pipeline where a group of an axis is cut, s.

        It has half of its members in some domain at the most, and so many NICs.
        """
        members = self.members(axis)
        split = Leaving.of(self.network, self.network.fabric.scale_up_tier + 1)
        limited = split.with_limits(Limit(members, max(1, members.shape[1] // 2)))
        slow = self.step.model.step_on(limited).stage_times[axis]
        return float(slow_pipelines_s(self.step, axis, slow).min())
