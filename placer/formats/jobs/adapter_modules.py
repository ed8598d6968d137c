"""Inputs and outputs of the modules that adapters stand beside, by their names.

Names of Hugging Face (``q_proj``) and of Megatron-Core (``linear_qkv``), in which
query, key and value are one matrix, gate and up another.
"""

from __future__ import annotations

from placer.job.models import Model, attention_widths

FUSED = ("linear_qkv", "linear_proj", "linear_fc1", "linear_fc2")
_FEED_FORWARD = (
    *("gate_proj", "up_proj", "down_proj", "w1", "w2", "w3", "fc1", "fc2"),
    *("linear_fc1_gate", "linear_fc1_up", "linear_fc2"),
)
# Looked up, or multiplied with, once: of as many parameters as the vocabulary has rows.
OF_VOCABULARY = ("embed_tokens", "lm_head", "word_embeddings", "output_layer")


def every_module(model: Model, *, fused: bool) -> list[str]:
    """Every matrix of a layer."""
    queries = "q" if model.q_lora_rank else ""
    if fused:
        attention = ["linear_qkv"]
        if model.kv_lora_rank:
            attention = ["linear_kv_down_proj", "linear_kv_up_proj"]
            attention += (
                ["linear_q_down_proj", "linear_q_up_proj"]
                if queries
                else ["linear_q_proj"]
            )
        return [*attention, *FUSED[1:]]
    attention = ["q_proj", "k_proj", "v_proj"]
    if model.kv_lora_rank:
        attention = ["q_a_proj", "q_b_proj"] if queries else ["q_proj"]
        attention += ["kv_a_proj_with_mqa", "kv_b_proj"]
    gate = ["gate_proj"] if model.gated else []
    return [*attention, "o_proj", *gate, "up_proj", "down_proj"]


def sides_of_modules(model: Model) -> dict[str, tuple[float, float]]:
    """Inputs and outputs of a module in all layers, of each it is known by.

    Those outside routed experts, and those of one expert in each layer that has any.
    """
    attention = _latent(model) if model.kv_lora_rank else _attention(model)
    _, values = attention_widths(model)
    attention |= dict.fromkeys(("o_proj", "linear_proj"), values + model.hidden)
    found = {name: (model.layers * each, 0.0) for name, each in attention.items()}
    found |= dict.fromkeys(_FEED_FORWARD, _feed_forward(model, 1))
    both = _feed_forward(model, 2 if model.gated else 1)
    return found | dict.fromkeys(("linear_fc1", "gate_up_proj"), both)


def _attention(model: Model) -> dict[str, float]:
    """Parameters of adapters to one layer's queries, keys and values."""
    hidden, kept = model.hidden, model.kv_heads / model.heads
    queries, values = attention_widths(model)
    three = hidden + queries + kept * (queries + values)
    return (
        dict.fromkeys(("linear_qkv", "qkv_proj", "query_key_value"), three)
        | dict.fromkeys(("q_proj", "linear_q"), hidden + queries)
        | dict.fromkeys(("k_proj", "linear_k"), hidden + kept * queries)
        | dict.fromkeys(("v_proj", "linear_v"), hidden + kept * values)
    )


def _latent(model: Model) -> dict[str, float]:
    """Parameters of adapters to one layer's latent attention."""
    hidden, rank = model.hidden, model.kv_lora_rank
    queries, _ = attention_widths(model)
    up = rank + model.heads * (model.qk_head_dim + model.v_head_dim)
    down = hidden + rank + model.rope_head_dim
    keys = dict.fromkeys(("kv_a_proj_with_mqa", "linear_kv_down_proj"), float(down))
    keys |= dict.fromkeys(("kv_b_proj", "linear_kv_up_proj"), float(up))
    if not model.q_lora_rank:
        return keys | dict.fromkeys(("q_proj", "linear_q_proj"), hidden + queries)
    down, up = hidden + model.q_lora_rank, model.q_lora_rank + int(queries)
    keys |= dict.fromkeys(("q_a_proj", "linear_q_down_proj"), float(down))
    return keys | dict.fromkeys(("q_b_proj", "linear_q_up_proj"), float(up))


def _feed_forward(model: Model, out: int) -> tuple[float, float]:
    """One matrix of the feed-forward, whose outer side is ``out`` widths."""
    dense = (model.layers - model.moe_layers) * (model.hidden + out * model.ffn)
    if model.shared_experts:
        wide = out * model.shared_experts * model.expert_ffn
        dense += model.moe_layers * (model.hidden + wide)
    return dense, model.moe_layers * (model.hidden + out * model.expert_ffn)
