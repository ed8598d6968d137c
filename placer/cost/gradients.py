"""Seconds that gradients and parameters of a chunk take, by pipeline stage.

Shapes: P stages, V chunks a stage, g groups of n members.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np

from placer.base.arrays import FloatArray, IntArray
from placer.cost.links import Cost, Traffic, total_traffic
from placer.cost.network import Network
from placer.cost.volumes import Volumes
from placer.job.model import Job

Operation = Callable[[IntArray, float], Cost]

REPLICATE = "_replicate"  # groups of equal shards, after the name of the shard groups


@dataclass(frozen=True, eq=False)
class SyncTime:
    """Reduction and gather of each chunk, on the slowest group of each stage."""

    # reduce and gather, (P, V), s: the last reduction and the first gather of a step.
    reduce: FloatArray
    gather: FloatArray
    # (P, V), s: that of every other micro-batch, where each has its own.
    again_reduce: FloatArray
    first_bucket: float  # s: gather of one bucket of the first chunk on the first stage
    # s: reduction of tied embeddings between first and last stage, in every step.
    embedding: float
    # (groups,), s: reduction of one full chunk in each group of `sync_groups`.
    group_seconds: Mapping[str, FloatArray]
    traffic: Traffic | None  # in one step; None when nobody shares parameters


class _Pass(NamedTuple):
    """One collective on each chunk of the groups of an axis."""

    seconds: FloatArray  # (P, V), s: slowest group of each stage
    group_seconds: FloatArray  # (g,), s: each group, on a full chunk
    traffic: Traffic  # once over all chunks


@dataclass(frozen=True, eq=False)
class _Part:
    """Groups that share parameters, and how much."""

    # shards and across, (g, n): groups that shard the parameters; those that hold the
    # same shard (HSDP).
    shards: IntArray
    across: IntArray | None
    # trained and gathered, (P, V): parameters whose gradients are reduced; those that
    # are gathered.
    trained: FloatArray
    gathered: FloatArray


def sync_time(network: Network, job: Job, sizes: Volumes, buckets: float) -> SyncTime:
    """The data-parallel times of one step.

    DDP all-reduces gradients once a step; ZeRO-1 reduce-scatters them and gathers
    parameters; ZeRO-2 reduce-scatters those of each micro-batch; ZeRO-3 gathers for the
    forward and again for the backward of each micro-batch, and reduces after it, unless
    parameters are kept for the step; HSDP does so inside a shard group and all-reduces
    its shard across groups once a step (Zhao et al. 2023, arXiv 2304.11277). Several
    instances of an optimizer are such groups too. Dense and expert groups run one after
    the other. Beside adapters, ZeRO-3 and HSDP gather the weights that are not trained
    too; nothing else sends any of those.
    """
    shape = job.parallelism.pp, job.parallelism.vp
    inner, outer, gather = (np.zeros(shape) for _ in range(3))
    first_bucket = 0.0
    group_seconds: dict[str, FloatArray] = {}
    traffic: list[Traffic] = []
    mode, width = job.data_parallel, job.bytes.gradient
    all_reduce = partial(network.all_reduce, algorithm=job.collectives.all_reduce)
    reduce: Operation = all_reduce if mode.sharding == "ddp" else network.gather
    rounds = job.micro_batches if mode.reduces_each else 1
    for axis, part in _parts(job, sizes).items():
        found = reduced = _pass(reduce, job, part.shards, part.trained * width)
        inner += found.seconds
        traffic.append(found.traffic.times(rounds / mode.sync_every))
        group_seconds[axis] = found.group_seconds
        if part.across is not None:
            shard = part.trained / part.shards.shape[1]
            found = _pass(all_reduce, job, part.across, shard * width)
            group_seconds[axis + REPLICATE] = found.group_seconds
            outer += found.seconds
            traffic.append(found.traffic.times(1 / mode.sync_every))
        if mode.sharding != "ddp":
            found, bucket = _gather(network, job, part, reduced, buckets)
            gather += found.seconds
            first_bucket += bucket
            gathers = 2 * rounds if mode.gathers_each else 1
            traffic.append(found.traffic.times(gathers / mode.sync_every))
    embedding, sent = _tied_embeddings(all_reduce, job, sizes.tied_parameters)
    # Backward gathers once more what it is about to use.
    again = inner + gather if mode.gathers_each else inner
    return SyncTime(
        again + outer,
        gather,
        again,
        first_bucket,
        embedding,
        group_seconds,
        total_traffic([*traffic, *sent]),
    )


def sync_groups(job: Job, sizes: Volumes) -> dict[str, IntArray]:
    """Ranks of the groups that reduce gradients; each shape (g, n).

    ``dp`` and, where experts have groups of their own, ``edp``: all ranks that hold the
    same parameters. With HSDP these are the shard groups, and ``dp_replicate`` and
    ``edp_replicate`` the groups that hold the same shard.
    """
    found = {}
    for axis, part in _parts(job, sizes).items():
        found[axis] = part.shards
        if part.across is not None:
            found[axis + REPLICATE] = part.across
    return found


@lru_cache(maxsize=8)  # many placements are priced of a few jobs
def _parts(job: Job, sizes: Volumes) -> dict[str, _Part]:
    """Dense and expert parameters, where more than one rank holds them."""
    axes, mode = job.parallelism, job.data_parallel
    found = {}
    for axis, groups, held in (
        ("dp", "dp_cp", sizes.dense_parameters),
        ("edp", "edp", sizes.expert_parameters),
    ):
        trained, gathered = held(), held(frozen=mode.shards_weights)
        members = axes.ranks_of_group[groups]
        num_members = members.shape[1]
        if num_members == 1 or not gathered.any():
            continue
        across = None
        shard_size = mode.shard_members(num_members, axes.dp * axes.cp)
        if shard_size < num_members:
            shards = members.reshape(len(members), -1, shard_size)
            across = shards.transpose(0, 2, 1).reshape(-1, shards.shape[1])
            members = shards.reshape(-1, shard_size)
        found[axis] = _Part(members, across, trained, gathered)
    return found


def _gather(
    network: Network, job: Job, part: _Part, reduced: _Pass, buckets: float
) -> tuple[_Pass, float]:
    """Parameters gathered, and the seconds of the first stage's first bucket.

    As many that are as wide take what gradients took to be reduced to shards.
    """
    run = network.gather
    width, found = job.bytes.parameter_gather, reduced
    sizes = part.gathered * width
    if not np.array_equal(sizes, part.trained * job.bytes.gradient):
        found = _pass(run, job, part.shards, sizes)
    first = float(part.gathered[0, 0]) / buckets
    if first == 0.0:
        return found, 0.0
    bucket = run(part.shards, first * width).seconds
    return found, float(bucket[_stage(job, part.shards) == 0].max())


def _pass(run: Operation, job: Job, members: IntArray, size_bytes: FloatArray) -> _Pass:
    """A collective on every chunk, all stages alike at a time; sizes of shape (P, V).

    While a first or last chunk of another size has its turn, all groups are timed with
    a buffer of that size.
    """
    stage = _stage(job, members)
    seconds = np.zeros(size_bytes.shape)
    sizes, counts = np.unique(size_bytes, return_counts=True)
    costs = {}
    for size in sizes[sizes > 0].tolist():
        costs[size] = run(members, size)
        slowest = np.zeros(len(size_bytes))
        np.maximum.at(slowest, stage, costs[size].seconds)
        seconds = np.where(size_bytes == size, slowest[:, None], seconds)
    if not costs:
        return _Pass(
            seconds, np.zeros(len(members)), run(members, 0.0).traffic.times(0.0)
        )
    usual = max(costs, key=lambda size: counts[sizes == size].item())
    chunks = float(size_bytes.sum()) / len(size_bytes) / usual
    cost = costs[usual]
    return _Pass(seconds, cost.seconds, cost.traffic.times(chunks))


def _stage(job: Job, members: IntArray) -> IntArray:
    """Pipeline stage of each group; shape (g,)."""
    stage: IntArray = job.parallelism.coordinates["pp"][members[:, 0]]
    return stage


def _tied_embeddings(
    all_reduce: Operation, job: Job, parameters: float
) -> tuple[float, list[Traffic]]:
    """Seconds and traffic of the all-reduce between first and last stage."""
    if parameters == 0.0:
        return 0.0, []
    ends = job.parallelism.ranks_of_group["pp"][:, [0, -1]]
    cost = all_reduce(ends, parameters * job.bytes.gradient)
    return float(cost.seconds.max()), [cost.traffic.times(1.0)]
