"""What a job sends and how: element sizes, synchronisation, overlap, collectives."""

from __future__ import annotations

from typing import TYPE_CHECKING

from placer.job.model import DataParallel, ElementBytes, EndStages, Overlap
from placer.job.parallel import (
    LOSSES,
    SM_SHARE,
    Collectives,
    ContextParallel,
    ExpertParallel,
    TensorParallel,
)

if TYPE_CHECKING:
    from placer.documents import Section
    from placer.job.axes import Parallelism
    from placer.job.model import Model

ALL_REDUCES = ("auto", "ring", "tree", "nvls")
GATHERS = ("auto", "ring")  # which are the same
COMMUNICATIONS = ("p2p", "all_gather", "a2a")
DISPATCHES = ("flat", "deduplicated")

# Keys that older files and plans lack, and what these mean.
NEWER_SYNC_KEYS = {
    "optimizer_instances": 1,
    "reduce_once": False,
    "sm_share": SM_SHARE,
}
_SHARDING = {
    "ddp": "ddp",
    "zero1": "zero1",
    "zero2": "zero2",
    "zero3": "zero3",
    "fsdp": "zero3",
    "hsdp": "hsdp",
}


def default_bucket(dp: int) -> int:
    """Parameters of a bucket when the job does not say: ``max(40 M, 1 M x dp)``.

    Megatron-LM d98e8a64, ``core/distributed/distributed_data_parallel.py``.
    """
    return max(40_000_000, 1_000_000 * dp)


def decode_bytes(section: Section) -> ElementBytes:
    """Bytes of an element, by what it is."""
    usual = ElementBytes()
    return ElementBytes(
        **{
            key: section.number(key, getattr(usual, key), minimum=0.125, maximum=16.0)
            for key in ("activation", "gradient", "parameter_gather")
        }
    )


def decode_sync(
    section: Section, parallelism: Parallelism, degrees: tuple[int, int] | None
) -> DataParallel:
    """How gradients and parameters are kept in step.

    ``degrees`` are ``dp_replicate`` and ``dp_shard`` where the job gives those. They
    say how parameters are sharded: over ``dp_shard x cp`` ranks (torchtitan,
    ``distributed/parallel_dims.py``).
    """
    bucket = default_bucket(parallelism.dp)
    usual, implied_size = _implied(degrees, parallelism.cp)
    sharding = _SHARDING[section.choice("sharding", tuple(_SHARDING), usual)]
    if degrees and sharding != usual:
        message = f"dp_replicate {degrees[0]} and dp_shard {degrees[1]} make it {usual}"
        section.problem(message, "sharding", "leave sharding out")
    if sharding == "hsdp":
        shard_size = section.integer("shard_size", implied_size)
        if implied_size not in (None, shard_size):
            message = f"dp_shard x cp = {implied_size} is not {shard_size}"
            section.problem(message, "shard_size", "leave shard_size out")
        members = parallelism.dp * parallelism.cp
        if members % shard_size and not section.document.problems:
            message = f"{shard_size} does not divide dp x cp = {members}"
            section.problem(message, "shard_size")
    else:
        shard_size = 0
        if section.has("shard_size"):
            message = f"is for sharding hsdp only, not {sharding}"
            section.problem(message, "shard_size", "remove it, or set sharding: hsdp")
    instances = section.integer("optimizer_instances", 1, maximum=10**6)
    if instances > 1 and sharding not in ("zero1", "zero2"):
        message = f"is for sharding zero1 and zero2 only, not {sharding}"
        section.problem(message, "optimizer_instances", "remove it")
    elif (parallelism.dp * parallelism.cp) % instances:
        message = f"{instances} does not divide dp x cp"
        section.problem(message, "optimizer_instances")
    reduce_once = section.boolean("reduce_once", False)
    if reduce_once and sharding != "zero2":
        message = f"is for sharding zero2 only, not {sharding}"
        section.problem(message, "reduce_once", "remove it")
    keep_parameters = section.boolean("keep_parameters", False)
    if keep_parameters and sharding not in ("zero3", "hsdp"):
        message = f"is for sharding zero3 and hsdp only, not {sharding}"
        section.problem(message, "keep_parameters", "remove it")
    return DataParallel(
        sharding=sharding,
        bucket_parameters=section.integer("bucket_parameters", bucket, maximum=10**13),
        overlap_reduce=section.boolean("overlap_reduce", True),
        overlap_gather=section.boolean("overlap_gather", True),
        sync_every=section.integer("sync_every", 1),
        shard_size=shard_size,
        keep_parameters=keep_parameters,
        optimizer_instances=instances,
        reduce_once=reduce_once,
        sm_share=section.number("sm_share", SM_SHARE, maximum=1.0),
    )


def _implied(degrees: tuple[int, int] | None, cp: int) -> tuple[str, int | None]:
    """Sharding and size of a shard group that go without saying."""
    if degrees is None:
        return "zero1", None
    replicate, shard = degrees
    if shard * cp == 1:
        return "ddp", None
    return ("zero3", None) if replicate == 1 else ("hsdp", shard * cp)


def decode_overlap(section: Section) -> Overlap:
    """Which axes' traffic hides behind compute."""
    usual = Overlap()
    return Overlap(
        **{
            axis: section.boolean(axis, getattr(usual, axis))
            for axis in ("tp", "cp", "pp", "ep")
        }
    )


def decode_collectives(section: Section) -> Collectives:
    """Algorithms of the collectives."""
    section.choice("gather", GATHERS, "auto")
    return Collectives(section.choice("all_reduce", ALL_REDUCES, "auto"))


def decode_tensor_parallel(section: Section) -> TensorParallel:
    """How layers are cut over ``tp``."""
    usual = TensorParallel()
    return TensorParallel(
        section.boolean("sequence", usual.sequence),
        section.choice("loss", LOSSES, usual.loss),
    )


def decode_context_parallel(section: Section) -> ContextParallel:
    """How attention sees the whole sequence."""
    return ContextParallel(section.choice("communication", COMMUNICATIONS, "p2p"))


def decode_expert_parallel(section: Section) -> ExpertParallel:
    """How tokens reach their experts."""
    return ExpertParallel(
        imbalance=section.number("imbalance", 1.0, minimum=1.0, maximum=1e6),
        dispatch=section.choice("dispatch", DISPATCHES, "flat"),
        sm_share=section.number("sm_share", SM_SHARE, maximum=1.0),
    )


def decode_stages(
    root: Section, model: Model | None, parallelism: Parallelism
) -> EndStages:
    """What embedding and loss count for when layers are spread over chunks.

    Neither may count for more than one chunk holds.
    """
    section = root.section("stages")
    ends = EndStages(
        embedding=section.number("embedding", 0.0, maximum=1e4),
        loss=section.number("loss", 0.0, maximum=1e4),
    )
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
