"""Hugging Face's ``config.json``: the shape of a model.

Sources: huggingface/transformers, ``models/*/configuration_*.py`` (defaults) and
``modeling_*.py`` (whether a feed-forward is gated). Types of models are
named one by one: what a key means, and what its absence means, is each class's own.
Which layers have experts is the line of ``models/*/modeling_*.py`` in which a decoder
layer chooses between a feed-forward and experts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Literal

from placer.base.errors import InputError, Problem
from placer.base.naming import named
from placer.documents import closest
from placer.formats.jobs.reading import of_json
from placer.formats.jobs.settings import Settings, reader

# How a class spreads experts over layers.
_Experts = Literal["", "all", "sparse_step", "after_first", "interleaved"]

_HYBRIDS = (
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
    experts: _Experts = ""  # which layers have experts; empty for dense models
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

_TYPES: dict[str, Kind] = {
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


# A model without any of these is none.
_NEVER_NONE = (
    *("num_hidden_layers", "n_layer", "hidden_size", "n_embd", "n_embed"),
    *("num_attention_heads", "n_head", "vocab_size"),
)
LATENT = {  # MaxText calls them so too
    "model.q_lora_rank": "q_lora_rank",
    "model.kv_lora_rank": "kv_lora_rank",
    "model.qk_head_dim": "qk_nope_head_dim",
    "model.rope_head_dim": "qk_rope_head_dim",
    "model.v_head_dim": "v_head_dim",
}
_COUNT = ("n_routed_experts", "num_experts", "num_local_experts")
_VISITED = ("num_experts_per_tok", "experts_per_token", "moe_topk")


@reader(of_json)
def read(settings: Settings) -> None:
    """Take what a ``config.json`` says."""
    prefix = "text_config." if "text_config.hidden_size" in settings.values else ""
    read_shape(settings, _kind(settings, prefix), prefix)
    if prefix:
        settings.not_modelled(
            "model_type", "what is not in text_config, such as vision"
        )


def read_shape(settings: Settings, kind: Kind, prefix: str = "") -> None:
    """Take the shape of a model from keys of a class of transformers."""
    found = settings.found
    # A 0 says that a model has none of something, as a missing key does.
    settings.values = {
        key: setting
        for key, setting in settings.values.items()
        if not key.startswith(prefix)
        or key.rpartition(".")[2] in _NEVER_NONE
        or type(setting.value) not in (int, float)
        or setting.value
    }

    def keys(name: str) -> tuple[str, ...]:
        return tuple(prefix + key for key in kind.keys.get(name, (name,)))

    place = settings.place(prefix + "model_type", "model_type")
    why = f"default of {kind.words}"
    settings.copy("model.layers", *keys("num_hidden_layers"), maximum=10_000)
    hidden = settings.copy("model.hidden", *keys("hidden_size")) or 0
    heads = settings.copy("model.heads", *keys("num_attention_heads")) or 0
    if settings.copy("model.ffn", *keys("intermediate_size")) is None and kind.ffn:
        found.derive("model.ffn", kind.ffn * hidden, f"{why}: {kind.ffn}h", place)
    _read_kv_heads(settings, kind, heads, keys("num_key_value_heads"))
    settings.copy("model.vocab", *keys("vocab_size"))
    found.derive("model.gated", kind.gated, f"the feed-forward of {kind.words}", place)
    tied = "model.tied_embeddings"
    if settings.copy(tied, *keys("tie_word_embeddings")) is None:
        found.derive(tied, kind.tied, why, place)
    _read_head(settings, kind, keys("head_dim"), why)
    if kind.positions:
        settings.copy("model.positions", *keys("max_position_embeddings"))
    if settings.integer(prefix + "kv_lora_rank"):
        settings.take(LATENT, prefix)
    if kind.experts:
        read_experts(settings, kind.experts, prefix)
    _read_window(settings, prefix)
    key = prefix + "num_nextn_predict_layers"
    if unknown := settings.unknown(key):
        settings.not_modelled(key, f"{unknown} further tokens")
    elif settings.integer(key):
        settings.not_modelled(key, "further tokens")


def _read_kv_heads(
    settings: Settings, kind: Kind, heads: int, keys: tuple[str, ...]
) -> None:
    if kind.multi_query and settings.flag(kind.multi_query):
        rule = f"{kind.multi_query}: one"
        settings.derive("model.kv_heads", 1, rule, kind.multi_query)
    elif settings.copy("model.kv_heads", *keys) is None and heads:
        settings.found.derive("model.kv_heads", heads, "as many as heads")


def _read_head(settings: Settings, kind: Kind, keys: tuple[str, ...], why: str) -> None:
    """The width of a head, where it is not an equal share of the model's."""
    found, width = settings.found, settings.integer(*keys)
    hidden, heads = found.integer("model.hidden"), found.integer("model.heads")
    if width and width * heads != hidden:
        found.read("model.head_dim", width, settings.place(*keys))
    elif not width and kind.head_dim and kind.head_dim * heads != hidden:
        found.derive("model.head_dim", kind.head_dim, why)


