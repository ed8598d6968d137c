"""Types of models in ``config.json``, and what their classes take for granted.

Source: huggingface/transformers, ``models/*/configuration_*.py`` (defaults) and
``modeling_*.py`` (whether a feed-forward is gated).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Literal

# How a class spreads experts over layers, see `placer.formats.jobs.hf`.
Experts = Literal["", "all", "sparse_step", "after_first", "interleaved"]

HYBRIDS = (
    "bamba", "falcon_h1", "falcon_mamba", "granitemoehybrid", "jamba", "mamba",
    "mamba2", "minimax", "mllama", "nemotron_h", "qwen3_next", "recurrent_gemma",
    "zamba", "zamba2",
)  # fmt: skip


@dataclass(frozen=True)
class Kind:
    """What a class of transformers says where the file is silent."""

    words: str  # name of the class in messages
    gated: bool = True  # the feed-forward has three matrices
    tied: bool = False  # default of ``tie_word_embeddings``
    # Default width of the feed-forward in widths of the model; 0 when there is none.
    ffn: int = 0
    head_dim: int = 0  # default width of a head; 0 is an equal share of the model's
    experts: Experts = ""  # which layers have experts; empty for dense models
    positions: bool = False  # position embeddings are learned
    multi_query: str = ""  # key that, when true, says one key-value head
    # Its own names of keys that others share.
    keys: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


_GPT2_KEYS = {
    "num_hidden_layers": ("n_layer",),
    "hidden_size": ("n_embd",),
    "num_attention_heads": ("n_head",),
    "intermediate_size": ("n_inner",),
    "max_position_embeddings": ("n_positions", "n_ctx"),
}
_BLOOM_KEYS = {
    "num_hidden_layers": ("n_layer", "num_hidden_layers"),
    "hidden_size": ("hidden_size", "n_embed"),
    "num_attention_heads": ("n_head", "num_attention_heads"),
}
_FALCON_KEYS = {
    "num_key_value_heads": ("num_kv_heads",),
    "intermediate_size": ("ffn_hidden_size",),
}
_LLAMA4_KEYS = {"intermediate_size": ("intermediate_size_mlp",)}
_MULTI = "multi_query"
_older = partial(Kind, gated=False, tied=True, ffn=4)
_gpt = partial(_older, positions=True, keys=_GPT2_KEYS)

TYPES: dict[str, Kind] = {
    "arcee": Kind("ArceeConfig", gated=False),
    "bloom": _older("BloomConfig", keys=_BLOOM_KEYS),
    "cohere": Kind("CohereConfig", tied=True),
    "cohere2": Kind("Cohere2Config", tied=True),
    "deepseek_v2": Kind("DeepseekV2Config", experts="after_first"),
    "deepseek_v3": Kind("DeepseekV3Config", experts="after_first"),
    "falcon": _older("FalconConfig", multi_query=_MULTI, keys=_FALCON_KEYS),
    "gemma": Kind("GemmaConfig", tied=True, head_dim=256),
    "gemma2": Kind("Gemma2Config", tied=True, head_dim=256),
    "gemma3_text": Kind("Gemma3TextConfig", tied=True, head_dim=256),
    "glm4": Kind("Glm4Config", head_dim=128),
    "glm4_moe": Kind("Glm4MoeConfig", experts="after_first"),
    "gpt2": _gpt("GPT2Config"),
    "gpt_bigcode": _gpt("GPTBigCodeConfig", multi_query=_MULTI),
    "gpt_neox": Kind("GPTNeoXConfig", gated=False),
    "gpt_oss": Kind("GptOssConfig", head_dim=64, experts="all"),
    "gptj": Kind("GPTJConfig", gated=False, ffn=4, keys=_GPT2_KEYS),
    "granite": Kind("GraniteConfig"),
    "granitemoe": Kind("GraniteMoeConfig", experts="all"),
    "internlm2": Kind("InternLM2Config"),
    "kimi_k2": Kind("DeepseekV3Config", experts="after_first"),
    "llama": Kind("LlamaConfig"),
    "llama4_text": Kind(
        "Llama4TextConfig", head_dim=128, experts="interleaved", keys=_LLAMA4_KEYS
    ),
    "mistral": Kind("MistralConfig"),
    "mixtral": Kind("MixtralConfig", experts="all"),
    "nemotron": Kind("NemotronConfig", gated=False),
    "olmo": Kind("OlmoConfig"),
    "olmo2": Kind("Olmo2Config"),
    "olmoe": Kind("OlmoeConfig", experts="all"),
    "opt": _gpt("OPTConfig", ffn=0, keys={"intermediate_size": ("ffn_dim",)}),
    "phi": Kind("PhiConfig", gated=False),
    "phi3": Kind("Phi3Config"),
    "phimoe": Kind("PhimoeConfig", experts="all"),
    "qwen2": Kind("Qwen2Config"),
    "qwen2_5_vl": Kind("Qwen2_5_VLConfig"),
    "qwen2_5_vl_text": Kind("Qwen2_5_VLTextConfig"),
    "qwen2_moe": Kind("Qwen2MoeConfig", experts="sparse_step"),
    "qwen2_vl": Kind("Qwen2VLConfig"),
    "qwen3": Kind("Qwen3Config", head_dim=128),
    "qwen3_moe": Kind("Qwen3MoeConfig", experts="sparse_step"),
    "qwen3_vl_text": Kind("Qwen3VLTextConfig", head_dim=128),
    "qwen3_vl_moe_text": Kind("Qwen3VLMoeTextConfig", experts="sparse_step"),
    "seed_oss": Kind("SeedOssConfig", head_dim=128),
    "smollm3": Kind("SmolLM3Config", tied=True),
    "stablelm": Kind("StableLmConfig"),
    "starcoder2": Kind("Starcoder2Config", gated=False, tied=True),
}
