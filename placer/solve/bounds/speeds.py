"""The bound that GPUs of unequal speed set.

The stages of all replicas, sorted by the speed of their slowest GPU, are at best as
fast as the fastest GPUs, sorted and cut into as many pieces: the j fastest of them hold
j times as many GPUs as one does. So of the stages no faster than some speed one replica
has its share, rounded up, and its pipeline is at best as with those few in their best
places and all others at full speed. By hand: two replicas of two stages on
one GPU each, one of the four half as fast. One replica has one slow stage, or more.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from math import comb

import numpy as np

from placer.base.arrays import FloatArray
from placer.cost.step import Step
from placer.solve.bounds import Proof
from placer.solve.bounds.case import best_of_problem
from placer.solve.bounds.network.ideal import fastest_stages
from placer.solve.problem.compiled import Problem
from placer.solve.run.budget import ENDLESS, Budget

# Ways to place slow stages in a pipeline that are tried; fewer slow stages otherwise.
MOST_PLACES = 256


def slowest_stages(
    problem: Problem, block: int, _incumbent: float, _budget: Budget = ENDLESS
) -> Proof | None:
    """The least step time of all placements; None where all GPUs are as fast."""
    axes, topology = problem.job.parallelism, problem.machine
    stages = axes.dp * axes.pp
    speed = fastest_stages(topology, stages, axes.world_size // stages)
    if len(speed) < stages or (speed == speed[0]).all():
        return None
    step = problem.model.step_on(best_of_problem(problem, block))
    bare = step.step_time_s - step.pipeline_s(step.axes)
    seconds, slow = max(_least(step, speed))
    argument = (
        f"some stage works at {slow:.3g} of the usual speed, on the fastest GPUs there "
        "are, every tp, cp, ep and pp group at its nearest tier"
    )
    return Proof(bare + seconds, argument)


def _least(step: Step, speed: FloatArray) -> Iterator[tuple[float, float]]:
    """(least seconds of the slowest pipeline, speed) for each speed."""
    axes = step.model.job.parallelism
    for slow in np.unique(speed[speed < speed[0]]).tolist():
        number = -(-int((speed <= slow).sum()) // axes.dp)
        while comb(axes.pp, number) > MOST_PLACES:
            number -= 1
        yield (
            min(
                _pipeline_s(step, list(places), slow)
                for places in combinations(range(axes.pp), number)
            ),
            slow,
        )


def _pipeline_s(step: Step, places: list[int], slow: float) -> float:
    """Seconds of a pipeline of which some stages work at a speed of ``slow``."""
    slowness = step.slowness.copy()
    slowness[0, places] = 1 / slow
    slowed = replace(step, slowness=slowness)
    return slowed.pipeline_s(step.axes)
