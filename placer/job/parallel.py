"""What the axes of a job send, and how layers are cut over them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import gcd

from placer.documents import Section
from placer.documents.keys import BOOLEAN, Key, integer, key, number, one_of
from placer.documents.records import read
from placer.job.axes import Parallelism
from placer.job.models import Model

# 16 of 132 (Megatron-LM's table of communicators, the most; DeepEP 0297fc80: 20 to 24;
# HybridEP: 16, or 32 in Megatron-Bridge 067f987d, ``perf_recipes/_common.py``);
# Calculon caa4b11f: 0.15 for NVLink, 0.02 for NICs.
SM_SHARE = 0.12


@dataclass(frozen=True)
class TensorParallel:
    """How layers are cut over ``tp``."""

    sequence: bool = key(
        BOOLEAN,
        "sequence parallelism; without it a layer runs all-reduces, two a pass",
        True,
    )
    loss: str = key(
        one_of(("parallel", "gathered")),
        "`parallel` (each tp rank has its part of the logits) or `gathered` (each has "
        "all of them: time with `compute.memory_bandwidth`, and memory)",
        "parallel",
        newer=True,
    )


@dataclass(frozen=True)
class ContextParallel:
    """How attention sees the whole sequence over ``cp``."""

    communication: str = key(
        one_of(("p2p", "all_gather", "a2a")),
        "`p2p` (keys and values go round a ring beside attention), `all_gather` (they "
        "are gathered before it, never hidden) or `a2a` (heads are exchanged for "
        "tokens and back, never hidden)",
        "p2p",
    )


@dataclass(frozen=True)
class ExpertParallel:
    """How tokens reach their experts over ``ep``."""

    imbalance: float = key(
        number(1.0, 1e6), "tokens of the busiest expert rank, in those of the mean", 1.0
    )
    dispatch: str = key(
        one_of(("flat", "deduplicated")),
        "`flat` (every copy of a token on its own) or `deduplicated` (once to each "
        "scale-up domain, and there once to each GPU)",
        "flat",
    )
    sm_share: float = key(
        number(0.0, 1.0),
        "of a GPU's multiprocessors, what exchanges that hide take from the work "
        "beside them: 0.22 for 32 of 148",
        SM_SHARE,
        newer=True,
    )


@dataclass(frozen=True)
class Collectives:
    """Algorithms of the collectives."""

    all_reduce: str = key(
        one_of(("auto", "ring", "tree", "nvls")),
        "`ring`, `tree`, `nvls` (reduced in the NVLink switch), or `auto`: what NCCL's "
        "tuner takes for each group",
        "auto",
    )
    gather = Key(
        one_of(("auto", "ring")),
        "of reduce-scatters and all-gathers: `ring`, and `auto` is the same",
        "auto",
    )


@dataclass(frozen=True)
class ElementBytes:
    """Bytes an element takes on the wire."""

    activation: float = key(number(0.125, 16.0), "bytes of an activation", 2.0)
    gradient: float = key(number(0.125, 16.0), "bytes of a gradient", 2.0)
    parameter_gather: float = key(
        number(0.125, 16.0), "bytes of a gathered parameter", 2.0
    )


@dataclass(frozen=True)
class DataParallel:
    """How gradients and parameters are kept in step."""

    sharding: str = key(
        one_of(("ddp", "zero1", "zero2", "zero3", "fsdp", "hsdp")),
        "`ddp`, `zero1`, `zero2` (reduces in every micro-batch, holds less), `zero3` "
        "(or `fsdp`) or `hsdp`",
        "zero1",
    )
    bucket_parameters: int = key(
        integer(1, 10**13),
        "parameters of a gradient bucket",
        40_000_000,
        absent="`40000000`, from 41 ranks on 1 M a rank of `dp`",
    )
    overlap_reduce: bool = key(
        BOOLEAN, "gradient reduction hides behind the backward pass", True
    )
    overlap_gather: bool = key(
        BOOLEAN, "parameter gather hides behind the forward pass", True
    )
    sync_every: int = key(integer(), "steps between two synchronisations", 1)
    shard_size: int = key(
        integer(),
        "ranks that share one copy of the parameters, of the `dp` x `cp` ranks that "
        "reduce a dense gradient; `hsdp` only",
        0,
        absent="required for `hsdp`",
        unsaid=True,
    )
    keep_parameters: bool = key(
        BOOLEAN,
        "`zero3` and `hsdp`: parameters stay whole for the step, gathered and reduced "
        "once rather than in every micro-batch",
        False,
    )
    optimizer_instances: int = key(
        integer(1, 10**6),
        "`zero1` and `zero2`: copies of the sharded optimizer; gradients are reduced "
        "inside the groups of each, then across them",
        1,
        newer=True,
        unsaid=False,
    )
    reduce_once: bool = key(
        BOOLEAN,
        "`zero2`: gradients are added up over the micro-batches and reduced once a "
        "step, as FSDP can",
        False,
        newer=True,
        unsaid=False,
    )
    sm_share: float = key(
        number(0.0, 1.0),
        "of a GPU's multiprocessors, what reductions and gathers take from the work "
        "beside them: 0.054 for 8 CTAs of 148",
        SM_SHARE,
        newer=True,
    )

    @property
    def shards_weights(self) -> bool:
        """Whether weights are shared out, and gathered to be used."""
        return self.sharding in ("zero3", "hsdp")

    @property
    def gathers_each(self) -> bool:
        """Whether each micro-batch gathers its parameters."""
        return self.shards_weights and not self.keep_parameters

    @property
    def reduces_each(self) -> bool:
        """Whether each micro-batch reduces its gradients.

        Shards of gradients are all that ``zero2`` keeps (DeepSpeed 02aa38c3,
        ``runtime/zero/stage_1_and_2.py``: ``partition_gradients``).
        """
        if self.sharding == "zero2":
            return not self.reduce_once
        return self.gathers_each

    def shard_members(self, members: int, dense: int) -> int:
        """Of so many ranks with the same parameters, those that share one copy.

        There are as many copies of experts as of the rest (Megatron-LM d98e8a64,
        ``core/parallel_state.py``: both groups are divided by the same number;
        torchtitan b5bcd76c, ``distributed/parallel_dims.py``: one ``dp_replicate``).

        ``dense``: ranks with the same parameters outside experts: dp x cp.
        """
        copies = self.optimizer_instances
        if self.sharding == "hsdp" and self.shard_size:
            copies = dense // gcd(self.shard_size, dense)
        return members // gcd(copies, members)


@dataclass(frozen=True)
class EndStages:
    """Layers' worth of work that the ends of the model count for.

    Layers, embedding and loss together are spread evenly over the ``pp x vp`` chunks:
    the first and the last chunk hold so many layers less.
    """

    embedding: float = key(
        number(0.0, 1e4), "layers' worth of work that the embedding counts for", 0.0
    )
    loss: float = key(
        number(0.0, 1e4), "layers' worth of work that the loss counts for", 0.0
    )


_HIDES = "this axis' traffic hides behind compute"


@dataclass(frozen=True)
class Overlap:
    """Which axes' traffic hides behind compute."""

    tp: bool = key(BOOLEAN, _HIDES + " (tp: of groups inside a scale-up domain)", False)
    cp: bool = key(BOOLEAN, _HIDES, True)
    pp: bool = key(BOOLEAN, _HIDES, True)
    ep: bool = key(BOOLEAN, _HIDES, False)


