"""Time of a micro-batch at another shape than the one whose time is known.

A stage takes the time of its products, and in each layer that of what no product takes
(`beside`). A pipeline goes at the pace of its slowest stage. With F FLOPs and l layers
in a stage, r seconds a FLOP, x seconds beside products in a layer and y of the output
and its logits, of which the last stage alone has any:

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
from placer.job.models import Model
from placer.job.work import (
    PEAK,
    flops_again,
    micro_batch_time,
    micro_batch_work,
    product_efficiency,
    sample_work,
)

if TYPE_CHECKING:
    from placer.job.model import Compute, Job
    from placer.job.parallel import EndStages

LOGIT_BYTES = 36.0


class Stage(NamedTuple):
    """What one stage does with a micro-batch, on one of its GPUs.

    ``end`` is the FLOPs of what follows the last layer at the rate of all products,
    ``end_s`` the seconds of what has a rate of its own, and of logits.
    """

    layers: float
    layer_flops: float
    end: float = 0.0
    end_s: float = 0.0

    @property
    def flops(self) -> float:
        """All of its FLOPs."""
        return self.layers * self.layer_flops + self.end

    def seconds(self, at: Rates, beside: float) -> float:
        """At such rates, with so many seconds beside the products of each layer."""
        return self.flops * at.flop + at.share * self.apart(beside)

    def apart(self, beside: float) -> float:
        """Seconds that its FLOPs do not take."""
        return self.layers * beside + self.end_s


class Share(NamedTuple):
    """What one GPU does of a micro-batch, whatever stages the layers lie in.

    ``end`` and ``end_s`` are those of `Stage`, ``beside`` the seconds of a layer that
    its products do not take.
    """

    layer_flops: float
    end: float
    end_s: float
    beside: float

    def stage(self, layers: float) -> Stage:
        """A stage or chunk of so many layers."""
        return Stage(layers, self.layer_flops)

    def last(self, layers: float) -> Stage:
        """The last one, with what follows its layers."""
        return Stage(layers, self.layer_flops, self.end, self.end_s)


class Held(NamedTuple):
    """Layers of each chunk, in the order in which a micro-batch passes them, and stage.

    The layers that predict further tokens are among those of the last.
    """

    chunks: tuple[float, ...]
    stages: tuple[float, ...]


def share_of(job: Job, model: Model) -> Share:
    """What one of the GPUs of a job does.

    The last stage multiplies with the output layer too, and the layers that predict
    further tokens each join two widths into one and have an output of their own
    (Megatron-LM d98e8a64, ``core/transformer/multi_token_prediction.py``). The
    embedding is looked up. Outputs multiply in BF16 whatever layers do (the same,
    ``core/models/gpt/gpt_model.py``), at a rate of their own where it is known.
    """
    axes = job.parallelism
    share = job.micro_batch / (axes.tp * axes.cp)
    # Forward, gradients of the inputs and, where they are trained, of the weights.
    passes = 6.0 if job.adapters is None else 4.0
    head = passes * job.sequence * model.vocab * model.hidden * share
    joined = 2 * passes * job.sequence * model.hidden**2 * share
    end, end_s = model.mtp_layers * joined, logit_seconds(job, model)
    outputs, rate = head * (1 + model.mtp_layers), job.compute.output_tflops * 1e12
    if rate:
        end_s += outputs / rate
    else:
        end += outputs
    return Share(
        ((sample_work(job) + flops_again(job)) * share - head) / model.layers,
        end,
        end_s,
        beside_seconds(job, model) + host_wait(job, model),
    )


@lru_cache(maxsize=4096)
def held(model: Model, pp: int, vp: int, ends: EndStages) -> Held:
    """Where the layers of a model lie.

    Chunks hold whole layers, the first ones one more where these do not divide; what
    embedding and loss count for is missing from the ends.
    """
    number = pp * vp
    whole, more = divmod(model.layers + ends.embedding + ends.loss, number)
    layers = [whole + min(1.0, max(0.0, more - chunk)) for chunk in range(number)]
    layers[0] -= ends.embedding
    layers[-1] -= ends.loss
    layers = [max(0.0, count) for count in layers]
    layers[-1] += model.mtp_layers
    return Held(tuple(layers), tuple(sum(layers[stage::pp]) for stage in range(pp)))


def held_by(job: Job, model: Model) -> Held:
    """Where the layers of a job's model lie."""
    return held(model, job.parallelism.pp, job.parallelism.vp, job.stages)


