"""What reduction and gather of a chunk take, and what of them is exposed."""

from __future__ import annotations

from math import gcd
from typing import TYPE_CHECKING

from placer.cost.reference.collectives import rings
from placer.cost.reference.groups import coordinates, groups

if TYPE_CHECKING:
    from placer.cost.reference.machine import Machine
    from placer.cost.reference.sizes import Sizes
    from placer.job.model import Job


def exposed_sync(machine: Machine, job: Job, size: Sizes, gpus: list[int]) -> float:
    """Seconds of one step's data-parallel traffic that no compute hides."""
    if job.model is None:
        return 0.0
    mode, axes = job.data_parallel, job.parallelism
    parameters = size.dense_parameters + size.expert_parameters
    buckets = max(1.0, parameters / mode.bucket_parameters)
    reduce, gather = [0.0] * axes.pp, [0.0] * axes.pp
    first_bucket = 0.0
    for axis, held in (
        ("dp_cp", size.dense_parameters),
        ("edp", size.expert_parameters),
    ):
        ranks = groups(axes, axis)
        if held == 0 or len(ranks[0]) == 1:
            continue
        for rows, share, width, times, is_gather in _passes(job, ranks):
            stages = _by_stage(machine, job, gpus, rows, held * share * width)
            total = reduce if not is_gather else gather
            for stage, passes in enumerate(stages):
                total[stage] += max(times * (a + b) for a, b in passes)
            if is_gather:
                first_bucket += max(times * (a / buckets + b) for a, b in stages[0])
    if mode.sharding == "zero3":
        reduce = [r + g for r, g in zip(reduce, gather, strict=True)]
    seen = _tail(reduce, size.backward, buckets, job) + _head(
        gather, size.forward, first_bucket, job
    )
    return seen / mode.sync_every


def _passes(
    job: Job, ranks: list[list[int]]
) -> list[tuple[list[list[int]], float, float, int, bool]]:
    """(groups, share of the buffer, bytes an element, times, gathers) of each pass."""
    mode, width = job.data_parallel, job.bytes
    if mode.sharding == "ddp":
        return [(ranks, 1.0, width.gradient, 2, False)]
    found = [(ranks, 1.0, width.gradient, 1, False)]
    n = len(ranks[0])
    if mode.sharding == "hsdp" and 0 < mode.shard_size < n:
        shard = gcd(mode.shard_size, n)
        inner = [row[i : i + shard] for row in ranks for i in range(0, n, shard)]
        across = [row[i::shard] for row in ranks for i in range(shard)]
        found = [(inner, 1.0, width.gradient, 1, False)]
        found.append((across, 1 / shard, width.gradient, 2, False))
        ranks = inner
    return [*found, (ranks, 1.0, width.parameter_gather, 1, True)]


def _by_stage(
    machine: Machine, job: Job, gpus: list[int], ranks: list[list[int]], size: float
) -> list[list[tuple[float, float]]]:
    """(transfer, latency) of the groups of each stage."""
    at = coordinates(job.parallelism)
    times = rings(machine, [[gpus[r] for r in row] for row in ranks], size)
    stages: list[list[tuple[float, float]]] = [[] for _ in range(job.parallelism.pp)]
    for row, time in zip(ranks, times, strict=True):
        stages[at[row[0]]["pp"]].append((time.transfer, time.latency))
    return stages


def _tail(seconds: list[float], backward: float, buckets: float, job: Job) -> float:
    """Reduction after the last backward, and what outlasts a chunk before that."""
    chunks = job.parallelism.vp
    if not job.data_parallel.overlap_reduce:
        return chunks * max(seconds)
    window = backward * min(job.micro_batches, job.parallelism.pp)
    excess = (chunks - 1) * max(0.0, max(seconds) - window)
    left = [seconds[0] - (1 - 1 / buckets) * backward]
    left += [t - r * backward for r, t in enumerate(seconds) if r]
    return excess + max(0.0, *left)


def _head(seconds: list[float], forward: float, first_bucket: float, job: Job) -> float:
    """Gather before the first forward, and what outlasts a chunk after that."""
    chunks = job.parallelism.vp
    if not job.data_parallel.overlap_gather:
        return chunks * max(seconds)
    window = forward * min(job.micro_batches, job.parallelism.pp)
    excess = (chunks - 1) * max(0.0, max(seconds) - window)
    left = [t - r * forward - first_bucket for r, t in enumerate(seconds) if r]
    return excess + max([first_bucket, *left])
