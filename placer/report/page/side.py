"""One placement of a report: its plan, and what the cost model says of it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from placer.cost.step import Step, StepModel
from placer.placement.build import placement_of_plan
from placer.placement.inputs import Inputs
from placer.placement.placement import Placement
from placer.placement.plan import Plan


@dataclass(frozen=True, eq=False)
class Side:
    """A placement before or after."""

    name: str  # what the reader calls it
    plan: Plan
    # Its machine and job; None in older plans, which then show no times of groups,
    # links and stages.
    inputs: Inputs | None

    @cached_property
    def placement(self) -> Placement | None:
        """The placement on the machine; None where that is not known."""
        if self.inputs is None:
            return None
        return placement_of_plan(self.plan, self.inputs.machine)

    @cached_property
    def step(self) -> Step | None:
        """Its cost; None where machine or times are not known."""
        if self.inputs is None or self.placement is None:
            return None
        if self.inputs.job.model is None and not self.inputs.job.groups:
            return None
        model = StepModel(self.inputs.machine, self.inputs.job)
        return model.step(self.placement.gpu_of_rank)
