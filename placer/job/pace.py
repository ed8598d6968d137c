"""Time of a micro-batch at another shape than the one whose time is known.

A stage takes the time of its products, and in each layer that of what no product takes
(`beside`). A pipeline goes at the pace of its slowest stage. With F FLOPs and l layers
in a stage, r seconds a FLOP, x seconds beside products in a layer and y of the logits,
of which the last stage alone has any:

    t = max over stages of (F r + l x + y)
    r = min over stages of (t - l x - y) / F

The known time gives r. It changes with how well products use a GPU, and gives the time
at the other shape. No product is faster than the GPU's peak: where x would leave less
than that, as where a job's graphs are not known, only what is left goes beside them.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from placer.job.beside import beside_seconds, host_wait
from placer.job.recompute import flops_again
from placer.job.work import (
    PEAK,
    micro_batch_time,
    micro_batch_work,
    product_efficiency,
    sample_work,
)

if TYPE_CHECKING:
    from placer.job.model import Compute, Job, Model

LOGIT_BYTES = 36.0


class Stage(NamedTuple):
    """What one stage does with a micro-batch, on one of its GPUs.

    ``end`` is the FLOPs of what follows the last layer, ``memory`` the seconds of its
    logits.
    """

    layers: float
    layer_flops: float
    end: float = 0.0
    memory: float = 0.0

    @property
    def flops(self) -> float:
        """All of its FLOPs."""
        return self.layers * self.layer_flops + self.end

    def seconds(self, flop: float, beside: float) -> float:
        """At so many seconds a FLOP, and so many beside them in each layer."""
        layer = self.layer_flops * flop + beside
        return self.layers * layer + self.end * flop + self.memory


def chunks(job: Job, model: Model) -> list[Stage]:
    """FLOPs and layers of each chunk, in the order in which a micro-batch passes them.

    Chunks hold whole layers, the first ones one more where these do not divide; what
    embedding and loss count for is missing from the ends (`EndStages`). The last one
    multiplies with the output layer too, and has the layers that predict further
    tokens: each joins two widths into one and has an output of its own (Megatron-LM
    d98e8a64, ``core/transformer/multi_token_prediction.py``). The embedding is looked
    up.
    """
    axes, further = job.parallelism, model.mtp_layers
    share = job.micro_batch / (axes.tp * axes.cp)
    # Forward, gradients of the inputs and, where they are trained, of the weights.
    passes = 6.0 if job.adapters is None else 4.0
    head = passes * job.sequence * model.vocab * model.hidden * share
    joined = 2 * passes * job.sequence * model.hidden**2 * share
    layer = ((sample_work(job) + flops_again(job)) * share - head) / model.layers
    number = axes.pp * axes.vp
    whole, more = divmod(model.layers + job.stages.embedding + job.stages.loss, number)
    held = [whole + min(1.0, max(0.0, more - chunk)) for chunk in range(number)]
    held[0] -= job.stages.embedding
    held[-1] -= job.stages.loss
    *others, last = (Stage(max(0.0, count), layer) for count in held)
    end = head + further * (head + joined)
    return [
        *others,
        Stage(last.layers + further, layer, end, logit_seconds(job, model)),
    ]


def stages(job: Job, model: Model) -> list[Stage]:
    """The same of each stage: of all its chunks."""
    found, axes = chunks(job, model), job.parallelism
    last = found[-1]
    layers = [sum(c.layers for c in found[s :: axes.pp]) for s in range(axes.pp)]
    *others, held = (Stage(count, last.layer_flops) for count in layers)
    return [*others, held._replace(end=last.end, memory=last.memory)]


def logit_seconds(job: Job, model: Model) -> float:
    """Seconds of memory of a micro-batch's logits, where each rank has all of them.

    ``torch.nn.functional.cross_entropy`` in FP32 (PyTorch 2.1): a copy (2 + 4 bytes),
    logarithms of the softmax (4 + 4); backward its zeros (4), softmax (8 + 4) and a
    copy back (4 + 2).
    """
    rate = job.compute.memory_bandwidth
    if not rate or job.tensor_parallel.loss != "gathered":
        return 0.0
    tokens = job.sequence / job.parallelism.cp * job.micro_batch
    return LOGIT_BYTES * tokens * model.vocab * (1 + model.mtp_layers) / rate


class Rates(NamedTuple):
    """Of a job whose time is known.

    Attributes
    ----------
    flop : float, s
        Of a FLOP of its products.
    share : float
        Of what goes beside products, what the known time has room for.
    """

    flop: float
    share: float = 1.0


def rates(job: Job, model: Model) -> Rates:
    """What the time of a job's micro-batch says of its products.

    With a rate it is that of products and all beside them, as a run shows it.
    """
    time, found = micro_batch_time(job), stages(job, model)
    each = layer_beside(job, model)
    # One stage may hold the embedding alone.
    worked = [stage for stage in found if stage.flops]

    def flop(share: float) -> float:
        beside = share * each
        return min((time - s.layers * beside - s.memory) / s.flops for s in worked)

    least = min(1e-12 / (job.compute.peak_tflops or PEAK), flop(0.0))
    if not each or flop(1.0) >= least:
        return Rates(flop(1.0))
    share = min(
        (time - s.memory - s.flops * least) / (s.layers * each)
        for s in worked
        if s.layers
    )
    return Rates(flop(share), share)


class _Known(NamedTuple):
    """Of a job whose time is known.

    Its rates, how well its products use a GPU, seconds of its slowest stage, FLOPs of a
    micro-batch.
    """

    rates: Rates
    efficiency: float
    pace: float
    work: float


@lru_cache(maxsize=1)
def _known(job: Job, model: Model) -> _Known:
    """Worked out once for all shapes that a job may take."""
    axes, found = job.parallelism, rates(job, model)
    return _Known(
        found,
        product_efficiency(job, tp=axes.tp, cp=axes.cp),
        pace(job, model, found),
        micro_batch_work(job),
    )


def compute_at(job: Job, changed: Job) -> Compute:
    """Compute times of a job that another shape or recompute mode makes of ``job``.

    A measured time and a rate follow the slowest stage, and how well products use a GPU
    (`product_efficiency`).
    """
    compute, axes = job.compute, changed.parallelism
    if job.model is None:
        return compute
    own = _known(job, job.model)
    better = product_efficiency(changed, tp=axes.tp, cp=axes.cp) / own.efficiency
    # Its own pace is its time but for rounding: at its own shape nothing changes.
    there = own.rates._replace(flop=own.rates.flop / better)
    longer = pace(changed, job.model, there) / own.pace
    if compute.micro_batch_time:
        return replace(compute, micro_batch_time=compute.micro_batch_time * longer)
    more = micro_batch_work(changed) / own.work
    return replace(compute, tflops_per_gpu=compute.tflops_per_gpu * (more / longer))


def layer_beside(job: Job, model: Model) -> float:
    """Seconds of a layer and micro-batch that its products do not take."""
    return beside_seconds(job, model) + host_wait(job, model)


def pace(job: Job, model: Model, at: Rates) -> float:
    """Seconds of the slowest stage, at such rates."""
    beside = at.share * layer_beside(job, model)
    return max(stage.seconds(at.flop, beside) for stage in stages(job, model))


def waiting_share(job: Job, model: Model) -> float:
    """Share of a known micro-batch in which GPUs of the first stage wait for hosts."""
    time, host = micro_batch_time(job), host_wait(job, model)
    waits = rates(job, model).share * host if time and host else 0.0
    return stages(job, model)[0].layers * waits / time if waits else 0.0