def stages(share: Share, layers: Held) -> list[Stage]:
    """What stages do, the last one first; of others that are alike, one."""
    *others, last = layers.stages
    return [share.last(last), *map(share.stage, dict.fromkeys(others))]


def logit_seconds(job: Job, model: Model) -> float:
    """Seconds of memory of a micro-batch's logits, where each rank has all of them.

    ``torch.nn.functional.cross_entropy`` in FP32 (PyTorch 2.1): a copy (2 + 4 bytes),
    logarithms of the softmax (4 + 4); backward its zeros (4), softmax (8 + 4) and a
    copy back (4 + 2).
    """
    rate = job.compute.memory_bandwidth
    if not rate or job.tensor_parallel.loss != "gathered":
        return 0.0
    return LOGIT_BYTES * job.tokens * model.vocab * (1 + model.mtp_layers) / rate


class Rates(NamedTuple):
    """Of a job whose time is known."""

    flop: float  # s: of a FLOP of its products
    share: float = 1.0  # of what goes beside them, what the known time has room for


def rates(job: Job, model: Model) -> Rates:
    """What the time of a job's micro-batch says of its products."""
    share, time = share_of(job, model), micro_batch_time(job)
    return rates_at(time, share, held_by(job, model), job.compute)


def rates_at(time: float, share: Share, layers: Held, compute: Compute) -> Rates:
    """What a micro-batch that takes so long says of its products.

    With a rate it is that of products and all beside them, as a run shows it.
    """
    # One stage may hold the embedding alone.
    worked = [
        (stage.flops, stage.apart(share.beside))
        for stage in stages(share, layers)
        if stage.flops
    ]

    def flop(part: float) -> float:
        return min((time - part * apart) / flops for flops, apart in worked)

    least = min(1e-12 / (compute.peak_tflops or PEAK), flop(0.0))
    if flop(1.0) >= least:
        return Rates(flop(1.0))
    part = min((time - flops * least) / apart for flops, apart in worked if apart)
    return Rates(flop(part), part)


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
    found = rates(job, model)
    return _Known(
        found,
        product_efficiency(job),
        pace(share_of(job, model), held_by(job, model), found),
        micro_batch_work(job),
    )


def reached(job: Job, model: Model, changed: Job) -> Rates:
    """The rates of another shape or recompute mode of a job whose time is known."""
    own = _known(job, model)
    better = product_efficiency(changed) / own.efficiency
    # Its own pace is its time but for rounding: at its own shape nothing changes.
    return own.rates._replace(flop=own.rates.flop / better)


def compute_at(job: Job, changed: Job) -> Compute:
    """Compute times of a job that another shape or recompute mode makes of ``job``.

    A measured time and a rate follow the slowest stage, and how well products use a GPU
    (`product_efficiency`).
    """
    compute, model = job.compute, job.model
    if model is None:
        return compute
    own, share = _known(job, model), share_of(changed, model)
    there = reached(job, model, changed)
    longer = pace(share, held_by(changed, model), there) / own.pace
    if compute.micro_batch_time:
        return replace(compute, micro_batch_time=compute.micro_batch_time * longer)
    more = micro_batch_work(changed) / own.work
    return replace(compute, tflops_per_gpu=compute.tflops_per_gpu * (more / longer))


def pace(share: Share, layers: Held, at: Rates) -> float:
    """Seconds of the slowest stage, at such rates."""
    return max(stage.seconds(at, share.beside) for stage in stages(share, layers))


def waiting_share(job: Job, model: Model) -> float:
    """Share of a known micro-batch in which GPUs of the first stage wait for hosts."""
    time, host = micro_batch_time(job), host_wait(job, model)
    waits = rates(job, model).share * host if time and host else 0.0
    return held_by(job, model).stages[0] * waits / time if waits else 0.0
