"""Bytes and compute times of one chunk, from the shape of the model."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING

from tests.cost.reference.beside import layers_twice, of_layer

if TYPE_CHECKING:
    from placer.job.model import Job
    from placer.job.models import Model


@dataclass(frozen=True)
class Sizes:
    """What a full chunk of one micro-batch takes (seconds) and sends (bytes a GPU).

    The first and the last chunk hold fewer layers (``embedding`` and ``loss`` less) and
    the vocabulary's parameters. ``adapters`` are those of a layer, outside and inside
    experts, where these alone are trained.
    """

    forward: float
    backward: float
    layers: float = 0.0
    moe_layers: float = 0.0
    embedding: float = 0.0
    loss: float = 0.0
    layer_forward: float = 0.0
    attention_share: float = 0.0
    slab: float = 0.0
    key_values: float = 0.0
    queries: float = 0.0
    outputs: float = 0.0
    message: float = 0.0
    tokens: float = 0.0
    dense_layer: float = 0.0
    expert_layer: float = 0.0
    input_vocabulary: float = 0.0
    output_vocabulary: float = 0.0
    tied: float = 0.0
    adapters: tuple[float, float] | None = None

    def part(self, is_first: bool, is_last: bool) -> float:
        """Layers of a chunk, as a share of a full one's."""
        if self.layers == 0.0:
            return 1.0
        missing = self.embedding * is_first + self.loss * is_last
        left = 1.0 - missing / self.layers
        return left if left > 1e-12 else 0.0

    def trained(self, axis: str, is_first: bool, is_last: bool) -> float:
        """Parameters of a chunk that have gradients, inside experts on ``edp``."""
        if self.adapters is None:
            return self.held(axis, is_first, is_last)
        layers = self.part(is_first, is_last) * self.layers
        return layers * self.adapters[axis == "edp"]

    def held(self, axis: str, is_first: bool, is_last: bool) -> float:
        """All of them."""
        layers = self.part(is_first, is_last) * self.layers
        beside = 0.0 if self.adapters is None else self.adapters[axis == "edp"]
        if axis == "edp":
            return layers * (self.expert_layer + beside)
        held = layers * (self.dense_layer + beside)
        held += self.input_vocabulary if is_first else 0.0
        return held + (self.output_vocabulary if is_last else 0.0)


def sizes(job: Job) -> Sizes:
    """Sizes of a job; without a model only its times."""
    axes, model = job.parallelism, job.model
    micro_batch = _micro_batch_time(job)
    forward = micro_batch / 3 / axes.vp
    if model is not None:
        whole = _once(job, model) + _repeated(job, model)
        forward = micro_batch * _forward(job, model) / whole / axes.vp
    backward = micro_batch / axes.vp - forward
    if model is None:
        return Sizes(forward, backward)
    ends = job.stages
    layers = (model.layers + ends.embedding + ends.loss) / (axes.pp * axes.vp)
    matrices = 3 if model.gated else 2
    attention = _attention(model)
    feed_forward = matrices * model.hidden * model.ffn
    expert = matrices * model.hidden * model.expert_ffn
    norms = 2 * model.hidden
    dense = (model.layers - model.moe_layers) * (attention + feed_forward + norms)
    router = model.hidden * model.experts
    shared = model.shared_experts * expert
    dense += model.moe_layers * (attention + router + shared + norms)
    slab = (
        (job.sequence / axes.cp) * job.micro_batch * model.hidden * job.bytes.activation
    )
    message = slab / axes.tp if job.tensor_parallel.sequence else slab
    query, value = _of_head(model)
    scores = model.heads * (query + value) / 2 * job.sequence
    scores /= job.compute.attention_rate
    heads = max(1.0, model.kv_heads / axes.tp)
    of_one = slab / model.hidden
    rows = model.vocab
    if model.vocab_multiple:
        rows = ceil(model.vocab / (model.vocab_multiple * axes.tp))
        rows *= model.vocab_multiple * axes.tp
    vocabulary = model.hidden * rows / axes.tp
    has_output = not model.tied_embeddings or axes.pp > 1
    return Sizes(
        forward,
        backward,
        layers,
        layers * model.moe_layers / model.layers,
        ends.embedding,
        ends.loss,
        forward / layers * (1 - _waits(job, model)),
        scores / (attention + feed_forward + norms + scores),
        slab,
        of_one * heads * (query + value),
        of_one * query * model.heads / axes.tp,
        of_one * value * model.heads / axes.tp,
        message,
        message * model.top_k * job.expert_parallel.imbalance,
        dense / model.layers / axes.tp,
        model.moe_layers * model.experts * expert / model.layers / axes.etp / axes.ep,
        vocabulary,
        vocabulary if has_output else 0.0,
        vocabulary
        if model.tied_embeddings and axes.pp > 1 and job.adapters is None
        else 0.0,
        _mean_adapters(job, model),
    )