def default_bucket(dp: int) -> int:
    """Parameters of a bucket when the job does not say: ``max(40 M, 1 M x dp)``.

    Megatron-LM d98e8a64, ``core/distributed/distributed_data_parallel.py``.
    """
    return max(40_000_000, 1_000_000 * dp)


def decode_sync(
    section: Section, parallelism: Parallelism, degrees: tuple[int, int] | None
) -> DataParallel:
    """How gradients and parameters are kept in step.

    ``degrees`` are ``dp_replicate`` and ``dp_shard`` where the job gives those. They
    say how parameters are sharded: over ``dp_shard x cp`` ranks (torchtitan,
    ``distributed/parallel_dims.py``).
    """
    usual, implied_size = _implied(degrees, parallelism.cp)
    defaults = {"sharding": usual, "bucket_parameters": default_bucket(parallelism.dp)}
    found = read(section, DataParallel, defaults)
    sharding = found.sharding.replace("fsdp", "zero3")
    if degrees and sharding != usual:
        message = f"dp_replicate {degrees[0]} and dp_shard {degrees[1]} make it {usual}"
        section.problem(message, "sharding", "leave sharding out")
    members = parallelism.dp * parallelism.cp
    size = found.shard_size or implied_size or 0
    if sharding == "hsdp":
        section.get("shard_size", required=implied_size is None)
        if implied_size not in (None, size):
            message = f"dp_shard x cp = {implied_size} is not {size}"
            section.problem(message, "shard_size", "leave shard_size out")
        if size and members % size and not section.document.problems:
            message = f"{size} does not divide dp x cp = {members}"
            section.problem(message, "shard_size")
    instances = found.optimizer_instances
    if instances > 1 and sharding in ("zero1", "zero2") and members % instances:
        message = f"{instances} does not divide dp x cp"
        section.problem(message, "optimizer_instances")
    for name, given, of in (
        ("shard_size", section.has("shard_size"), ("hsdp",)),
        ("optimizer_instances", instances > 1, ("zero1", "zero2")),
        ("reduce_once", found.reduce_once, ("zero2",)),
        ("keep_parameters", found.keep_parameters, ("zero3", "hsdp")),
    ):
        if given and sharding not in of:
            hint = "remove it" + (", or set sharding: hsdp" if of == ("hsdp",) else "")
            message = f"is for sharding {' and '.join(of)} only, not {sharding}"
            section.problem(message, name, hint)
    return replace(
        found, sharding=sharding, shard_size=size if sharding == "hsdp" else 0
    )


def _implied(degrees: tuple[int, int] | None, cp: int) -> tuple[str, int | None]:
    """Sharding and size of a shard group that go without saying."""
    if degrees is None:
        return "zero1", None
    replicate, shard = degrees
    if shard * cp == 1:
        return "ddp", None
    return ("zero3", None) if replicate == 1 else ("hsdp", shard * cp)


def decode_stages(
    root: Section, model: Model | None, parallelism: Parallelism
) -> EndStages:
    """What embedding and loss count for when layers are spread over chunks.

    Neither may count for more than one chunk holds.
    """
    section = root.section("stages")
    ends = read(section, EndStages)
    chunks = parallelism.pp * parallelism.vp
    if model is None:
        if root.has("stages"):
            root.problem("needs a model", "stages", "add model, or remove it")
    elif chunks > 1 and not section.document.problems:
        chunk = (model.layers + ends.embedding + ends.loss) / chunks
        for key, layers in (("embedding", ends.embedding), ("loss", ends.loss)):
            if layers > chunk:
                message = (
                    f"counts for {layers:g} layers, more than the {chunk:g} of one of "
                    f"pp x vp = {chunks} chunks"
                )
                section.problem(message, key)
    return ends
