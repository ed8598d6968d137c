"""DeepSpeed's JSON configuration: sharding, types on the wire and batches.

Sources: deepspeedai/DeepSpeed edaa7221, ``runtime/zero/config.py`` (defaults),
``runtime/config.py`` (batches), ``runtime/engine.py`` (type of reductions) and
``runtime/pipe/topology.py`` (order of the axes).
"""

from __future__ import annotations

from collections.abc import Callable

from placer.base.naming import named
from placer.formats.jobs.findings import GLOBAL_BATCH, Findings, Scalar
from placer.formats.jobs.reading import of_json
from placer.formats.jobs.settings import AUTO, Settings, reader

_SHARDING: tuple[Scalar, ...] = ("ddp", "zero1", "zero2", "zero3")
_TYPES: dict[str, Scalar] = {
    "fp16": 2,
    "bf16": 2,
    "bfp16": 2,
    "fp32": 4,
    "torch.float16": 2,
    "torch.bfloat16": 2,
}
BUCKET, _BUCKET = 500_000_000, "data_parallel.bucket_parameters"
_AXES = {
    "parallelism.tp": "tensor_parallel.autotp_size",
    "parallelism.pp": "pipeline.stages",
}
_SHARED = "data_parallel.sharding"
_TRAIN, _MICRO, _STEPS = (
    "train_batch_size",
    "train_micro_batch_size_per_gpu",
    "gradient_accumulation_steps",
)


def read_deepspeed(settings: Settings) -> None:
    """Take what DeepSpeed's keys say of a job, wherever they stand."""
    found = settings.found
    found.derive("parallelism.order", "tp-cp-ep-dp-pp", "PipeModelDataParallelTopology")
    settings.take(_AXES, usual=(1, "default of DeepSpeed"))
    if settings.copy("parallelism.cp", "sequence_parallel_size"):
        rule = "sequence_parallel_size is of Ulysses"
        found.derive("context_parallel.communication", "a2a", rule)
    read_sharding(settings)
    _read_types(settings)
    _read_batch(settings)


read = reader(of_json)(read_deepspeed)


def read_inline(settings: Settings) -> None:
    """Take keys that accelerate passes on; the batch is its trainer's to say."""
    read_sharding(settings)
    _read_types(settings)
    settings.copy("micro_batches", _STEPS)


def read_sharding(settings: Settings) -> None:
    """Take what is shared out, and what runs beside computing.

    Where the keys do not tell the stage, that of the findings holds.
    """
    found, section = settings.found, "zero_optimization"
    key = f"{section}.stage"
    told = settings.integer(key, minimum=0, maximum=3, fact=_SHARED)
    if told is None:
        found.derive(_SHARED, "ddp", "stage 0 is DeepSpeed's default")
    else:
        found.read(_SHARED, _SHARDING[told], settings.place(key))
    sharding = found.text(_SHARED)
    stage = _SHARDING.index(sharding) if sharding in _SHARDING else 0
    shard = settings.integer(f"{section}.mics_shard_size", minimum=-1)
    if shard and shard > 0 and stage == 3:
        where = settings.place(f"{section}.mics_shard_size")
        found.read(_SHARED, "hsdp", where)
        found.read("data_parallel.shard_size", shard, where)
    hpz = f"{section}.zero_hpz_partition_size"
    if (settings.integer(hpz) or 1) > 1:
        settings.not_modelled(hpz, "backward gathers inside groups of this size")
    overlap = settings.flag(f"{section}.overlap_comm")
    words, key = f"overlap_comm at stage {stage}", f"{section}.overlap_comm"
    hides = stage == 3 if overlap is None else overlap
    settings.derive("data_parallel.overlap_reduce", hides, words, key)
    # Stages 1 and 2 gather at the end of the step, beside nothing.
    settings.derive("data_parallel.overlap_gather", hides and stage == 3, words, key)
    key = f"{section}.reduce_bucket_size"
    if settings.is_auto(key):
        found.later(_square_bucket)
    elif settings.copy(_BUCKET, key, maximum=10**13) is None:
        settings.derive(_BUCKET, BUCKET, "default of DeepSpeed", key)
    for part in ("offload_optimizer", "offload_param"):
        keys = f"{section}.{part}.device", f"{section}.{part}_device"
        device = settings.unknown(*keys) or settings.text(*keys)
        if device not in ("", "none"):
            settings.not_modelled(keys[0], f"state on {device}")


def _square_bucket(found: Findings) -> None:
    if hidden := found.integer("model.hidden"):
        found.derive(_BUCKET, hidden**2, "auto: hidden x hidden of transformers")


def _read_types(settings: Settings) -> None:
    """Bytes on the wire; ``auto`` is mixed precision as nearly everyone trains."""
    found = settings.found
    half = [
        settings.flag(f"{name}.enabled", f"{name}.{name}") for name in ("bf16", "fp16")
    ]
    auto = any(settings.is_auto(f"{name}.enabled") for name in ("bf16", "fp16"))
    width = 2 if any(half) or auto else 4
    why = "16 bit" if any(half) else "fp32, as neither bf16 nor fp16 is enabled"
    record: Callable[[str, Scalar, str], None] = found.derive
    if auto and not any(half):
        record, why = found.assume, "bf16 or fp16, which are auto"
    for key in ("activation", "parameter_gather"):
        record(f"bytes.{key}", width, why)
    wire = settings.choice(_TYPES, "communication_data_type")
    if wire is not None:
        found.read("bytes.gradient", wire, settings.place("communication_data_type"))
    else:
        record("bytes.gradient", width, why)


def _read_batch(settings: Settings) -> None:
    """Of three keys two give the third; accumulation is 1 where one is alone."""
    found = settings.found
    whole = settings.copy(GLOBAL_BATCH, _TRAIN)
    one = settings.copy("micro_batch", _MICRO)
    steps = settings.copy("micro_batches", _STEPS)
    autos = [key for key in (_TRAIN, _MICRO, _STEPS) if settings.is_auto(key)]
    for key, fact in ((_MICRO, "micro_batch"), (_STEPS, "micro_batches")):
        if key in autos:  # whoever runs DeepSpeed fills it in
            message = f'{key} is "{AUTO}": the trainer of transformers sets it'
            hint = named("settings", {f"job.{fact}": "N"})
            found.ask_later(fact, message, hint, settings.place(key))
    if not autos and steps is None and not (whole and one):
        found.derive("micro_batches", 1, "no gradient_accumulation_steps: 1")
    if whole:
        found.later(_check_batch)


def _check_batch(found: Findings) -> None:
    """``train_batch_size`` is micro-batch x accumulation x data-parallel size."""
    whole, dp = found.integer(GLOBAL_BATCH), found.integer("parallelism.dp")
    one, steps = found.integer("micro_batch"), found.integer("micro_batches")
    if not (dp and steps):
        return
    if one and one * steps * dp != whole:
        message = f"{whole:,} is not {one} x {steps} x {dp}: {_MICRO} x {_STEPS} x dp"
        hint = "DeepSpeed refuses it: correct one of them"
        found.problem(GLOBAL_BATCH, message, hint)
    elif not one and whole % (steps * dp):
        message = f"{whole:,} is no multiple of {_STEPS} {steps} x dp {dp}"
        found.problem(GLOBAL_BATCH, message)
    elif not one:
        rule = f"{_TRAIN} {whole:,} / ({_STEPS} {steps} x dp {dp})"
        found.derive("micro_batch", whole // (steps * dp), rule)
