"""Rank orders that a framework can be asked for, and jobs that leave theirs open."""

from __future__ import annotations

from dataclasses import replace

from placer.job.axes import (
    MEGATRON_DEFAULT_ORDER,
    REPLICA_MAJOR_ORDER,
    Parallelism,
    pipeline_groups_agree,
)
from placer.job.model import Job

Order = tuple[str, ...]

# Megatron-LM, arguments.py: without the flag, and with it.
_HOW: dict[Order, str] = {
    MEGATRON_DEFAULT_ORDER: "Megatron-LM's default",
    REPLICA_MAJOR_ORDER: "Megatron-LM: --use-tp-pp-dp-mapping",
}


def framework_orders(parallelism: Parallelism) -> list[Order]:
    """Orders that frameworks offer for these axes, the default first.

    torchtitan and DeepSpeed number ranks as Megatron-LM does by default. Megatron-LM
    refuses an order that gives experts other pipeline groups than the dense layers
    (``core/parallel_state.py``).
    """
    return [
        order
        for order in _HOW
        if pipeline_groups_agree(replace(parallelism, order=order))
    ]


def how_to_number(order: Order) -> str:
    """What numbers the ranks by ``order``; empty when no known framework does."""
    return _HOW.get(order, "")


def same_groups(parallelism: Parallelism, first: Order, second: Order) -> bool:
    """Whether two orders give the same groups, their members in the same order.

    A group of one dense axis has the same members in any order. Gradient groups, which
    run over ``dp`` and ``cp``, and the groups of experts, which share out the ranks of
    ``tp``, ``cp`` and ``dp``, depend on how all axes but ``pp`` follow each other.
    """
    sizes = {
        "tp": max(parallelism.tp, parallelism.etp),
        "cp": parallelism.cp,
        "ep": parallelism.ep,
        "dp": max(parallelism.dp, parallelism.edp),
    }
    split = parallelism.divides_experts
    matter = {"tp", "cp", "ep", "dp"} if split else {"cp", "dp"}
    kept = [
        [axis for axis in order if axis in matter and sizes[axis] > 1]
        for order in (first, second)
    ]
    return kept[0] == kept[1]


def in_order(job: Job, order: Order) -> Job:
    """The job with ranks numbered by ``order``; the digest stays the file's."""
    return replace(job, parallelism=replace(job.parallelism, order=order))


def closed(job: Job) -> Job:
    """The job with the order it has; no other is tried."""
    return replace(job, parallelism=replace(job.parallelism, auto_order=False))


def as_planned(job: Job, order: str) -> Job:
    """The job in the order that a plan names, where the job leaves its order open."""
    if not (order and job.parallelism.auto_order):
        return job
    return in_order(job, tuple(order.split("-")))
