"""What a search minimises: predicted step time, or hop cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from placer.base.arrays import IntArray
from placer.base.errors import InputError, Problem
from placer.base.naming import named
from placer.cost.hop_cost import HopCost
from placer.cost.step import StepModel
from placer.job.model import Job
from placer.topology.machine import Domains

# For the order in which nestings are tried when the objective is time: what an edge of
# an axis is worth, a decade an axis, as exposed cost ranks them (tensor parallel
# collectives are waited for, data-parallel ones mostly hidden). Never part of a value
# or a bound.
TIME_WEIGHTS = {
    "tp": 4000.0,
    "cp": 400.0,
    "ep": 64.0,
    "pp": 40.0,
    "dp": 4.0,
    "edp": 4.0,
}


class Objective(Protocol):
    """A cost of placements, to be minimised."""

    @property
    def name(self) -> str:
        """``time`` or ``hop-cost``."""

    @property
    def weights(self) -> Mapping[str, float]:
        """Worth of an edge of each axis, to rank nestings."""

    def value(self, gpu_of_rank: IntArray) -> float:
        """Cost of a placement."""

    def traffic_s(self, gpu_of_rank: IntArray) -> float:
        """What a placement sends in all, s, to compare those of equal value."""


@dataclass(frozen=True, eq=False)
class TimeObjective:
    """Predicted step time, s."""

    model: StepModel

    @property
    def name(self) -> str:
        """``time``."""
        return "time"

    @property
    def weights(self) -> Mapping[str, float]:
        """Worth of an edge of each axis."""
        return TIME_WEIGHTS

    def value(self, gpu_of_rank: IntArray) -> float:
        """Step time of a placement, s."""
        return self.model.step(gpu_of_rank).step_time_s

    def traffic_s(self, gpu_of_rank: IntArray) -> float:
        """Seconds that all transfers of a step take, one after the other."""
        return self.model.step(gpu_of_rank).traffic_s


@dataclass(frozen=True, eq=False)
class HopCostObjective:
    """Sum of weight x distance over the job's edges."""

    hops: HopCost
    weights: Mapping[str, float]

    @property
    def name(self) -> str:
        """``hop-cost``."""
        return "hop-cost"

    def value(self, gpu_of_rank: IntArray) -> float:
        """Hop cost of a placement."""
        return self.hops.cost(gpu_of_rank)

    def traffic_s(self, gpu_of_rank: IntArray) -> float:  # noqa: ARG002
        """0: hop cost is a sum of all traffic itself."""
        return 0.0


def objective_of(topology: Domains, job: Job, name: str | None) -> Objective:
    """The objective called ``name``; by default time where the job says what time is.

    Raises `InputError` if the job lacks what the objective needs.
    """
    chosen = name or ("time" if job.has_time else "hop-cost")
    if chosen == "hop-cost":
        if not job.weights:
            problem = Problem(
                "the hop-cost objective needs the job's weights",
                key="weights",
                hint="add, for example, weights: {tp: 4000, cp: 400, pp: 40, dp: 4}",
            )
            raise InputError([problem])
        return HopCostObjective(HopCost(topology, job), job.weights)
    if not job.has_time:
        problem = Problem(
            "the time objective needs a model, groups or traffic",
            key="model",
            hint="add a model with its compute time, or give "
            f"{named('objective', 'hop-cost')}",
        )
        raise InputError([problem])
    return TimeObjective(StepModel(topology, job))
