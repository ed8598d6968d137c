"""What Megatron-DeepSpeed takes from the JSON of DeepSpeed.

Source: deepspeedai/DeepSpeed edaa7221, ``runtime/zero/config.py``,
``runtime/config.py``, ``runtime/engine.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from placer.document import Document, parse_answer
from placer.errors import InputError
from placer.sources.findings import GLOBAL_BATCH, Asked, Findings, Place

if TYPE_CHECKING:
    from placer.sources.megatron.arguments import Arguments
    from placer.sources.shell import Script

_STAGES = {0: "ddp", 1: "zero1", 2: "zero2", 3: "zero3"}
_BUCKET = 500_000_000


def read_deepspeed(
    found: Findings, arguments: Arguments, script: Script | None, asked: Asked
) -> None:
    """Read the configuration that a script writes, or that lies beside it."""
    for key in ("overlap_reduce", "overlap_gather", "bucket_parameters"):
        found.facts.pop(f"data_parallel.{key}", None)
    config, place = _config(found, arguments, script, asked)
    stage = found.text("data_parallel.sharding")
    if config is not None:
        stage = _read(found, config, place, stage)
    overlap = stage == "zero3"
    rule = "DeepSpeed's default at stage 3" if overlap else "DeepSpeed's default"
    found.derive("data_parallel.overlap_reduce", overlap, rule)
    found.derive("data_parallel.overlap_gather", overlap, rule)
    found.derive("data_parallel.bucket_parameters", _BUCKET, "DeepSpeed's default")


def _config(
    found: Findings, arguments: Arguments, script: Script | None, asked: Asked
) -> tuple[Document | None, Place]:
    name, place = (
        arguments.text("deepspeed_config"),
        arguments.place("deepspeed_config"),
    )
    where = place or Place(found.source)
    text, shown = None, name
    if script is not None and name in script.files:
        written = script.files[name]
        text, where = written.text, written.place
    elif name and (included := asked.include(found.source, name)):
        text, shown = included
        where = Place(shown)
    if text is None:
        if name:
            found.notes.append(f"{name} is not there: DeepSpeed's defaults hold")
        return None, where
    try:
        return parse_answer(text, shown), where
    except InputError as error:
        found.notes.append(f"{name} is not read: {error.problems[0].message}")
        return None, where


def _read(found: Findings, config: Document, place: Place, stage: str) -> str:
    top = config.top

    def at(*keys: str) -> Place:
        line, column = config.place(keys)
        if place.line:  # inside a script
            return Place(place.source, place.line + max(line, 1) - 1, column)
        return Place(place.source, line, column)

    given = top.at("zero_optimization", "stage")
    if given is not None:
        stage = _STAGES.get(given.integer(0, minimum=0), "zero3")
        found.read("data_parallel.sharding", stage, at("zero_optimization", "stage"))
    overlap = top.at("zero_optimization", "overlap_comm")
    if overlap is not None:
        for key in ("overlap_reduce", "overlap_gather"):
            where = at("zero_optimization", "overlap_comm")
            found.read(f"data_parallel.{key}", overlap.boolean(), where)
    bucket = top.at("zero_optimization", "reduce_bucket_size")
    if bucket is not None:
        where = at("zero_optimization", "reduce_bucket_size")
        size = int(bucket.number(float(_BUCKET), minimum=1, maximum=1e13))
        found.read("data_parallel.bucket_parameters", size, where)
    numbers = {
        key: value.integer()
        for key in ("train_batch_size", "gradient_accumulation_steps")
        if (value := top.at(key)) is not None and value.kind == "number"
    }
    steps = numbers.get("gradient_accumulation_steps")
    batch = numbers.get("train_batch_size", found.integer(GLOBAL_BATCH))
    one = found.integer("micro_batch")
    if steps and batch and one and batch % (steps * one) == 0:
        rule = f"batch {batch} / (micro_batch {one} x {steps} accumulation steps)"
        found.derive(
            "parallelism.dp", batch // (steps * one), rule, at("train_batch_size")
        )
    return stage
