"""The exposed gather at its least.

The head of a step, ``max(A_k, M - A_k)`` with ``M = max over r >= 1 of A_r - r t_f``,
is the one time of the cost model that a slower operation can shorten: the first bucket
``A_k`` of stage 0. So it counts with the bucket that shortens it most, ``A_k = M / 2``,
where that is longer than the bucket must be.

Such a bucket has its price. Bucket and reduction of stage 0 are the same collective of
the same groups, of ``b`` and of ``B >= b`` bytes. Seconds are ``L + size x`` in every
placement and, at their least over placements, a concave function ``h`` of the size. A
placement whose bucket takes ``A_k`` has a group with ``L + b x = A_k``, so its
reduction takes at least ``A_k + (B - b) x_min``, where ``x_min`` is the slope of ``h``
at large sizes. With ``A_k = h(b) + d`` that is ``h(B) + d - D``, where the kink ``D =
h(B) - h(b) - (B - b) x_min``. The sum of head and tail does not rise up to ``d = M / 2
- h(b)`` and does not fall afterwards: its value there bounds all placements.

Where every pipeline lies inside one scale-up domain, a group of stage 0 and its
counterparts in the other stages run through the same domains. On links that are alike
inside domains they are equally slow: ``A_r`` grows at least as ``A_k`` does, and the
head does not shrink.
"""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import TYPE_CHECKING

import numpy as np

from placer.cost.gradients import sync_groups, sync_time

if TYPE_CHECKING:
    from placer.cost.fabric import Fabric
    from placer.cost.step import Step, StepModel
    from placer.solve.bounds.ideal import IdealNetwork

# Bytes a parameter at which only the slope counts.
WIDE = 1e9


def with_best_bucket(step: Step, kink_s: float) -> Step:
    """The step with the first bucket that exposes least.

    Parameters
    ----------
    step : Step
        At the least time of every operation.
    kink_s : float, s
        Of `kink_seconds`.
    """
    sync = step.sync
    if sync is None or not step.model.job.data_parallel.overlap_gather:
        return step
    first = sync.gather[:, 0]
    later = first - np.arange(len(first)) * step.model.windows.forward_s
    longer = float(later[1:].max(initial=0.0)) / 2 - sync.first_bucket
    if longer <= 0:
        return step
    reduce = sync.reduce.copy()
    reduce[0, 0] += max(0.0, longer - kink_s)
    bucket = sync.first_bucket + longer
    return replace(step, sync=replace(sync, reduce=reduce, first_bucket=bucket))


def stages_alike(fabric: Fabric) -> bool:
    """Whether groups through the same scale-up domains are equally slow."""
    inside = slice(0, max(fabric.scale_up_tier, 0) + 1)
    return all(
        bool((values == values[0]).all())
        for values in (
            fabric.latency[inside],
            fabric.bandwidth[inside],
            fabric.factor_of_gpu,
        )
    )


def kink_seconds(model: StepModel, network: IdealNetwork) -> float:
    """``D`` above, in seconds; inf where nothing ties the reduction to the bucket.

    That is where placements may differ in the algorithm that a size of buffer takes, or
    where gradients are narrower than a bucket of parameters.
    """
    job = model.job
    narrow, wide = (
        job.bytes.parameter_gather / model.windows.buckets,
        job.bytes.gradient,
    )
    if wide < narrow or job.data_parallel.sharding == "ddp":
        return inf
    groups = sync_groups(job, model.volumes).values()
    if job.collectives.gather == "auto" and any(map(network.may_be_apart, groups)):
        return inf

    def seconds(width: float) -> float:
        wider = replace(job, bytes=replace(job.bytes, gradient=width))
        sync = sync_time(network, wider, model.volumes, model.windows.buckets)
        return float(sync.reduce[0, 0])

    slope = (seconds(2 * WIDE) - seconds(WIDE)) / WIDE
    kink = seconds(wide) - seconds(narrow) - (wide - narrow) * slope
    return max(0.0, kink)
