"""A plan without some of its data-parallel replicas."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from placer.base.arrays import IntArray
from placer.base.errors import InputError
from placer.job.axes import Parallelism
from placer.job.model import Job
from placer.job.resize import resized
from placer.placement.plan import Plan

# Replica after replica, so that each is a run of numbers.
_BY_REPLICA = ("tp", "cp", "pp", "dp")


def smaller_jobs(job: Job, most_ranks: int) -> Iterator[Job]:
    """The job with ever fewer replicas, of at most ``most_ranks`` ranks each time.

    Sizes that the job cannot have, since experts do not divide them, are left out.
    """
    axes = job.parallelism
    replica = axes.world_size // axes.dp
    for dp in range(min(axes.dp - 1, most_ranks // replica), 0, -1):
        try:
            smaller = resized(job, dp=dp)
        except InputError:
            continue
        # Rules and requirements that were added by options are kept.
        yield replace(
            smaller,
            require=job.require,
            rules=job.rules,
            parallelism=replace(smaller.parallelism, order=axes.order),
        )


def replicas_of_block(axes: Parallelism, smaller: Parallelism) -> int:
    """Consecutive replicas that share no expert group with others; 1 without experts.

    The smallest number that divides both data parallel sizes and that the expert axes
    divide.
    """
    experts = axes.etp * axes.ep
    return next(
        count
        for count in range(1, axes.dp + 1)
        if axes.dp % count == 0
        and smaller.dp % count == 0
        and (axes.tp * axes.cp * count) % experts == 0
    )


def ranks_of_replicas(
    old: Parallelism, new: Parallelism, kept: Sequence[int]
) -> IntArray:
    """The old rank whose work each new one does, shape (new ranks,).

    Replica ``kept[i]`` becomes replica ``i``.
    """
    rank_of_work = np.empty(old.world_size, dtype=np.int64)
    rank_of_work[old.numbers_in(_BY_REPLICA)] = np.arange(old.world_size)
    replica = np.asarray(kept, dtype=np.int64)[new.coordinates["dp"]]
    size = new.world_size // new.dp
    ranks: IntArray = rank_of_work[new.numbers_in(_BY_REPLICA) % size + replica * size]
    return ranks


def without_replicas(plan: Plan, job: Job, kept: Sequence[int]) -> Plan:
    """The plan with only the replicas ``kept``, as a plan for the smaller ``job``.

    Replica ``kept[i]`` becomes replica ``i``; ranks are numbered by the job's order.
    Score and bound stay those of the whole plan.
    """
    old = plan.axes
    if old is None:
        raise InputError("the plan does not record its axes")
    new = job.parallelism
    ranks = ranks_of_replicas(old, new, kept)
    about = {**plan.job, "parallelism": {**plan.job["parallelism"], "dp": new.dp}}
    return replace(
        plan,
        job=about,
        node_of_rank=plan.node_of_rank[ranks],
        gpu_of_rank=plan.gpu_of_rank[ranks],
    )
