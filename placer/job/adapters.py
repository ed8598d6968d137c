"""Adapters: small matrices beside weights that stay as they are; only they are trained.

An adapter of rank r beside a weight of ``in x out`` is ``in x r`` and ``r x out``:
``r (in + out)`` parameters (Hu et al. 2021, arXiv 2106.09685, section 4.1). By hand,
Llama 3.1 8B, rank 32, on all matrices of its layers: query and output 2 x 8,192, key
and value 2 x 5,120, gate, up and down 3 x 18,432, so 81,920 a layer and rank: x 32 x 32
= 83.9 M of 8,030 M parameters. Embedding, output layer and router have none.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

from placer.documents import Section
from placer.documents.keys import BOOLEAN, COUNT, integer, key
from placer.documents.records import read
from placer.job.models import Model, attention_widths, total_parameters


@dataclass(frozen=True)
class Adapters:
    """What is trained beside a model that is not."""

    all_unsaid = True

    rank: int = key(
        integer(1, 10**6),
        "of each adapter; without `parameters`, every matrix of a layer has one "
        "(query, key, value, output, all of the feed-forward)",
        0,
        absent="",
    )
    parameters: int = key(
        COUNT, "of all adapters together: `84M`, `1.5B`", 0, absent="from the rank"
    )
    experts: bool = key(BOOLEAN, "routed experts have adapters too", True)

    together: ClassVar[dict[str, Any]] = {
        "anyOf": [{"required": ["rank"]}, {"required": ["parameters"]}]
    }


class LayerAdapters(NamedTuple):
    """Parameters of the adapters of one layer: outside and inside routed experts."""

    dense: float
    experts: float


def decode_adapters(root: Section, model: Model | None) -> Adapters | None:
    """The mapping, checked; None where the job has none."""
    if not root.has("adapters"):
        return None
    section = root.section("adapters")
    adapters = read(section, Adapters)
    adapters = replace(adapters, parameters=round(adapters.parameters))
    if not (section.has("rank") or section.has("parameters")):
        hint = "give rank, or parameters: how many are trained, such as 84M"
        root.problem("says nothing of what is trained", "adapters", hint)
    elif model is None:
        root.problem("needs a model", "adapters", "add model, or remove it")
    elif not section.document.problems:
        _check(section, model, adapters)
    return adapters


def _check(section: Section, model: Model, adapters: Adapters) -> None:
    whole = total_parameters(model)
    if section.has("parameters") and not 1 <= adapters.parameters <= whole:
        message = f"{adapters.parameters:,} is not from 1 to the model's {whole:,}"
        section.problem(message, "parameters", "count what is trained")
    elif (count := trained_parameters(model, adapters)) > whole:
        message = (
            f"adapters on all matrices would have {count:,} parameters, more than the "
            f"model's {whole:,}"
        )
        section.problem(message, "rank", "give parameters, or remove adapters")
    if section.has("experts") and not model.experts:
        section.problem("the model has no experts", "experts", "remove it")


def adapters_of_layer(
    model: Model, adapters: Adapters, *, moe: bool = False
) -> LayerAdapters:
    """Those of one dense layer, or of one MoE layer with all its experts.

    Where their parameters are given, each matrix has its part as adapters of one rank
    on all of them would have it.
    """
    rank = float(adapters.rank)
    if adapters.parameters:
        rank = adapters.parameters / _of_model(model, adapters, 1.0)
    return _of_layer(model, adapters, rank, moe=moe)


def trained_parameters(model: Model, adapters: Adapters) -> int:
    """Parameters of all adapters together."""
    if adapters.parameters:
        return adapters.parameters
    return round(_of_model(model, adapters, float(adapters.rank)))


def visited_adapters(model: Model, adapters: Adapters) -> float:
    """Parameters of those that a token is multiplied with."""
    dense = adapters_of_layer(model, adapters).dense
    visited = (model.layers - model.moe_layers) * dense
    if model.moe_layers:
        moe = adapters_of_layer(model, adapters, moe=True)
        experts = moe.experts * model.top_k / model.experts
        visited += model.moe_layers * (moe.dense + experts)
    return visited


def _of_model(model: Model, adapters: Adapters, rank: float) -> float:
    dense = _of_layer(model, adapters, rank, moe=False)
    moe = _of_layer(model, adapters, rank, moe=True)
    return (model.layers - model.moe_layers) * sum(dense) + model.moe_layers * sum(moe)


def _of_layer(
    model: Model, adapters: Adapters, rank: float, *, moe: bool
) -> LayerAdapters:
    attention = sum(attention_sides(model).values())
    if not moe:
        return LayerAdapters(rank * (attention + _feed_forward(model, model.ffn)), 0.0)
    shared = routed = 0.0
    if model.shared_experts:
        shared = _feed_forward(model, model.shared_experts * model.expert_ffn)
    if adapters.experts:
        routed = model.experts * _feed_forward(model, model.expert_ffn)
    return LayerAdapters(rank * (attention + shared), rank * routed)


def attention_sides(model: Model) -> dict[str, float]:
    """Inputs and outputs of each matrix of a layer's attention, by its usual name.

    Latent attention has one that compresses keys and values, and may have one for
    queries.
    """
    hidden, rank = model.hidden, model.kv_lora_rank
    queries, values = attention_widths(model)
    if rank:
        up = rank + model.heads * (model.qk_head_dim + model.v_head_dim)
        down = hidden + rank + model.rope_head_dim
        found = {"q_proj": hidden + queries}
        if compressed := model.q_lora_rank:
            found = {"q_a_proj": hidden + compressed, "q_b_proj": compressed + queries}
        found |= {"kv_a_proj_with_mqa": down, "kv_b_proj": up}
    else:
        kept = model.kv_heads / model.heads
        found = {"q_proj": hidden + queries, "k_proj": hidden + kept * queries}
        found["v_proj"] = hidden + kept * values
    return found | {"o_proj": values + hidden}


def _feed_forward(model: Model, width: int) -> float:
    return (3.0 if model.gated else 2.0) * (model.hidden + width)
