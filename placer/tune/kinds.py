"""Kinds of layouts, and choices that cannot be told apart.

Two choices are alike where they use the same methods on as many GPUs, and differ in
their steps and their memory by less than the model can tell.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from placer.cost import DIFFERENCE
from placer.cost.step import StepModel
from placer.explain.difference import Saving, drawn_times, links_are_assumed
from placer.job.model import Job
from placer.topology.model import Topology
from placer.tune.choice import SIZES, Choice

if TYPE_CHECKING:
    from placer.tune.found import Row

_DRAWS = 32


class Rated(NamedTuple):
    """How validation rated a kind of choice where placer liked one best."""

    kind: str
    runs: int  # published runs of which placer's own choice was of this kind
    # median and most: how much longer the model took the step that ran to be.
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
    longer = [
        exp(median * usual.inv_cdf((1 + share) / 2) / usual.inv_cdf(0.75))
        for share in shares.tolist()
    ]
    thin = links_are_assumed(machine)
    mine, its = (
        drawn_times(model, [gpus], _DRAWS, seed + 1, thin=thin)[:, 0]
        for model, gpus in zip(models, placed, strict=True)
    )
    return Saving.of(before, after, mine - its * longer)


# What memory is off by in most series that were measured (docs/evidence/memory.md).
MEMORY = 0.05

_SHARDING = {
    "ddp": "replicated states",
    "zero1": "ZeRO",
    "zero2": "ZeRO",
    "zero3": "sharded parameters",
    "hsdp": "sharded parameters",
}


def methods(choice: Choice) -> tuple[str, ...]:
    """The methods that a choice uses, in words: its kind, whatever the sizes."""
    found = [_SHARDING[choice.sharding]]
    found += ["pipelines"] if choice.pp > 1 else []
    found += ["expert groups"] if choice.ep > 1 else []
    return tuple(found)


def classes(rows: Sequence[Row]) -> list[list[Row]]:
    """Rows, best first, by what cannot be told apart; each class led by its best."""
    found: list[list[Row]] = []
    for row in rows:
        mine = next((one for one in found if _are_alike(one[0], row)), None)
        if mine is None:
            found.append([row])
        else:
            mine.append(row)
    return found


def told_apart(
    placed: Sequence[Row], count: int, kin: Row | None
) -> tuple[list[Row], list[list[Row]], int | None]:
    """Rows no two of which are alike, those like each, and which one ``kin`` is like.

    As many as ``count``, and ``kin`` beside them.
    """
    found = classes(placed)
    own = kin and kin.choice
    mine = next(
        (i for i, one in enumerate(found) if own in [row.choice for row in one]), None
    )
    if mine is not None and mine >= count:
        found[count:], mine = [found[mine]], count
    else:
        found = found[:count]
    return [one[0] for one in found], [one[1:] for one in found], mine


def _are_alike(one: Row, other: Row) -> bool:
    if one.choice.gpus != other.choice.gpus:
        return False
    if methods(one.choice) != methods(other.choice):
        return False
    steps = one.answer.step_time_s, other.answer.step_time_s
    return _is_near(*steps, DIFFERENCE) and _is_near(one.memory, other.memory, MEMORY)


def differing(rows: Sequence[Row], has_experts: bool) -> dict[str, list[Any]]:
    """What rows that are alike differ in: every value of it, numbers in order."""
    chosen = [row.choice for row in rows]
    # Without experts etp follows tp.
    keys = [key for key in SIZES if has_experts or key != "etp"]
    found: dict[str, list[Any]] = {
        key: sorted({getattr(one, key) for one in chosen}) for key in keys
    }
    found["recompute"] = list(dict.fromkeys(one.recompute for one in chosen))
    shards = (f"{one.sharding} {one.shard_size or ''}".rstrip() for one in chosen)
    found["sharding"] = list(dict.fromkeys(shards))
    for end in ("embedding", "loss"):
        found[end] = sorted({getattr(one, end) for one in chosen})
    return {key: values for key, values in found.items() if len(values) > 1}


def _is_near(one: float, other: float, share: float) -> bool:
    return abs(one - other) <= share * min(one, other)
