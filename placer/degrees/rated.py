"""How sure a layout is: what validation says of what it changes, and of its gain.

Public pairs of steps in which a layout changes are predicted one from the other
(``docs/validation.md``). How far off they were is all that is known of a change; one
that no pair has is taken for as sure as the median of all.
"""

from __future__ import annotations

from math import exp
from statistics import NormalDist, median
from typing import TYPE_CHECKING, Any

import numpy as np

from placer.cost.step import StepModel
from placer.explain.difference import Saving
from placer.explain.uncertain import drawn_models, links_are_assumed

if TYPE_CHECKING:
    from placer.degrees.choice import Choice
    from placer.degrees.found import Row
    from placer.job.model import Job
    from placer.topology.model import Topology

# Absolute errors of the pairs in which each changes (`validation/pairs.yaml`).
RATED = {
    "tp": (0.027, 0.01, 0.162),
    "cp": (0.004, 0.027, 0.01),
    "ep": (0.003,),
    "pp": (0.01, 0.003),
    "vp": (0.011, 0.007),
    "micro_batch": (0.01, 0.038, 0.004),
    "recompute": (0.005, 0.072, 0.095, 0.029),
    "sharding": (),
}
_ALL = 0.011  # the median of all pairs: a few say no more than all
_DRAWS = 32


def changes(own: Choice, other: Choice) -> list[str]:
    """What a choice changes, by the names of `RATED`."""
    alike = {"sharding": ("sharding", "shard_size")}
    return [
        name
        for name in RATED
        if any(
            getattr(own, key) != getattr(other, key) for key in alike.get(name, (name,))
        )
    ]


def tested(own: Choice, other: Choice) -> list[dict[str, Any]]:
    """Of all that a choice changes: in how many pairs it did, and their errors."""
    return [
        {"change": name, "pairs": len(RATED[name])} | _errors(RATED[name])
        for name in changes(own, other)
    ]


def _errors(found: tuple[float, ...]) -> dict[str, float]:
    return {"median": median(found), "worst": max(found)} if found else {}


def gain(machine: Topology, job: Job, own: Row, best: Row, seed: int) -> Saving | None:
    """What the best row saves of the step of the job's own degrees.

    Uncertain inputs are drawn for both at once, and what validation says of the changes
    on top. None where one of them is not placed.
    """
    first, second = own.answer.solution, best.answer.solution
    if first is None or second is None:
        return None
    models = [StepModel(machine, row.choice.applied(job)) for row in (own, best)]
    placed = [each.placement.gpu_of_rank for each in (first, second)]
    before, after = own.answer.step_time_s, best.answer.step_time_s
    names = changes(own.choice, best.choice)
    # A median of absolute errors is 0.67 standard deviations.
    off = (max(_ALL, median(RATED[name] or [_ALL])) for name in names)
    spread = sum(each**2 for each in off) ** 0.5 / 0.6745
    shares = (np.random.default_rng(seed).permutation(_DRAWS) + 0.5) / _DRAWS
    thin = links_are_assumed(machine)
    both = (drawn_models(each, _DRAWS, seed + 1, thin=thin) for each in models)
    drawn = [
        mine.step(placed[0]).step_time_s
        - its.step(placed[1]).step_time_s * exp(spread * NormalDist().inv_cdf(share))
        for mine, its, share in zip(*both, shares.tolist(), strict=True)
    ]
    return Saving.of(before, after, drawn)
