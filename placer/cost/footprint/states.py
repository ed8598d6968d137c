"""Weights, gradients and optimizer states of the parameters that one GPU holds.

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

from typing import TYPE_CHECKING

from placer.job.memory import gradient_bytes

if TYPE_CHECKING:
    from placer.cost.footprint.parameters import Held
    from placer.job.model import Job

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
        # Bytes of a weight that is trained beside others, which need no copy in FP32
        # for an optimizer; of one of a matrix product; of one that is gathered.
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