def _waits(job: Job, model: Model) -> float:
    """Share of a micro-batch in which GPUs of the first rank wait for their hosts."""
    held, layer, head = _held(job, model)
    counts, beside = [sum(row) for row in held], of_layer(job)
    if not beside[2]:
        return 0.0
    wait = _rates(job, counts, layer, head)[1]
    return counts[0] * wait * beside[2] / sum(beside) / _micro_batch_time(job)


def _mean_adapters(job: Job, model: Model) -> tuple[float, float] | None:
    """Of the mean layer on one GPU."""
    if job.adapters is None:
        return None
    axes = job.parallelism
    dense, experts = _adapters(job, model)
    return (
        dense / model.layers / axes.tp,
        experts / model.layers / axes.etp / axes.ep,
    )


def _adapters(job: Job, model: Model) -> tuple[float, float]:
    """Parameters of all adapters outside and inside experts, matrix by matrix."""
    given = job.adapters
    if given is None:
        return 0.0, 0.0
    width, heads = model.hidden, model.heads
    query, value = _of_head(model)
    if model.kv_lora_rank:
        matrices = [
            (model.q_lora_rank or width, heads * query),
            (width, model.kv_lora_rank + model.rope_head_dim),
            (model.kv_lora_rank, heads * (model.qk_head_dim + value)),
            (heads * value, width),
        ]
        if model.q_lora_rank:
            matrices.append((width, model.q_lora_rank))
    else:
        matrices = [
            (width, heads * query),
            (width, model.kv_heads * query),
            (width, model.kv_heads * value),
            (heads * value, width),
        ]
    dense, experts = 0.0, 0.0
    up = 2 if model.gated else 1
    for layer in range(model.layers):
        here = list(matrices)
        if layer >= model.moe_layers:
            here += [(width, model.ffn)] * up + [(model.ffn, width)]
        elif model.shared_experts:
            shared = model.shared_experts * model.expert_ffn
            here += [(width, shared)] * up + [(shared, width)]
        dense += sum(a + b for a, b in here)
        if layer < model.moe_layers and given.experts:
            one = (up + 1) * (width + model.expert_ffn)
            experts += model.experts * one
    rank = float(given.rank)
    if given.parameters:
        rank = given.parameters / (dense + experts)
    return dense * rank, experts * rank


def paces(job: Job) -> list[list[float]]:
    """By rank and chunk: how long its work takes, the slowest rank's mean chunk 1."""
    if job.model is None:
        return [[1.0] * job.parallelism.vp for _ in range(job.parallelism.pp)]
    return _paces(job, job.model)[0]


def beside_layers(job: Job) -> tuple[float, float]:
    """What of the first and of the last chunk is no layer, in the same unit."""
    if job.model is None:
        return 0.0, 0.0
    scaled, layers = _paces(job, job.model)
    first, last = (scaled[at][at] - layers[at][at] for at in (0, -1))
    return first, last


