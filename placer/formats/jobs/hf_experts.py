"""Experts in ``config.json``: how many, how wide, and which layers have them.

Source: huggingface/transformers, ``models/*/modeling_*.py``: the line of each decoder
layer that chooses between a feed-forward and experts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from placer.formats.jobs.hf_types import Experts
    from placer.formats.jobs.settings import Settings

_COUNT = ("n_routed_experts", "num_experts", "num_local_experts")
_VISITED = ("num_experts_per_tok", "experts_per_token", "moe_topk")


def read_experts(settings: Settings, spread: Experts, prefix: str) -> None:
    """Take the experts of a model, where it has any."""
    found = settings.found
    if not settings.integer(*_named(prefix, _COUNT), minimum=0):
        return
    settings.copy("model.experts", *_named(prefix, _COUNT), maximum=100_000)
    settings.copy("model.top_k", *_named(prefix, _VISITED), maximum=100_000)
    own = f"{prefix}moe_intermediate_size", f"{prefix}intermediate_size"
    wide = settings.copy("model.expert_ffn", *own)
    if wide and not found.has("model.ffn"):
        place = settings.place(*own)
        found.derive("model.ffn", wide, "every layer has experts", place)
    _read_shared(settings, spread, prefix, wide or 1)
    layers = found.integer("model.layers")
    has_experts, rule = _layers(settings, spread, prefix, layers)
    found.derive("model.moe_layers", sum(has_experts), rule, settings.place(*own))
    dense = layers - sum(has_experts)
    if any(has_experts[:dense]):
        found.derive("model.dense_first", False, rule, settings.place(*own))


def _read_shared(settings: Settings, spread: Experts, prefix: str, wide: int) -> None:
    """Experts that every token visits, in widths of a routed one."""
    found = settings.found
    key = f"{prefix}shared_expert_intermediate_size"
    shared = settings.integer(key)
    if spread == "interleaved":
        found.derive("model.shared_experts", 1, "Llama4TextMoe has one shared expert")
    elif shared:
        found.derive(
            "model.shared_experts",
            max(round(shared / wide), 1),
            f"{shared:,} is {shared / wide:g} experts wide",
            settings.place(key),
        )
        if shared % wide:
            settings.not_modelled(key, f"{shared / wide:g} experts, not a whole number")
    else:
        settings.copy("model.shared_experts", f"{prefix}n_shared_experts", maximum=1000)


def _layers(
    settings: Settings, spread: Experts, prefix: str, layers: int
) -> tuple[list[bool], str]:
    """Which layers have experts, and why."""
    if spread == "sparse_step":
        step = settings.integer(f"{prefix}decoder_sparse_step") or 1
        dense = settings.integers(f"{prefix}mlp_only_layers")
        chosen = [(i + 1) % step == 0 and i not in dense for i in range(layers)]
        return chosen, f"decoder_sparse_step {step}, mlp_only_layers {len(dense)}"
    if spread == "after_first":
        first = settings.integer(f"{prefix}first_k_dense_replace", minimum=0) or 0
        every = settings.integer(f"{prefix}moe_layer_freq") or 1
        chosen = [i >= first and i % every == 0 for i in range(layers)]
        return chosen, f"{layers} layers - first_k_dense_replace {first}"
    if spread == "interleaved":
        step = settings.integer(f"{prefix}interleave_moe_layer_step") or 1
        listed = settings.integers(f"{prefix}moe_layers")
        chosen = [i in listed if listed else (i + 1) % step == 0 for i in range(layers)]
        return chosen, f"interleave_moe_layer_step {step}"
    return [True] * layers, "every layer has experts"


def _named(prefix: str, names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(prefix + name for name in names)
