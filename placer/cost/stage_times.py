"""What TP, CP, EP and PP add to each stage of each replica, and the bytes they send.

A stage waits for the slowest of its groups, so every time is the maximum over the
groups that touch the stage; arrays have shape (D, P): D data-parallel replicas, P
stages.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from placer.cost.traffic import Traffic
from placer.cost.volumes import EP_OPERATIONS_PER_PASS, TP_OPERATIONS_PER_PASS, Volumes

if TYPE_CHECKING:
    from placer.cost.network import Network
    from placer.cost.work import Work
    from placer.job.model import Job

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class StageTime:
    """What one axis adds.

    Attributes
    ----------
    forward, backward : ndarray, shape (D, P), s
        Added to a chunk's forward and backward; for ``pp`` both hold the hop to the
        next stage.
    group_seconds : ndarray, shape (groups,), s
        One operation of each group, to name the slowest.
    traffic : Traffic
    """

    forward: FloatArray
    backward: FloatArray
    group_seconds: FloatArray
    traffic: Traffic


def tensor_time(network: Network, job: Job, sizes: Volumes, times: Work) -> StageTime:
    """The exposed time of tensor-parallel collectives.

    Without overlap, each pass waits for four collectives a layer. Overlapped ones run
    in ``t`` pieces beside their matrix product: the last piece is seen, or what
    outlasts the product (Transformer Engine, user-buffer overlap).
    """
    axes = job.parallelism
    members = axes.ranks_of_group["tp"]
    cost = network.ring(members, sizes.tp_slab)
    seen = cost.seconds
    if job.overlap.tp:
        product = times.layer_forward_s / TP_OPERATIONS_PER_PASS
        seen = np.maximum(seen / axes.tp, seen - product)
    per_pass = TP_OPERATIONS_PER_PASS * sizes.layers_per_chunk
    added = _per_stage(job, members, seen) * per_pass
    passes = axes.vp * job.micro_batches
    gathers_again = 2 * sizes.layers_per_chunk
    traffic = Traffic.of(cost, passes * (2 * per_pass + gathers_again))
    return StageTime(added, added, cost.seconds, traffic)


def context_time(network: Network, job: Job, sizes: Volumes, times: Work) -> StageTime:
    """The exposed time of the context-parallel ring.

    Each layer passes its keys and values around the ring, ``c-1`` hops forward and
    twice that backward (keys and values again, and their gradients), beside attention
    proper.
    """
    axes = job.parallelism
    members = axes.ranks_of_group["cp"]
    cost = network.send(members, np.roll(members, -1, axis=1), sizes.cp_block)
    hops = axes.cp - 1
    ring = cost.seconds.max(axis=1) * hops
    hidden = times.layer_forward_s * times.attention_share if job.overlap.cp else 0.0
    seen = np.maximum(ring - hidden, 0.0)
    forward = _per_stage(job, members, seen) * sizes.layers_per_chunk
    rounds = axes.vp * job.micro_batches * sizes.layers_per_chunk * 3 * hops
    return StageTime(forward, 2 * forward, ring, Traffic.of(cost, rounds))


def expert_time(network: Network, job: Job, sizes: Volumes, times: Work) -> StageTime:
    """The exposed time of expert dispatch and combine, one each a layer and pass."""
    axes = job.parallelism
    members = axes.ranks_of_group["ep"]
    cost = network.all_to_all(members, sizes.ep_buffer)
    per_pass = EP_OPERATIONS_PER_PASS * sizes.moe_layers_per_chunk
    hidden = times.layer_forward_s / EP_OPERATIONS_PER_PASS if job.overlap.ep else 0.0
    seen = np.maximum(cost.seconds - hidden, 0.0)
    added = _per_stage(job, members, seen) * per_pass
    rounds = axes.vp * job.micro_batches * 2 * per_pass
    return StageTime(added, added, cost.seconds, Traffic.of(cost, rounds))


def pipeline_hops(network: Network, job: Job, sizes: Volumes) -> StageTime:
    """The time of a message from each stage to the next, the slowest lane of a replica.

    With virtual stages the last stage also sends to the first; without, that hop is 0.
    """
    axes = job.parallelism
    members = axes.ranks_of_group["pp"]
    sender, receiver = members, np.roll(members, -1, axis=1)
    if axes.vp == 1:
        sender, receiver = sender[:, :-1], receiver[:, :-1]
    cost = network.send(sender, receiver, sizes.pp_message)
    hop = np.zeros(members.shape)
    hop[:, : sender.shape[1]] = cost.seconds
    replica = axes.coordinates["dp"][members[:, 0]]
    slowest = np.zeros((axes.dp, axes.pp))
    np.maximum.at(slowest, replica, hop)
    forward = Traffic.of(cost, axes.vp * job.micro_batches)
    if axes.vp > 1:
        # The last chunk's activations end with the loss and do not close the ring.
        closing = network.send(members[:, -1], members[:, 0], sizes.pp_message)
        forward = forward.plus(Traffic.of(closing, -job.micro_batches))
    traffic = forward.plus(forward.reversed())
    return StageTime(slowest, slowest, hop.sum(axis=1), traffic)


def _per_stage(job: Job, members: IntArray, seconds: FloatArray) -> FloatArray:
    """Largest time among the groups that touch each (replica, stage); shape (D, P)."""
    axes = job.parallelism
    slowest = np.zeros((axes.dp, axes.pp))
    replica, stage = axes.coordinates["dp"], axes.coordinates["pp"]
    spread = np.broadcast_to(seconds[:, None], members.shape)
    np.maximum.at(slowest, (replica[members], stage[members]), spread)
    return slowest