def _paces(job: Job, model: Model) -> tuple[list[list[float]], list[list[float]]]:
    """By rank and chunk, all of its work and its layers alone."""
    axes = job.parallelism
    held, layer, head = _held(job, model)
    flop, wait, output = _rates(job, [sum(counts) for counts in held], layer, head)
    layers = [[count * (layer * flop + wait) for count in counts] for counts in held]
    times = [list(row) for row in layers]
    times[-1][-1] += output
    slowest = max(sum(row) for row in times)
    # What embedding and loss count for they take, if that sets no new pace.
    one = layer * flop + wait
    lacking = job.stages.embedding * one
    times[0][0] += min(lacking, max(0.0, slowest - sum(times[0])))
    lacking = max(0.0, job.stages.loss * one - output)
    times[-1][-1] += min(lacking, max(0.0, slowest - sum(times[-1])))
    mean = slowest / axes.vp
    return _in_units(times, mean), _in_units(layers, mean)


def _in_units(table: list[list[float]], unit: float) -> list[list[float]]:
    return [[value / unit for value in row] for row in table]


def _held(job: Job, model: Model) -> tuple[list[list[float]], float, float]:
    """Layers by rank and chunk; FLOPs of a sample in a layer, and after the last."""
    axes = job.parallelism
    passes = 6.0 if job.adapters is None else 4.0
    head = passes * job.sequence * model.vocab * model.hidden
    layer = (_once(job, model) + _repeated(job, model) - head) / model.layers
    counted = model.layers + job.stages.embedding + job.stages.loss
    number = axes.pp * axes.vp
    held = [[0.0] * axes.vp for _ in range(axes.pp)]
    for at in range(number):
        count = float(counted // number)
        count += min(1.0, max(0.0, counted % number - at))
        count -= job.stages.embedding if at == 0 else 0.0
        count -= job.stages.loss if at == number - 1 else 0.0
        held[at % axes.pp][at // axes.pp] = max(0.0, count)
    return held, layer, head


def _rates(
    job: Job, held: list[float], layer: float, head: float
) -> tuple[float, float, float]:
    """Seconds of a FLOP of the whole replica, beside products in a layer, of outputs.

    At the rate no rank takes longer than a micro-batch is said to take. What is beside
    products shrinks until these are no faster than their GPUs' peak. Outputs are beside
    them where their rate is known.
    """
    whole, beside = _micro_batch_time(job), sum(of_layer(job))
    axes = job.parallelism
    flops = [count * layer for count in held]
    apart = [count * beside for count in held]
    output = job.compute.output_tflops * 1e12 * axes.tp * axes.cp
    if output:
        apart[-1] += head * job.micro_batch / output
    else:
        flops[-1] += head

    def slowest(share: float) -> float:
        return min(
            (whole - share * more) / work
            for more, work in zip(apart, flops, strict=True)
            if work
        )

    peak = (job.compute.peak_tflops or 989.0) * 1e12 * axes.tp * axes.cp
    least = min(job.micro_batch / peak, slowest(0.0))
    share = 1.0
    if slowest(1.0) < least:
        share = min(
            (whole - work * least) / more
            for more, work in zip(apart, flops, strict=True)
            if more and work
        )
    flop = slowest(share)
    own = share * head * job.micro_batch / output if output else head * flop
    return flop, share * beside, own


def _head(model: Model) -> float:
    return model.head_dim or model.hidden / model.heads


def _of_head(model: Model) -> tuple[float, float]:
    """Widths of one head's queries and keys, and of its values."""
    if model.kv_lora_rank:
        return model.qk_head_dim + model.rope_head_dim, model.v_head_dim
    return _head(model), _head(model)


def _attention(model: Model) -> int:
    width, head = model.hidden, _head(model)
    derived = round(2 * width * (model.heads + model.kv_heads) * head)
    if model.kv_lora_rank:
        query = model.qk_head_dim + model.rope_head_dim
        down = width * (model.q_lora_rank + model.kv_lora_rank + model.rope_head_dim)
        per_head = (model.q_lora_rank or width) * query
        per_head += model.kv_lora_rank * (model.qk_head_dim + model.v_head_dim)
        per_head += model.v_head_dim * width
        norms = model.q_lora_rank + model.kv_lora_rank
        derived = down + norms + model.heads * per_head
    return model.attention_parameters or derived


def _micro_batch_time(job: Job) -> float:
    axes, model = job.parallelism, job.model
    if job.compute.micro_batch_time or model is None:
        return job.compute.micro_batch_time
    flops = job.micro_batch * (_once(job, model) + _repeated(job, model))
    gpus = axes.tp * axes.cp * axes.pp
    return flops / (gpus * job.compute.tflops_per_gpu * 1e12)


def _active(job: Job, model: Model) -> tuple[float, float]:
    """Parameters that multiply a token: those of the model, those of adapters."""
    matrices = 3 if model.gated else 2
    visited = model.top_k + model.shared_experts
    active = model.layers * _attention(model) + model.vocab * model.hidden
    active += (model.layers - model.moe_layers) * matrices * model.hidden * model.ffn
    active += model.moe_layers * model.hidden * model.experts
    active += model.moe_layers * visited * matrices * model.hidden * model.expert_ffn
    dense, experts = _adapters(job, model)
    return active, dense + (experts * model.top_k / model.experts if experts else 0.0)


def _forward(job: Job, model: Model) -> float:
    """FLOPs of a sample's forward pass."""
    scores = 2 * model.layers * model.heads * sum(_of_head(model)) * job.sequence
    return job.sequence * (
        2 * sum(_active(job, model)) + scores / job.compute.attention_rate
    )


def _once(job: Job, model: Model) -> float:
    """FLOPs of a sample when everything is kept."""
    active, beside = _active(job, model)
    scores: float = 6 * model.layers * model.heads * sum(_of_head(model)) * job.sequence
    scores /= job.compute.attention_rate
    products = 6 * active if job.adapters is None else 4 * active + 6 * beside
    return job.sequence * (products + scores)


def _repeated(job: Job, model: Model) -> float:
    """FLOPs of a sample that its backward pass does again, module by module."""
    memory, width = job.memory, model.hidden
    expert = (3 if model.gated else 2) * width * model.expert_ffn
    dense = model.layers - model.moe_layers
    of_module: dict[str, float] = {
        "attention": model.layers * _attention(model),
        "mlp": dense * (3 if model.gated else 2) * width * model.ffn,
        "router": model.moe_layers * width * model.experts,
        "experts": model.moe_layers * model.top_k * expert,
        "shared": model.moe_layers * model.shared_experts * expert,
    }
    of_module["adapters"] = _active(job, model)[1]
    up = model.heads * model.kv_lora_rank * (model.qk_head_dim + model.v_head_dim)
    up += model.heads * model.q_lora_rank * (model.qk_head_dim + model.rope_head_dim)
    core = 2 * model.layers * model.heads * sum(_of_head(model)) * job.sequence
    core /= job.compute.attention_rate
    if memory.recompute == "none":
        return 0.0
    if memory.recompute == "op":
        return job.sequence * sum(of_module.values())
    if memory.recompute == "full":
        return layers_twice(job) * job.sequence * (2 * sum(of_module.values()) + core)
    again = 0.0
    for module in memory.recompute_modules:
        if module == "core_attn":
            again += core
        elif module == "mla_up_proj":
            again += 2 * model.layers * up
        elif module == "mlp":
            again += 2 * of_module["mlp"]
        elif module == "moe":
            again += 2 * (of_module["router"] + of_module["experts"])
    if {"moe", "shared_experts"} & {*memory.recompute_modules}:
        again += 2 * of_module["shared"]
    return job.sequence * again
