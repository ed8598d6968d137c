"""ms-swift's ``swift sft``, ``pt`` and ``rlhf``: transformers, DDP or DeepSpeed.

Source: modelscope/ms-swift 3602360a, ``swift/trainers/arguments.py`` and
``swift/arguments/`` (defaults), ``swift/config/zero*.json`` (DeepSpeed).
"""

from __future__ import annotations

import re
from math import ceil
from typing import TYPE_CHECKING

from placer.formats.jobs import adapters, deepspeed
from placer.formats.jobs.accelerate import named_deepspeed
from placer.formats.jobs.findings import GPUS
from placer.formats.jobs.join import join
from placer.formats.jobs.settings import AUTO, Setting, Settings

if TYPE_CHECKING:
    from placer.formats.jobs.findings import Asked, Findings, Place
    from placer.formats.jobs.megatron.arguments import Arguments

_DEFAULT = "ms-swift's default"
_ZERO = re.compile(r"zero([0-3])(?:_offload)?")
_BATCH = 16  # that its default of accumulation is for
_BUCKET = 200_000_000


def read_training(
    found: Findings, arguments: Arguments, place: Place, asked: Asked
) -> Findings:
    """Findings with what the arguments of ``swift sft`` say.

    Parameters
    ----------
    found : Findings
        With the GPUs, where the script says them.
    arguments : Arguments
    place : Place
        Of the command.
    asked : Asked
    """
    found.derive("parallelism.order", "tp-cp-ep-dp-pp", "FSDP and DeepSpeed: dp alone")
    for axis in ("pp", "ep"):
        found.derive(f"parallelism.{axis}", 1, _DEFAULT)
    _read_size(found, arguments, "deepspeed_autotp_size", "parallelism.tp", 1)
    _read_size(found, arguments, "sequence_parallel_size", "parallelism.cp", 1)
    if found.integer("parallelism.cp") > 1:
        rule = "sequence_parallel_size is of Ulysses"
        found.derive("context_parallel.communication", "a2a", rule)
    if arguments.fact("sequence", "max_length"):
        found.notes.append("sequence is the longest: most are shorter, unless packed")
    _read_batch(found, arguments, asked)
    if arguments.noted("gradient_checkpointing") is None or arguments.flag(
        "gradient_checkpointing"
    ):
        found.derive("memory.recompute", "full", "gradient_checkpointing")
    adapters.read_swift(found, arguments, place)
    return _with_sharding(found, arguments, asked)


def _read_size(
    found: Findings, arguments: Arguments, name: str, key: str, default: int
) -> int:
    value = arguments.fact(key, name)
    if value is None:
        found.derive(key, default, _DEFAULT)
    return default if value is None else value


def _read_batch(found: Findings, arguments: Arguments, asked: Asked) -> None:
    """Accumulation fills 16 sequences, where nothing says it."""
    micro = _read_size(
        found, arguments, "per_device_train_batch_size", "micro_batch", 1
    )
    steps = arguments.fact("micro_batches", "gradient_accumulation_steps")
    world = asked.gpus or found.integer(GPUS)
    if steps is None and world:
        steps = max(1, ceil(_BATCH / micro / world))
        rule = f"{_DEFAULT}: {_BATCH} / ({micro} x {world} GPUs), rounded up"
        found.derive("micro_batches", steps, rule)


def _with_sharding(found: Findings, arguments: Arguments, asked: Asked) -> Findings:
    place, name = arguments.place("deepspeed"), arguments.text("deepspeed")
    preset = _ZERO.fullmatch(name)
    if place is not None and name and not preset:
        return join([found, named_deepspeed(found, name, asked)])
    if preset and place is not None:
        stage = int(preset[1])
        values = {
            "bf16.enabled": True,
            "zero_optimization.stage": stage,
            "zero_optimization.overlap_comm": False,
            "zero_optimization.reduce_bucket_size": AUTO if stage == 3 else _BUCKET,
        }
        settings = {key: Setting(value, place) for key, value in values.items()}
        deepspeed.read_inline(Settings(found, settings, asked))
        return found
    sharding = "ddp" if arguments.get("fsdp") is None else "zero3"
    found.derive("data_parallel.sharding", sharding, "no --deepspeed")
    for key in ("activation", "gradient", "parameter_gather"):
        found.derive(f"bytes.{key}", 2, f"{_DEFAULT}, bfloat16")
    return found