def _read_window(settings: Settings, prefix: str) -> None:
    """Attention to the last tokens alone, which a job has no key for."""
    key = prefix + "sliding_window"
    if unknown := settings.unknown(key):
        settings.not_modelled(key, f"attention is cut to {unknown} tokens")
        return
    window = settings.integer(key, maximum=10**12)
    if window and settings.flag(prefix + "use_sliding_window") is not False:
        layers = settings.texts(prefix + "layer_types")
        sliding = layers.count("sliding_attention")
        which = f" in {sliding} of {len(layers)} layers" if layers else ""
        reason = f"attention is cut to {window:,} tokens{which}"
        settings.not_modelled(key, reason)


def _kind(settings: Settings, prefix: str) -> Kind:
    """What the model's type says."""
    name = settings.text(prefix + "model_type") or settings.text("model_type")
    if settings.found.asked:
        raise InputError(settings.found.asked)
    key = "model_type"
    if settings.get("block_configs", prefix + "block_configs"):
        key, message = "block_configs", "the layers of this model differ"
        hint = "write model of a job file with their mean"
    elif name in _HYBRIDS:
        message = f'the layers of a "{name}" model are not all attention'
        hint = "it is not modelled: a job knows layers with attention alone"
    elif name in _TYPES:
        return _TYPES[name]
    elif name:
        message = f'models of type "{name}" are not read'
        hint = closest(name, _TYPES) or "write the model into a job file"
    else:
        message, hint = 'the key "model_type" is missing', "is it a config.json?"
    raise InputError([Problem(message, *settings.place(key), key, hint)])


def read_experts(settings: Settings, spread: _Experts, prefix: str) -> None:
    """Take the experts of a model, where it has any."""
    found = settings.found
    count, visited = ([prefix + k for k in keys] for keys in (_COUNT, _VISITED))
    if not settings.integer(*count, minimum=0):
        return
    settings.copy("model.experts", *count, maximum=100_000)
    settings.copy("model.top_k", *visited, maximum=100_000)
    own = f"{prefix}moe_intermediate_size", f"{prefix}intermediate_size"
    wide = settings.copy("model.expert_ffn", *own)
    if wide and not found.has("model.ffn"):
        settings.derive("model.ffn", wide, "every layer has experts", *own)
    _read_shared(settings, spread, prefix, wide or 1)
    layers = found.integer("model.layers")
    has_experts, rule = _layers(settings, spread, prefix, layers)
    settings.derive("model.moe_layers", sum(has_experts), rule, *own)
    dense = layers - sum(has_experts)
    if any(has_experts[:dense]):
        settings.derive("model.dense_first", False, rule, *own)


def _read_shared(settings: Settings, spread: _Experts, prefix: str, wide: int) -> None:
    """Experts that every token visits, in widths of a routed one."""
    found = settings.found
    key = f"{prefix}shared_expert_intermediate_size"
    shared = settings.integer(key)
    if spread == "interleaved":
        found.derive("model.shared_experts", 1, "Llama4TextMoe has one shared expert")
    elif shared:
        count = max(round(shared / wide), 1)
        rule = f"{shared:,} is {shared / wide:g} experts wide"
        settings.derive("model.shared_experts", count, rule, key)
        if shared % wide:
            settings.not_modelled(key, f"{shared / wide:g} experts, not a whole number")
    else:
        settings.copy("model.shared_experts", f"{prefix}n_shared_experts", maximum=1000)


def _layers(
    settings: Settings, spread: _Experts, prefix: str, layers: int
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


def ask_for_model(settings: Settings, *keys: str) -> None:
    """Ask for the shape by the name that stands under one of ``keys``.

    Nothing where another source tells the shape.
    """
    unknown = settings.unknown(*keys)
    name = unknown or settings.text(*keys)
    if not name:
        return
    message = f"the shape of {name} is not in the file"
    hint = f"join its config.json: {named('job', 'hf:FILE')}"
    if unknown:
        key = (settings.get(*keys) or keys)[0]
        hint += f", or {named('settings', {key: 'VALUE'})}"
    settings.found.ask_later("model.layers", message, hint, settings.place(*keys))
