"""How validation rated layouts of a kind, and what that leaves of a gain.

Published runs were set beside what placer likes best for their GPUs and batch
(``docs/evidence/tune.md``). If what ran was the best, the model takes what it likes
for so much too fast.
"""

from __future__ import annotations

from math import exp
from statistics import NormalDist
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from placer.cost.step import StepModel
from placer.degrees.kinds import methods
from placer.explain.difference import Saving
from placer.explain.uncertain import drawn_models, links_are_assumed

if TYPE_CHECKING:
    from placer.degrees.choice import Choice
    from placer.degrees.found import Row
    from placer.job.model import Job
    from placer.topology.model import Topology

_DRAWS = 32


class Rated(NamedTuple):
    """How validation rated a kind of choice where placer liked one best.

    Attributes
    ----------
    kind : str
    runs : int
        Published runs of which placer's own choice was of this kind.
    median, most : float
        How much longer the model took the step that ran to be.
    """

    kind: str
    runs: int
    median: float
    most: float


# The tables of benchmarks/choices.md, those found afterwards too:
# by whether the model has experts, and whether placer's choice shards parameters.
RATED = {
    (False, False): Rated("dense, whole parameters", 35, 0.018, 0.448),
    (False, True): Rated("dense, sharded parameters", 10, 0.1085, 0.792),
    (True, False): Rated("experts, whole parameters", 19, 0.097, 0.621),
    (True, True): Rated("experts, sharded parameters", 4, 0.1115, 0.285),
}


def rated(choice: Choice, job: Job) -> Rated:
    """How validation rated choices of this kind for such a job."""
    has_experts = job.model is not None and job.model.experts > 0
    return RATED[has_experts, "sharded parameters" in methods(choice)]


def gain(machine: Topology, job: Job, own: Row, best: Row, seed: int) -> Saving | None:
    """What the best row saves of the step of the job's own degrees.

    Uncertain inputs are drawn for both at once. The step of the best is longer than the
    model says by half a normal distribution whose median is that of its kind. None
    where one of them is not placed.
    """
    first, second = own.answer.solution, best.answer.solution
    if first is None or second is None:
        return None
    models = [StepModel(machine, row.choice.applied(job)) for row in (own, best)]
    placed = [each.placement.gpu_of_rank for each in (first, second)]
    before, after = own.answer.step_time_s, best.answer.step_time_s
    median, usual = rated(best.choice, job).median, NormalDist()
    shares = (np.random.default_rng(seed).permutation(_DRAWS) + 0.5) / _DRAWS
    # Quantiles of half a normal distribution.
    too_well = [
        median * usual.inv_cdf((1 + share) / 2) / usual.inv_cdf(0.75)
        for share in shares.tolist()
    ]
    thin = links_are_assumed(machine)
    both = (drawn_models(each, _DRAWS, seed + 1, thin=thin) for each in models)
    drawn = [
        mine.step(placed[0]).step_time_s - its.step(placed[1]).step_time_s * exp(more)
        for mine, its, more in zip(*both, too_well, strict=True)
    ]
    return Saving.of(before, after, drawn)
