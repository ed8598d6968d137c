"""Bytes that a layer moves for what multiplies nothing: norms, residuals, activations.

Such work takes the time of its bytes. One operation reads its inputs once and writes
its output once. Bytes of a token and layer, with w bytes an activation, h its width, f
the feed-forward's, a heads, s tokens:

=================== ========================= ================== =====================
operation           forward                   backward           divided by
=================== ========================= ================== =====================
two norms           4 w h                     6 w h              sequence parallelism
two norms, unfused  (8 w + 56) h              twice forward      sequence parallelism
two residuals       6 w h, masks 2 h          6 w h, (4 w + 2) h sequence parallelism
activation function 2 w f, with a gate 3 w f  3 w f, 5 w f       tensor parallelism
unfused softmax     2 w a s, masks 2 w + 1    3 w, masks 2 w + 1 tensor parallelism
pieces of a ring    w (3 c - 1) o             below              tensor parallelism
=================== ========================= ================== =====================

An unfused norm copies to FP32, squares, takes the mean, scales, copies back and applies
its weight, each a kernel of its own: ``w + 4``, 8, 4, 8, ``4 + w`` and ``2 w`` bytes.
Masks are those of dropout.

Ring attention over c ranks has outputs (width o) and gradients of queries (q) of c
pieces: the first is read and written, each further one read with the sum so far, which
is written. The last rank merges all of them whole, and halves of the gradients of keys
and values (k), for which it adds to what the others send: backward moves
``w (3 c - 1) q + 1.5 w (c + 1) k`` (NVIDIA/TransformerEngine 9c61cd7e,
``pytorch/attention/dot_product_attention/context_parallel.py``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from placer.job.models import attention_widths
from placer.job.recompute import layers_again

if TYPE_CHECKING:
    from placer.job.model import Job
    from placer.job.models import Model


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
    axes = job.parallelism
    tokens = job.sequence / axes.cp * job.micro_batch
    own = tokens / axes.tp if job.tensor_parallel.sequence else tokens
    along = _along_the_width(job, model).of_a_step(job) * own
    return along + _inside(job, model).of_a_step(job) * tokens / axes.tp


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
