"""Parameters that one GPU holds, by what happens to them.

What ``tp`` does not share out: norms, the router and the projections to compressed
queries, keys and values (Megatron-LM d98e8a64,
``training/theoretical_memory_usage.py``). The vocabulary is padded to a multiple of
``128 tp`` (``make_vocab_size_divisible_by``, ``training/global_vars.py``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from placer.job.adapters import Adapters, adapters_of_layer
from placer.job.models import (
    Model,
    expert_parameters,
    latent_parameters,
    layer_parameters,
    padded_vocabulary,
)

if TYPE_CHECKING:
    from placer.job.axes import Parallelism

_VOCABULARY_MULTIPLE = 128


@dataclass(frozen=True)
class Held:
    """Parameters of a part of the model on one GPU."""

    matrices: float = 0.0  # weights of matrix products, which may be kept in FP8 or FP4
    others: float = 0.0  # norms, router and embeddings
    # Routed experts, whose copies lie in other groups than those of the rest.
    experts: float = 0.0

    @property
    def total(self) -> float:
        """All of them."""
        return self.matrices + self.others + self.experts

    def __add__(self, other: Held) -> Held:
        return Held(
            self.matrices + other.matrices,
            self.others + other.others,
            self.experts + other.experts,
        )

    def __mul__(self, count: float) -> Held:
        return Held(self.matrices * count, self.others * count, self.experts * count)


def held_of_layer(model: Model, axes: Parallelism, *, moe: bool) -> Held:
    """One layer's parameters on one GPU."""
    routed = model.experts * expert_parameters(model) if moe else 0
    whole = 2 * model.hidden + (model.hidden * model.experts if moe else 0)
    down = 0
    if model.kv_lora_rank and not model.attention_parameters:
        down = latent_parameters(model)[1]
    shared = layer_parameters(model, moe=moe) - routed - whole - down
    return Held(shared / axes.tp + down, whole, routed / (axes.etp * axes.ep))


def adapters_of(
    model: Model, axes: Parallelism, adapters: Adapters, *, moe: bool
) -> Held:
    """The adapters of one layer on one GPU, cut as the matrices beside them."""
    found = adapters_of_layer(model, adapters, moe=moe)
    cut = axes.etp * axes.ep
    return Held(matrices=found.dense / axes.tp, experts=found.experts / cut)


def held_at_ends(model: Model, axes: Parallelism) -> tuple[Held, Held]:
    """Embedding and what else the first stage holds, then output and the last one's.

    Tied embeddings are one copy when there is one stage. Layers that predict further
    tokens join two vectors by a matrix and look up embeddings, of which the last stage
    then has a copy.
    """
    vocabulary = held_vocabulary(model, axes) * model.hidden / axes.tp
    first = Held(others=vocabulary + model.positions * model.hidden)
    one_copy = model.tied_embeddings and axes.pp == 1
    output = 0.0 if one_copy else vocabulary
    joined = 2 * model.hidden**2 / axes.tp * model.mtp_layers
    if model.mtp_layers and axes.pp > 1 and not model.tied_embeddings:
        output += vocabulary
    return first, Held(matrices=joined, others=output + model.hidden)


def held_vocabulary(model: Model, axes: Parallelism) -> int:
    """Rows of the embedding, a multiple of 128 a tp rank unless the model says."""
    return padded_vocabulary(model, axes.tp, _VOCABULARY_MULTIPLE)
