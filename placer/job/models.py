"""Models: presets, and the parameters and FLOPs that follow from a shape.

Norms count two vectors a layer and one at the end; biases and position embeddings are
left out (below 0.1 % of any model this is meant for).
"""

from __future__ import annotations

from dataclasses import dataclass

from placer.documents import Section, open_document
from placer.documents.keys import BOOLEAN, TEXT, integer, key
from placer.documents.presets import preset_path
from placer.documents.records import read

_LATENT = ("q_lora_rank", "qk_head_dim", "rope_head_dim", "v_head_dim")
_WIDTH = integer(1, 10**7)
_WIDTH_OR_NONE = integer(0, 10**7)


@dataclass(frozen=True)
class Model:
    """Shape of a transformer, from which parameters, FLOPs and bytes follow."""

    name: str = key(TEXT, "name of the model", absent="`custom`")
    layers: int = key(integer(1, 10_000), "transformer layers")
    hidden: int = key(_WIDTH, "width")
    ffn: int = key(_WIDTH, "feed-forward width")
    heads: int = key(_WIDTH, "attention heads")
    kv_heads: int = key(
        _WIDTH,
        "key-value heads",
        implied=lambda known: known["heads"],
        absent="`heads`",
    )
    vocab: int = key(integer(), "vocabulary")
    gated: bool = key(
        BOOLEAN, "feed-forward of three matrices (SwiGLU) rather than two", True
    )
    tied_embeddings: bool = key(
        BOOLEAN, "input and output embeddings share their parameters", False
    )
    experts: int = key(integer(0, 100_000), "routed experts of a layer", 0, unsaid=True)
    top_k: int = key(
        integer(1, 100_000),
        "experts that a token visits",
        0,
        absent="required with `experts`",
        unsaid=True,
    )
    shared_experts: int = key(
        integer(0, 1000), "experts that every token visits", 0, unsaid=True
    )
    expert_ffn: int = key(
        _WIDTH,
        "feed-forward width of one expert",
        0,
        implied=lambda known: known["ffn"] if known["experts"] else 0,
        absent="`ffn` with `experts`",
        unsaid=True,
    )
    moe_layers: int = key(
        integer(0),
        "how many of the layers are mixture-of-experts layers",
        0,
        implied=lambda known: known["layers"] if known["experts"] else 0,
        absent="`layers` with `experts`",
        unsaid=True,
    )
    attention_parameters: int = key(
        integer(0, 10**12),
        "parameters of one layer's attention, when the heads do not give them",
        0,
        absent="from the heads",
        unsaid=True,
    )
    head_dim: int = key(
        _WIDTH_OR_NONE,
        "width of a head, where it is one of its own (Qwen3, gpt-oss)",
        0,
        absent="`hidden / heads`",
        newer=True,
    )
    q_lora_rank: int = key(
        _WIDTH_OR_NONE,
        "latent attention: rank of compressed queries; 0: not compressed",
        0,
        newer=True,
    )
    kv_lora_rank: int = key(
        _WIDTH_OR_NONE,
        "latent attention: rank of compressed keys and values; 0: attention is not "
        "latent",
        0,
        newer=True,
    )
    qk_head_dim: int = key(
        _WIDTH_OR_NONE,
        "latent attention: width of a head's queries and keys without position",
        0,
        newer=True,
    )
    rope_head_dim: int = key(
        _WIDTH_OR_NONE,
        "latent attention: width of a head's queries and keys with position",
        0,
        newer=True,
    )
    v_head_dim: int = key(
        _WIDTH_OR_NONE, "latent attention: width of a head's values", 0, newer=True
    )
    positions: int = key(_WIDTH_OR_NONE, "learned position embeddings", 0, newer=True)
    mtp_layers: int = key(
        _WIDTH_OR_NONE,
        "layers that predict further tokens, held by the last stage; known to "
        "memory alone",
        0,
        newer=True,
    )
    dense_first: bool = key(
        BOOLEAN,
        "the dense layers of a mixture of experts are its first ones, rather than "
        "spread; known to memory alone",
        True,
        newer=True,
        unsaid=False,
    )
    vocab_multiple: int = key(
        _WIDTH_OR_NONE,
        "the embedding has the vocabulary's rows up to a multiple of this and tp, as "
        "Megatron-LM's `make_vocab_size_divisible_by` does; when unknown the cost "
        "takes `vocab` as it is and memory 128",
        0,
        absent="unknown",
        newer=True,
    )


