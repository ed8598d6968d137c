"""Time of a layer that no product takes: bytes of memory, launches, the host.

What each costs is said beside it. By hand: DeepSeek-V3 in MXFP8 with ep 32 keeps 8 of
256 experts of 44 M parameters on a GPU. Read for both passes (2 x 1.03 bytes), their
gradients read and added to (2 x 2), they move 2.1 GB, 0.32 ms at 0.83 of 8 TB/s. Eight
experts launch for 0.24 ms, and the host takes 2.5 ms.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from placer.job.memory import INPUT_BYTES, gradient_bytes
from placer.job.models import Model, attention_widths, expert_parameters
from placer.job.work import experts_again, layers_again

if TYPE_CHECKING:
    from placer.job.model import Job


@dataclass(frozen=True)
class _Bytes:
    """Bytes of a token in a forward and a backward pass, by the module they are of."""

    forward: dict[str, float]
    backward: float

    def of_a_step(self, job: Job) -> float:
        """Forward, what of it runs again, and backward."""
        whole, memory = sum(self.forward.values()), job.memory
        again = whole * (1.0 if memory.recompute == "op" else layers_again(job))
        for module, size in self.forward.items():
            if memory.recomputes(module):
                again += size
        return whole + again + self.backward


def elementwise_bytes(job: Job, model: Model) -> float:
    """Bytes of one layer and micro-batch on one GPU, both passes and what runs again.

    The mean over all layers.
    """
    along = _along_the_width(job, model).of_a_step(job) * job.norm_tokens
    inside = _inside(job, model).of_a_step(job) * job.tokens
    return along + inside / job.parallelism.tp


def _along_the_width(job: Job, model: Model) -> _Bytes:
    """Norms and residuals."""
    w, h = job.bytes.activation, model.hidden
    norms = 4 * w, 6 * w
    if job.memory.norm == "unfused":
        norms = 8 * w + 56, 16 * w + 112
    residuals = 6 * w, 6 * w
    if job.memory.dropout:
        residuals = 6 * w + 2, 10 * w + 2
    forward = {"layernorm": norms[0] * h, "residual": residuals[0] * h}
    return _Bytes(forward, (norms[1] + residuals[1]) * h)


def _inside(job: Job, model: Model) -> _Bytes:
    """Activation functions and unfused softmax, of all tensor ranks."""
    w, moe = job.bytes.activation, model.moe_layers / model.layers
    dense = (1 - moe) * model.ffn
    shared = moe * model.shared_experts * model.expert_ffn
    routed = moe * model.top_k * model.expert_ffn
    once, back = (3 * w, 5 * w) if model.gated else (2 * w, 3 * w)
    forward = {
        "mlp": once * dense,
        "shared_experts": once * shared,
        "moe_act": once * routed,
    }
    backward = back * (dense + shared + routed)
    if job.memory.attention == "unfused":
        scores, masks = model.heads * job.sequence, job.memory.dropout * (2 * w + 1)
        forward["core_attn"] = (2 * w + masks) * scores
        backward += (3 * w + masks) * scores
    pieces = job.parallelism.cp
    if pieces > 1 and job.context_parallel.communication == "p2p":
        queries, outputs = attention_widths(model)
        kept = 1.0 if model.kv_lora_rank else model.kv_heads / model.heads
        merged = w * (3 * pieces - 1)
        forward["core_attn"] = forward.get("core_attn", 0.0) + merged * outputs
        backward += merged * queries
        backward += 1.5 * w * (pieces + 1) * kept * (queries + outputs)
    return _Bytes(forward, backward)


# A local expert in both passes: each of its two products and their four gradients is a
# kernel, and its tokens are padded and quantized once a pass. A kernel that follows
# another takes 3.8 us to be launched (NVIDIA, "Getting started with CUDA graphs").
EXPERT_TIME = 8 * 3.8e-6
# Of a mixture layer's micro-batch the host waits for the counts of tokens, then starts
# the rest. On 256 GB200, 7.75 layers a stage and 64 micro-batches, graphs of parts of a
# layer brought 610.71 -> 663.27 TFLOP/s, 2.1 ms each, and less work of the host 691.49
# -> 762.12, 2.2 ms; what came before them, 6.5 ms (NVIDIA/Megatron-LM 1d9edcf8,
# ``docs/discussions/deepseek-v3-gb200-optimization``).
HOST_TIME = 2.5e-3


def beside_seconds(job: Job, model: Model) -> float:
    """Of the mean layer and micro-batch on one GPU: memory, and launches of experts."""
    rate, again = job.compute.memory_bandwidth, experts_again(job)
    mixture = model.moe_layers / model.layers
    local = mixture * model.experts / job.parallelism.ep
    launched = local * EXPERT_TIME * (1 + again / 3)
    moved = elementwise_bytes(job, model)
    moved += local * expert_parameters(model) * expert_bytes(job) / job.parallelism.etp
    return launched + (moved / rate if rate else 0.0)


def expert_bytes(job: Job) -> float:
    """Bytes that a parameter of a local expert passes memory with in a micro-batch.

    Read forward and for the gradient of its inputs, and where forward runs again; its
    own gradient is read and added to. Shards are written by two gathers.
    """
    moved = (2 + experts_again(job)) * INPUT_BYTES[job.memory.gemm]
    if job.adapters is None:
        moved += 2 * gradient_bytes(job)
    if job.data_parallel.gathers_each:
        moved += 2 * job.bytes.parameter_gather
    return moved


def host_seconds(job: Job, model: Model) -> float:
    """What the host takes for the mean layer of a micro-batch, both passes."""
    usual = HOST_TIME if model.moe_layers else 0.0
    host = usual if job.host_time is None else job.host_time
    return host * (1 + layers_again(job) / 3)


def host_wait(job: Job, model: Model) -> float:
    """What a GPU waits for its host in the mean layer of a micro-batch.

    It asks layers of a mixture how many tokens go where, and cannot run ahead of them.
    """
    return host_seconds(job, model) * model.moe_layers / model.layers


def host_passes(job: Job, model: Model) -> tuple[float, float]:
    """Least seconds of a layer's forward and backward whose host runs ahead.

    A third of all launches are forward's; those that backward repeats are its own.
    """
    if model.moe_layers:
        return 0.0, 0.0
    host = host_seconds(job, model)
    forward = host / (3 + layers_again(job))
    return forward, host - forward
