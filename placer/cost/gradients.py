"""Seconds that gradients and parameters of one chunk take, by pipeline stage."""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from placer.cost.traffic import Traffic, total_traffic

if TYPE_CHECKING:
    from placer.cost.network import Network
    from placer.cost.volumes import Volumes
    from placer.job.model import Job

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class SyncTime:
    """Reduction and gather of one chunk.

    Attributes
    ----------
    reduce, gather : ndarray, shape (P,), s
        Slowest group of each stage.
    first_bucket : float, s
        Gather of one bucket on the first stage.
    group_seconds : ndarray, shape (groups,), s
        Reduction of one chunk in each dense gradient group.
    traffic : Traffic or None
        In one step; None when nobody shares parameters.
    """

    reduce: FloatArray
    gather: FloatArray
    first_bucket: float
    group_seconds: FloatArray
    traffic: Traffic | None


@dataclass(frozen=True, eq=False)
class _Pass:
    """One direction (reduce or gather) of some groups: latency, rate part, stage."""

    latency: FloatArray
    bandwidth: FloatArray
    stage: IntArray
    traffic: Traffic

    @property
    def seconds(self) -> FloatArray:
        return self.latency + self.bandwidth


def sync_time(network: Network, job: Job, sizes: Volumes, buckets: float) -> SyncTime:
    """The data-parallel times of one step.

    ZeRO-1 reduces and gathers once a step; DDP reduces twice over (an all-reduce) and
    gathers nothing; ZeRO-3 gathers again in backward; HSDP does so inside a shard group
    and all-reduces its shard across groups (Zhao et al. 2023, arXiv 2304.11277).
    """
    axes = job.parallelism
    reduce = np.zeros(axes.pp)
    gather = np.zeros(axes.pp)
    first_bucket = 0.0
    traffic: list[Traffic] = []
    group_seconds = np.zeros(len(axes.ranks_of_group["dp_cp"]))
    parts = [("dp_cp", sizes.dense_chunk)]
    if sizes.expert_chunk:
        parts.append(("edp", sizes.expert_chunk))
    for axis, parameters in parts:
        members = axes.ranks_of_group[axis]
        if members.shape[1] == 1:
            continue
        down, up = _passes(network, job, members, parameters)
        reduce += _per_stage(axes.pp, down)
        traffic += [item.traffic for item in down]
        traffic += [item.traffic for item in up]
        gather += _per_stage(axes.pp, up)
        first_bucket += sum(
            float((item.latency + item.bandwidth / buckets)[item.stage == 0].max())
            for item in up
        )
        if axis == "dp_cp":
            group_seconds = down[0].seconds
    if job.data_parallel.sharding == "zero3":
        reduce = reduce + gather
    return SyncTime(reduce, gather, first_bucket, group_seconds, total_traffic(traffic))


def _per_stage(num_stages: int, passes: list[_Pass]) -> FloatArray:
    """Sum over passes of the slowest group of each stage; shape (P,)."""
    seconds = np.zeros(num_stages)
    for item in passes:
        slowest = np.zeros(num_stages)
        np.maximum.at(slowest, item.stage, item.seconds)
        seconds += slowest
    return seconds


def _passes(
    network: Network, job: Job, members: IntArray, parameters: float
) -> tuple[list[_Pass], list[_Pass]]:
    """Passes of the reduction and of the gather."""
    mode = job.data_parallel
    width = job.bytes
    syncs = job.parallelism.vp / mode.sync_every
    outer: list[_Pass] = []
    if mode.sharding == "hsdp" and 0 < mode.shard_size < members.shape[1]:
        # Expert groups may be smaller: their shard group is the largest that fits both.
        shard_size = gcd(mode.shard_size, members.shape[1])
        shards = members.reshape(len(members), -1, shard_size)
        across = shards.transpose(0, 2, 1).reshape(-1, shards.shape[1])
        shard = parameters / shard_size * width.gradient
        outer = [_ring_pass(network, job, across, shard, 2.0, syncs)]
        members = shards.reshape(-1, shard_size)
    twice = 2.0 if mode.sharding == "ddp" else 1.0
    size = parameters * width.gradient
    down = [_ring_pass(network, job, members, size, twice, syncs), *outer]
    if mode.sharding == "ddp":
        return down, []
    size = parameters * width.parameter_gather
    gathers = syncs * (2 if mode.sharding == "zero3" else 1)
    return down, [_ring_pass(network, job, members, size, 1.0, gathers)]


def _ring_pass(
    network: Network,
    job: Job,
    members: IntArray,
    size_bytes: float,
    rounds: float,
    syncs: float,
) -> _Pass:
    """One ring pass of ``size_bytes``, ``rounds`` times over, ``syncs`` a step."""
    cost = network.ring(members, size_bytes)
    stage = job.parallelism.coordinates["pp"][members[:, 0]]
    return _Pass(
        (cost.seconds - cost.bandwidth_seconds) * rounds,
        cost.bandwidth_seconds * rounds,
        stage,
        Traffic.of(cost, rounds * syncs),
    )
