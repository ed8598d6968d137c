"""Bytes and compute times of one chunk, from the shape of the model."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, inf
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from placer.job.model import Job, Model


@dataclass(frozen=True)
class Sizes:
    """What a full chunk of one micro-batch takes (seconds) and sends (bytes a GPU).

    The first and the last chunk hold fewer layers (``embedding`` and ``loss`` less) and
    the vocabulary's parameters.
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

    def part(self, is_first: bool, is_last: bool) -> float:
        """Layers of a chunk, as a share of a full one's."""
        if self.layers == 0.0:
            return 1.0
        missing = self.embedding * is_first + self.loss * is_last
        left = 1.0 - missing / self.layers
        return left if left > 1e-12 else 0.0

    def dense_parameters(self, is_first: bool, is_last: bool) -> float:
        """Parameters outside experts of a chunk."""
        held = self.part(is_first, is_last) * self.layers * self.dense_layer
        held += self.input_vocabulary if is_first else 0.0
        return held + (self.output_vocabulary if is_last else 0.0)

    def expert_parameters(self, is_first: bool, is_last: bool) -> float:
        """Parameters inside experts of a chunk."""
        return self.part(is_first, is_last) * self.layers * self.expert_layer


def sizes(job: Job) -> Sizes:
    """Sizes of a job; without a model only its times."""
    axes, model = job.parallelism, job.model
    micro_batch = _micro_batch_time(job)
    more = 0.0 if model is None else _repeated(job, model) / _once(job, model)
    forward = micro_batch / (3 * (1 + more)) / axes.vp
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
        forward / layers,
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
        vocabulary if model.tied_embeddings and axes.pp > 1 else 0.0,
    )


def paces(job: Job) -> list[list[float]]:
    """By rank and chunk: how long its work takes, the slowest rank's mean chunk 1."""
    axes, model = job.parallelism, job.model
    if model is None:
        return [[1.0] * axes.vp for _ in range(axes.pp)]
    head = 6.0 * job.sequence * model.vocab * model.hidden
    layer = (_once(job, model) + _repeated(job, model) - head) / model.layers
    counted = model.layers + job.stages.embedding + job.stages.loss
    number, wait = axes.pp * axes.vp, job.compute.launch_wait
    held = [[0.0] * axes.vp for _ in range(axes.pp)]
    for at in range(number):
        count = float(counted // number)
        count += min(1.0, max(0.0, counted % number - at))
        count -= job.stages.embedding if at == 0 else 0.0
        count -= job.stages.loss if at == number - 1 else 0.0
        held[at % axes.pp][at // axes.pp] = max(0.0, count)
    # The rate at which no rank takes longer than a micro-batch is said to take.
    flop = inf
    for rank, counts in enumerate(held):
        flops = sum(counts) * layer + (head if rank == axes.pp - 1 else 0.0)
        if flops == 0.0:
            continue
        flop = min(flop, (_micro_batch_time(job) - sum(counts) * wait) / flops)
    times = [[count * (layer * flop + wait) for count in counts] for counts in held]
    times[-1][-1] += head * flop
    slowest = max(sum(row) for row in times)
    # What embedding and loss count for they take, if that sets no new pace.
    one = layer * flop + wait
    lacking = job.stages.embedding * one
    times[0][0] += min(lacking, max(0.0, slowest - sum(times[0])))
    lacking = max(0.0, job.stages.loss * one - head * flop)
    times[-1][-1] += min(lacking, max(0.0, slowest - sum(times[-1])))
    mean = slowest / axes.vp
    return [[time / mean for time in row] for row in times]


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


def _once(job: Job, model: Model) -> float:
    """FLOPs of a sample when everything is kept."""
    matrices = 3 if model.gated else 2
    visited = model.top_k + model.shared_experts
    active = model.layers * _attention(model) + model.vocab * model.hidden
    active += (model.layers - model.moe_layers) * matrices * model.hidden * model.ffn
    active += model.moe_layers * model.hidden * model.experts
    active += model.moe_layers * visited * matrices * model.hidden * model.expert_ffn
    scores: float = 6 * model.layers * model.heads * sum(_of_head(model)) * job.sequence
    scores /= job.compute.attention_rate
    return job.sequence * (6 * active + scores)


def _repeated(job: Job, model: Model) -> float:
    """FLOPs of a sample that its backward pass does again, module by module."""
    memory, width = job.memory, model.hidden
    expert = (3 if model.gated else 2) * width * model.expert_ffn
    dense = model.layers - model.moe_layers
    of_module = {
        "attention": model.layers * _attention(model),
        "mlp": dense * (3 if model.gated else 2) * width * model.ffn,
        "router": model.moe_layers * width * model.experts,
        "experts": model.moe_layers * model.top_k * expert,
        "shared": model.moe_layers * model.shared_experts * expert,
    }
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


def layers_twice(job: Job) -> float:
    """Share of the layers that run their forward pass twice."""
    if job.model is None or job.memory.recompute != "full":
        return 0.0
    if job.memory.recompute_method == "uniform":
        return 1.0
    axes, ends = job.parallelism, job.stages
    held = (job.model.layers + ends.embedding + ends.loss) / (axes.pp * axes.vp)
    return min(1.0, job.memory.recompute_layers / held)
