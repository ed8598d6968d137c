"""Parameters that one GPU holds, by what happens to them, and bytes of their states.

What ``tp`` does not share out: norms, the router and the projections to compressed
queries, keys and values (Megatron-LM d98e8a64,
``training/theoretical_memory_usage.py``). The vocabulary is padded to a multiple of
``128 tp`` (``make_vocab_size_divisible_by``, ``training/global_vars.py``).

Bytes of a parameter, whole or shared out over D copies (Rajbhandari et al. 2020, arXiv
1910.02054, section 3 and figure 1; Megatron-LM d98e8a64,
``docs/user-guide/features/dist_optimizer.md``):

=====  =========  ========  =========
mode   weights    gradient  optimizer
=====  =========  ========  =========
ddp    whole      whole     whole
zero1  whole      whole     shared
zero2  whole      shared    shared
zero3  shared     shared    shared
=====  =========  ========  =========

D counts data and context ranks, ``dp cp``: all of them hold the same parameters
(Megatron-Bridge, ``training/utils/theoretical_memory_utils.py``). For experts it is
``edp = tp cp dp / (etp ep)``. ``hsdp`` shares out inside its shard group, and so does
each of several instances of a distributed optimizer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from placer.job.adapters import Adapters, adapters_of_layer
from placer.job.memory import gradient_bytes
from placer.job.models import (
    Model,
    expert_parameters,
    latent_parameters,
    layer_parameters,
    padded_vocabulary,
)

if TYPE_CHECKING:
    from placer.job.axes import Parallelism
    from placer.job.model import Job

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


# Bytes of a gathered weight and of its gradient, in the precision of the products.
_GATHERED = 2.0
# Master weights and two moments in FP32; weights in FP32 are their own master.
_ADAM, _ADAM_OF_FP32 = 12.0, 8.0


class States:
    """Bytes of a parameter and over how many GPUs its copies are shared out."""

    def __init__(self, job: Job) -> None:
        axes, mode, memory = job.parallelism, job.data_parallel, job.memory
        # Weights are gathered to be used (``zero3``, ``hsdp``); they stay so for the
        # step, and gradients are reduced at its end.
        self.gathers, self.keeps = mode.shards_weights, mode.keep_parameters
        # Bytes of a weight that is trained beside others, of one of a matrix product,
        # of one that is gathered. What is not trained needs no copy in FP32.
        self.trained = 4.0 if self.gathers else 2.0
        usual = self.trained if job.adapters is None else 2.0
        known = memory.parameter_bytes
        self.matrix, self.gathered = usual if known is None else known, _GATHERED
        if job.adapters is None:
            self.trained = self.matrix
        else:
            self.gathered = min(_GATHERED, self.matrix)
        self.gradient = gradient_bytes(job)
        usual = _ADAM if self.trained < 4.0 else _ADAM_OF_FP32
        known = memory.optimizer_bytes
        self.optimizer = usual if known is None else known
        # GPUs that share one copy: of dense parameters, of experts.
        members = axes.dp * axes.cp
        dense, expert = (mode.shard_members(n, members) for n in (members, axes.edp))
        shared, one = (float(dense), float(expert)), (1.0, 1.0)
        shares_gradients = self.gathers or mode.sharding == "zero2"
        self.weight_shards = shared if self.gathers else one
        self.gradient_shards = shared if shares_gradients else one
        self.optimizer_shards = one if mode.sharding == "ddp" else shared

    def parameters(self, held: Held, unit: Held, whole: Held, adapters: Held) -> float:
        """Bytes of weights.

        ``held``: of the stage. ``unit``: the largest that is gathered at once: the one
        in use and the next are there. ``whole``: gathered for the whole step: the
        vocabulary. ``adapters``: of the stage, beside what it holds.
        """
        kept = self.weights(held, adapters)
        if not self.gathers:
            return kept
        most = held.total + adapters.total
        some = most if self.keeps else 2 * unit.total + whole.total
        return kept + self.gathered * min(some, most)

    def weights(self, held: Held, adapters: Held) -> float:
        """Bytes of weights that stay between steps, none gathered."""
        dense, expert = self.weight_shards
        kept = held.matrices * self.matrix + held.others * max(self.matrix, _GATHERED)
        kept += adapters.matrices * self.trained
        experts = held.experts * self.matrix + adapters.experts * self.trained
        return kept / dense + experts / expert

    def gradients(self, held: Held, unit: Held) -> float:
        """Bytes of gradients; of a gathered unit also before they are reduced.

        ``held`` and ``unit`` are what is trained.
        """
        dense, expert = self.gradient_shards
        kept = (held.matrices + held.others) / dense + held.experts / expert
        kept *= self.gradient
        if not self.gathers:
            return kept
        if self.keeps:
            return kept + self.gradient * held.total
        return kept + (_GATHERED + self.gradient) * unit.total

    def optimizers(self, held: Held) -> float:
        """Bytes of optimizer states."""
        dense, expert = self.optimizer_shards
        kept = (held.matrices + held.others) / dense + held.experts / expert
        return kept * self.optimizer