def read_model(name: str) -> Model:
    """Model preset ``name``."""
    document = open_document(str(preset_path("models", name)))
    document.check_format("placer/model")
    document.root.texts("sources")
    model = decode_model(document.root)
    document.finish()
    return model


def decode_model(section: Section) -> Model:
    """Model from a mapping of its fields; problems go to the section's document."""
    model = read(section, Model, {"name": "custom"})
    _check(section, model)
    return model


def attention_parameters(model: Model) -> int:
    """Parameters of one layer's attention: ``2h^2 + 2h k (h/a)``.

    With h the width, a the heads, k the key-value heads and d the width of a head
    (``h/a``): query and output are ``h x a d``, key and value ``h x k d`` (Ainslie et
    al. 2023, arXiv 2305.13245). Latent attention has its own (`latent_parameters`).
    """
    if model.attention_parameters:
        return model.attention_parameters
    if model.kv_lora_rank:
        return sum(latent_parameters(model))
    if model.head_dim:
        return 2 * model.hidden * (model.heads + model.kv_heads) * model.head_dim
    key_value = 2 * model.hidden * model.kv_heads * model.hidden // model.heads
    return 2 * model.hidden**2 + key_value


def padded_vocabulary(model: Model, tp: int, usual: int = 0) -> int:
    """Rows of the embedding: the vocabulary up to a multiple of ``vocab_multiple tp``.

    ``usual`` is the multiple of models that name none; with 0 theirs is not padded
    (Megatron-LM d98e8a64, ``make_vocab_size_divisible_by``, `training/global_vars.py`).
    """
    multiple = (model.vocab_multiple or usual) * tp or 1
    return -(-model.vocab // multiple) * multiple


def head_width(model: Model) -> float:
    """Width of a head: given, or an equal share of the model's."""
    return model.head_dim or model.hidden / model.heads


def attention_widths(model: Model) -> tuple[float, float]:
    """Widths of all heads together: of queries and keys, and of values and outputs."""
    if model.kv_lora_rank:
        query = model.qk_head_dim + model.rope_head_dim
        return model.heads * query, model.heads * model.v_head_dim
    if not model.head_dim:
        return model.hidden, model.hidden
    return model.heads * model.head_dim, model.heads * model.head_dim


def latent_parameters(model: Model) -> tuple[int, int]:
    """Parameters of one layer's latent attention, those that tp shares out and others.

    Every tp rank holds the projections to the compressed queries, keys and values whole
    and their norms; up and output projections are cut by heads (DeepSeek-V2, arXiv
    2405.04434, section 2.1; Megatron-LM d98e8a64,
    ``core/transformer/multi_latent_attention.py``).
    """
    hidden, heads = model.hidden, model.heads
    query = model.qk_head_dim + model.rope_head_dim
    to_query = model.q_lora_rank or hidden
    shared = heads * to_query * query
    shared += heads * model.kv_lora_rank * (model.qk_head_dim + model.v_head_dim)
    shared += heads * model.v_head_dim * hidden
    whole = hidden * (model.kv_lora_rank + model.rope_head_dim) + model.kv_lora_rank
    if model.q_lora_rank:
        whole += hidden * model.q_lora_rank + model.q_lora_rank
    return shared, whole


def feed_forward_parameters(model: Model) -> int:
    """Parameters of a dense layer's feed-forward: ``3 h f`` gated, else ``2 h f``."""
    return _matrices(model) * model.hidden * model.ffn


def expert_parameters(model: Model) -> int:
    """Parameters of one expert, routed or shared; 0 for a dense model."""
    return _matrices(model) * model.hidden * model.expert_ffn


def layer_parameters(model: Model, *, moe: bool = False) -> int:
    """Parameters of one dense layer, or of one MoE layer with all its experts.

    Attention, feed-forward (or router, routed and shared experts) and two norms.
    """
    if moe:
        experts = model.experts + model.shared_experts
        body = model.hidden * model.experts + experts * expert_parameters(model)
    else:
        body = feed_forward_parameters(model)
    return attention_parameters(model) + body + 2 * model.hidden


def total_parameters(model: Model) -> int:
    """Parameters of the whole model, embeddings and final norm included."""
    dense_layers = model.layers - model.moe_layers
    layers = dense_layers * layer_parameters(model)
    layers += model.moe_layers * layer_parameters(model, moe=True)
    embeddings = 1 if model.tied_embeddings else 2
    vocabulary = embeddings * model.vocab + model.positions
    return layers + vocabulary * model.hidden + model.hidden


def active_parameters(model: Model) -> int:
    """Parameters whose matrices a token is multiplied with.

    Attention, feed-forward or router and visited experts, and the output embedding.
    """
    visited = model.top_k + model.shared_experts
    moe_body = model.hidden * model.experts + visited * expert_parameters(model)
    dense_layers = model.layers - model.moe_layers
    return (
        model.layers * attention_parameters(model)
        + dense_layers * feed_forward_parameters(model)
        + model.moe_layers * moe_body
        + model.vocab * model.hidden
    )


def flops_per_sample(model: Model, sequence: int) -> float:
    """FLOPs of one sample of ``sequence`` tokens, forward and backward.

    ``s (6 P + 12 L h s)`` with P the active parameters (Narayanan et al. 2021, arXiv
    2104.04473, appendix; without activation recomputation); a causal mask leaves half
    of the second term. For h stands the mean width of all heads' queries and values.
    """
    products = 6.0 * active_parameters(model) * sequence
    return products + attention_flops(model, sequence)


def attention_flops(model: Model, sequence: int) -> float:
    """FLOPs of attention proper in a sample: ``12 L h s^2``, as `flops_per_sample`."""
    widths = sum(attention_widths(model))
    return float(6 * model.layers * widths * sequence * sequence)


def _matrices(model: Model) -> int:
    return 3 if model.gated else 2


def _check(section: Section, model: Model) -> None:
    if model.kv_heads > model.heads or model.heads % model.kv_heads:
        message = f"{model.kv_heads} does not divide heads ({model.heads})"
        section.problem(message, "kv_heads")
    if model.moe_layers > model.layers:
        message = f"{model.moe_layers} is more than layers ({model.layers})"
        section.problem(message, "moe_layers")
    _check_latent(section, model)
    if model.experts:
        if model.top_k == 0:
            section.problem("a model with experts needs top_k", "top_k")
        if model.top_k > model.experts:
            message = f"{model.top_k} is more than experts ({model.experts})"
            section.problem(message, "top_k")
        return
    for name in ("top_k", "shared_experts", "expert_ffn", "moe_layers"):
        if getattr(model, name):
            section.problem(f"needs experts, which is {model.experts}", name)


def _check_latent(section: Section, model: Model) -> None:
    """Widths of latent attention go together."""
    for name in _LATENT:
        if getattr(model, name) and not model.kv_lora_rank:
            section.problem("needs kv_lora_rank", name, "it is of latent attention")
    if model.kv_lora_rank and not (model.qk_head_dim and model.v_head_dim):
        message = "needs qk_head_dim and v_head_dim, the widths of a head"
        section.problem(message, "kv_lora_rank")
