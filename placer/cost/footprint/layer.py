"""What one layer keeps of one micro-batch for its backward pass.

Bytes, one GPU. Symbols: ``s b / c`` tokens of a context rank, h width, a heads of width
d, k key-value heads, f feed-forward width, g = 2 gated or 1, t tensor ranks, w bytes of
an activation, i those of a product's input (w, less in FP8 and FP4). Norms and
dropout work on a slice ``1/t`` of the tokens with sequence parallelism, on all without.

Sources: Korthikanti et al. 2022, arXiv 2205.05198, section 4 and table 2, whose ``s b h
(34 + 5 a s / h)`` is the sum for k = a, f = 4 h, dropout and unfused attention; fused
attention keeps its output and one number a row instead of the scores (Dao 2023, arXiv
2307.08691, section 3.1). A gate keeps both halves, and products in FP8 keep their
inputs in FP8 (TransformerEngine, ``pytorch/module/linear.py``).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from placer.job.memory import INPUT_BYTES
from placer.job.models import Model, head_width

if TYPE_CHECKING:
    from placer.job.model import Job

# One number a row and head, in FP32, from which fused attention finds its scores again.
_ROW = 4.0
# Router logits and probabilities in FP32.
_ROUTER = 8.0


@dataclass(frozen=True)
class LayerActivations:
    """Bytes of the tensors of one layer, by the module that recomputes them."""

    job: Job
    model: Model
    moe: bool  # experts instead of the dense feed-forward
    gemm: str  # precision of this layer's products

    @cached_property
    def width(self) -> float:
        """Bytes of an activation."""
        return self.job.bytes.activation

    @cached_property
    def input_width(self) -> float:
        """Bytes of an activation as a product keeps it."""
        return self.width if self.gemm == "bf16" else INPUT_BYTES[self.gemm]

    @cached_property
    def whole(self) -> float:
        """All that the layer keeps when nothing is computed again."""
        parts = self.parts
        return sum(parts.values())

    @cached_property
    def parts(self) -> dict[str, float]:
        """Bytes by module; ``kept`` is in none of those that can be recomputed."""
        hidden = self.model.hidden * self.job.norm_tokens
        parts = dict.fromkeys(
            ("core_attn", "mla_up_proj", "mlp", "moe", "moe_act", "shared_experts"), 0.0
        )
        # Inputs of the two norms, then their outputs, inputs of the products.
        parts["kept"] = 2 * self.width * hidden
        gathered = (
            self.job.tokens if self.job.memory.keep_gathered else self.job.norm_tokens
        )
        parts["layernorm"] = 2 * self.input_width * self.model.hidden * gathered
        if self.job.memory.norm == "unfused":
            # A copy of the input in FP32 and what the weight is applied to, instead of
            # the input as it is.
            parts["layernorm"] += 2 * 4 * hidden
        if self.job.memory.dropout:
            parts["kept"] += 2 * hidden
        for found in (self._attention(), self._experts() if self.moe else self._mlp()):
            for module, size in found.items():
                parts[module] += size
        return parts

    def _attention(self) -> dict[str, float]:
        """Queries, keys and values, scores or what stands for them, the output."""
        model, axes = self.model, self.job.parallelism
        head = head_width(model)
        value = model.v_head_dim or head
        tokens = self.job.tokens * self.width / axes.tp
        found = {"kept": model.heads * value * tokens}
        if self.gemm != "bf16":
            # Attention keeps its output as it is, the projection keeps it in FP8.
            found["kept"] *= 1 + self.input_width / self.width
        if model.kv_lora_rank:
            query = model.qk_head_dim + model.rope_head_dim
            found["mla_up_proj"] = model.heads * (2 * query + value) * tokens
            ranks = model.q_lora_rank + model.kv_lora_rank
            latents = (self.width + self.input_width) * ranks
            latents += self.width * model.rope_head_dim
            found["kept"] += latents * self.job.norm_tokens
        else:
            keys = max(model.kv_heads, axes.tp)
            found["kept"] += (model.heads + 2 * keys) * head * tokens
        rows = self.job.tokens * model.heads / axes.tp
        if self.job.memory.attention == "fused":
            found["core_attn"] = _ROW * rows
        else:
            # Softmax; with dropout also its mask and what it leaves.
            width = 2 * self.width + 1 if self.job.memory.dropout else self.width
            found["core_attn"] = width * rows * self.job.sequence
        return found

    def _mlp(self) -> dict[str, float]:
        """The first product's output, and the second one's input."""
        wide = self.model.ffn / self.job.parallelism.tp * self.job.tokens
        return {"mlp": (self._gates * self.width + self.input_width) * wide}

    def _experts(self) -> dict[str, float]:
        """Router, the copies that this rank's experts get, shared experts.

        A rank gets ``etp top_k`` copies for each of its tokens, more by the imbalance
        and no more than the capacity. Weights of the router are applied before the
        second product (Megatron-LM d98e8a64, ``core/transformer/moe/experts.py``), so
        its output is not kept.
        """
        model, axes = self.model, self.job.parallelism
        more = self.job.expert_parallel.imbalance
        if self.job.memory.expert_capacity:
            more = min(more, self.job.memory.expert_capacity)
        tokens = self.job.tokens / axes.tp
        copies = axes.etp * model.top_k * tokens * more
        wide = model.expert_ffn / axes.etp * copies
        shared = model.shared_experts * model.expert_ffn / axes.tp * self.job.tokens
        gates = self._gates * self.width
        return {
            "moe": _ROUTER * model.experts * tokens
            + self.input_width * model.hidden * copies
            + gates * wide,
            "moe_act": self.input_width * wide,
            "shared_experts": (gates + self.input_width) * shared,
        }

    @property
    def _gates(self) -> int:
        return 2 if self.model.gated else 1

    @cached_property
    def kept(self) -> float:
        """What is kept when the job's modules are computed again."""
        memory = self.job.memory
        if memory.recompute == "full":
            return self.width * self.model.hidden * self.job.norm_tokens
        if memory.recompute == "op":
            return min(self._kept_by_op(), self.whole)
        if memory.recompute == "none":
            return self.whole
        return sum(
            size for key, size in self.parts.items() if not memory.recomputes(key)
        )

    def _kept_by_op(self) -> float:
        """Outputs of every second matrix product, attention and reduce-scatters.

        torchtitan b5bcd76c, ``distributed/activation_checkpoint.py``: of the products
        for query, key, value, projection, both halves of the gate and the second of the
        feed-forward, the odd ones are kept. Grouped products of experts all are, and so
        is what an all-to-all brings. Products in FP4 are operators of their own: their
        inputs are kept and their outputs are not.
        """
        model, axes = self.model, self.job.parallelism
        tokens = self.job.tokens * self.width / axes.tp
        slice_ = self.job.norm_tokens * self.width * model.hidden
        attention = model.heads * (model.v_head_dim or head_width(model))
        kept = slice_ + attention * tokens + self.parts["core_attn"]
        if self.gemm == "nvfp4":
            inputs = 2 * model.hidden * self.job.norm_tokens
            inputs += (attention + model.ffn) * self.job.tokens / axes.tp
            return kept + self.input_width * inputs
        if axes.tp > 1:
            kept += 2 * slice_
        kept += (attention + model.kv_heads * head_width(model)) * tokens
        if self.moe:
            return kept + self.parts["moe"] + self.parts["moe_act"]
        kept += model.ffn * tokens
        # The seventh product; its output is not yet summed over tp.
        return kept + (
            self.job.tokens * self.width * model.hidden if model.gated else 0.0
        )
