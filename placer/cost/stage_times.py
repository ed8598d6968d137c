"""What TP, CP, EP and PP add to each stage of each replica, and the bytes they send.

A stage waits for the slowest of its groups, so every time is the maximum over the
groups that touch the stage; arrays have shape (D, P): D data-parallel replicas, P
stages.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce

import numpy as np

from placer.base.arrays import FloatArray, IntArray
from placer.cost.links import Cost, Traffic
from placer.cost.network import Network
from placer.cost.volumes import EP_OPERATIONS_PER_PASS, Volumes
from placer.cost.work import Work
from placer.job.model import Job
from placer.job.work import experts_again, layers_again

# A dispatch, or a combine, takes so much longer as a framework calls it than its kernel
# does: routing maps before, copies out of the buffers after (as KERNEL_SHARE, on 8 GPUs
# of B200 and GB200; 0.24 ms on 24).
EXPERT_CALL_S = 0.13e-3


@dataclass(frozen=True, eq=False)
class StageTime:
    """What one axis adds."""

    # forward and backward, (D, P), s: added to a full chunk's forward and backward; for
    # ``pp`` both hold the hop to the next stage.
    forward: FloatArray
    backward: FloatArray
    # (groups,), s: one operation of each group, to name the slowest.
    group_seconds: FloatArray
    traffic: Traffic


def tensor_time(network: Network, job: Job, sizes: Volumes, times: Work) -> StageTime:
    """The exposed time of tensor-parallel collectives.

    With sequence parallelism a layer's forward runs two all-gathers and two
    reduce-scatters, its backward the same; the gathers that backward repeats for the
    weight gradients run beside the input-gradient product (Megatron-LM, layers.py).
    Without, it runs two all-reduces each way. Without overlap each pass waits for them.
    Overlapped ones run in ``t`` pieces beside their matrix product: the last piece is
    seen, or what outlasts the product. Only groups within a scale-up domain overlap, as
    the buffers of the pieces are in reach of NVLink alone (TransformerEngine,
    ``common/comm_gemm_overlap/userbuffers``; PyTorch, ``SymmetricMemory``). Layers that
    backward computes again repeat the collectives of their forward.
    """
    axes = job.parallelism
    members = axes.ranks_of_group["tp"]
    if job.tensor_parallel.sequence:
        operations, again = 4, 2
        cost = network.gather(members, sizes.tp_slab)
    else:
        operations, again = 2, 0
        cost = network.all_reduce(members, sizes.tp_slab, job.collectives.all_reduce)
    seen = cost.seconds
    if job.overlap.tp:
        product = times.layer_forward_s / operations
        pieces = np.maximum(seen / axes.tp, seen - product)
        seen = np.where(network.stays_inside(members), pieces, seen)
    passes = 2 + layers_again(job)
    added = operations * _per_stage(job, members, seen) * sizes.layers_per_chunk
    rounds = _layers_a_step(job, sizes) * (passes * operations + again)
    backward = (passes - 1) * added
    return StageTime(added, backward, cost.seconds, cost.traffic.times(rounds))


def context_time(network: Network, job: Job, sizes: Volumes, times: Work) -> StageTime:
    """The exposed time of context-parallel communication.

    ``p2p``: each layer passes its keys and values around the ring, ``c-1`` hops forward
    and twice that backward (keys and values again, and their gradients), beside
    attention proper. ``all_gather``: it gathers them before attention; backward gathers
    them again and reduce-scatters their gradients. ``a2a``: an all-to-all of queries,
    keys and values before attention and one of its outputs after, both ways. Only the
    ring can hide (Megatron-LM, ``cp_comm_type``).
    """
    axes = job.parallelism
    members = axes.ranks_of_group["cp"]
    kind = job.context_parallel.communication
    if kind == "all_gather":
        cost = network.gather(members, axes.cp * sizes.cp_block)
        return _context(job, sizes, cost.seconds, 2.0, [cost.traffic.times(3.0)])
    if kind == "a2a":
        before = network.all_to_all(members, sizes.cp_queries + sizes.cp_block)
        after = network.all_to_all(members, sizes.cp_outputs)
        traffic = [before.traffic.times(2.0), after.traffic.times(2.0)]
        return _context(job, sizes, before.seconds + after.seconds, 1.0, traffic)
    hops = axes.cp - 1
    sent = network.pass_on(members, sizes.cp_block)
    ring = sent.seconds * hops
    hidden = times.layer_forward_s * times.attention_share if job.overlap.cp else 0.0
    return _context(job, sizes, ring, 2.0, [sent.traffic.times(3.0 * hops)], hidden)


def _context(
    job: Job,
    sizes: Volumes,
    seconds: FloatArray,
    backward: float,
    traffic: list[Traffic],
    hidden: float = 0.0,
) -> StageTime:
    """Time of groups that take ``seconds`` in a layer's forward.

    Backward takes ``backward`` times that, and forward's again in layers that it
    computes again; ``traffic`` is a layer's, both ways.
    """
    members = job.parallelism.ranks_of_group["cp"]
    seen = np.maximum(seconds - hidden, 0.0)
    forward = _per_stage(job, members, seen) * sizes.layers_per_chunk
    again = layers_again(job)
    more = 1 + again / (1 + backward)
    total = reduce(Traffic.plus, traffic).times(more * _layers_a_step(job, sizes))
    return StageTime(forward, (backward + again) * forward, seconds, total)


def expert_time(network: Network, job: Job, sizes: Volumes, times: Work) -> StageTime:
    """The exposed time of expert dispatch and combine, one each a layer and pass.

    The busiest rank sets the time; bytes are counted as if all were alike. Layers whose
    experts backward computes again repeat both.
    """
    mode, members = job.expert_parallel, job.parallelism.ranks_of_group["ep"]
    cost = expert_exchange(network, job, sizes, members)
    slowest = _per_stage(job, members, cost.seconds)
    forward, backward = expert_passes(job, sizes, times.layer_forward_s, slowest)
    passes = 2 + experts_again(job)
    rounds = passes * EP_OPERATIONS_PER_PASS * job.micro_batches / mode.imbalance
    rounds *= _layers(sizes, sizes.moe_layers_per_chunk)
    return StageTime(forward, backward, cost.seconds, cost.traffic.times(rounds))


def expert_exchange(
    network: Network, job: Job, sizes: Volumes, members: IntArray
) -> Cost:
    """One dispatch of a layer, or one combine, among each row of ranks."""
    return network.all_to_all(members, sizes.ep_buffer, job.expert_copies)


def expert_passes(
    job: Job, sizes: Volumes, layer_forward_s: float, seconds: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """What all-to-alls of so many seconds add to a full chunk's forward and backward.

    Each is a call of a framework, with what it does before and after the bytes move.
    What is hidden takes multiprocessors from the work beside it. Elementwise, s.
    """
    per_pass = EP_OPERATIONS_PER_PASS * sizes.moe_layers_per_chunk
    hides = layer_forward_s / EP_OPERATIONS_PER_PASS if job.overlap.ep else 0.0
    total = seconds + EXPERT_CALL_S
    hidden = np.minimum(total, hides)
    added = (total - (1 - job.expert_parallel.sm_share) * hidden) * per_pass
    return added, (1 + experts_again(job)) * added


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
    forward = cost.traffic.times(axes.vp * job.micro_batches)
    if axes.vp > 1:
        # The last chunk's activations end with the loss and do not close the ring.
        closing = network.send(members[:, -1], members[:, 0], sizes.pp_message)
        forward = forward.plus(closing.traffic.times(-job.micro_batches))
    traffic = forward.plus(forward.reversed())
    return StageTime(slowest, slowest, hop.sum(axis=1), traffic)


STAGE_TIMES: Mapping[str, Callable[[Network, Job, Volumes, Work], StageTime]] = {
    "tp": tensor_time,
    "cp": context_time,
    "ep": expert_time,
    "pp": lambda network, job, sizes, _: pipeline_hops(network, job, sizes),
}


def _layers(sizes: Volumes, in_full_chunk: float) -> float:
    """Layers that a pipeline rank holds in all its chunks, the mean over ranks."""
    return in_full_chunk * float(sizes.layer_share.sum()) / sizes.stages


def _layers_a_step(job: Job, sizes: Volumes) -> float:
    """Layers that a rank passes in a step, once for each micro-batch."""
    return job.micro_batches * _layers(sizes, sizes.layers_per_chunk)


def _per_stage(job: Job, members: IntArray, seconds: FloatArray) -> FloatArray:
    """Largest time among the groups that touch each (replica, stage); shape (D, P)."""
    axes = job.parallelism
    slowest = np.zeros((axes.dp, axes.pp))
    replica, stage = axes.coordinates["dp"], axes.coordinates["pp"]
    spread = np.broadcast_to(seconds[:, None], members.shape)
    np.maximum.at(slowest, (replica[members], stage[members]), spread)
    return slowest
