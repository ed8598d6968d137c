"""What Megatron-DeepSpeed takes from the JSON of DeepSpeed.

Source: deepspeedai/DeepSpeed edaa7221, ``runtime/zero/config.py``,
``runtime/config.py``, ``runtime/engine.py``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from placer.base.errors import InputError
from placer.base.naming import named
from placer.documents import Document, Value, parse_answer
from placer.documents.tree import visible
from placer.formats.jobs.findings import GLOBAL_BATCH, Asked, Findings, Place
from placer.formats.jobs.shell.questions import ask
from placer.formats.jobs.shell.text import Text, parts_of, text_at

if TYPE_CHECKING:
    from placer.formats.jobs.megatron.arguments import Arguments
    from placer.formats.jobs.shell import Script

_STAGES = {0: "ddp", 1: "zero1", 2: "zero2", 3: "zero3"}
_BUCKET = 500_000_000
_NUMBER = "987650"  # begins the numbers that stand for what is not known
# What layers of a model are called in DeepSpeed's pipeline.
_LAYER, _EMBEDDING, _HEAD = (
    "paralleltransformerlayerpipe",
    "embeddingpipe",
    "lmheadpipe",
)


def read_deepspeed(
    found: Findings, arguments: Arguments, script: Script | None, asked: Asked
) -> None:
    """Read the configuration that a script writes, or that lies beside it."""
    for key in ("overlap_reduce", "overlap_gather", "bucket_parameters"):
        found.facts.pop(f"data_parallel.{key}", None)
    config = _config(found, arguments, script, asked)
    stage = found.text("data_parallel.sharding")
    if config is not None:
        stage = _read(found, config, stage)
    overlap = stage == "zero3"
    rule = "DeepSpeed's default at stage 3" if overlap else "DeepSpeed's default"
    usual = found.derive if config is not None else found.assume
    usual("data_parallel.overlap_reduce", overlap, rule)
    usual("data_parallel.overlap_gather", overlap, rule)
    usual("data_parallel.bucket_parameters", _BUCKET, rule)


def pipeline_ends(found: Findings, arguments: Arguments) -> None:
    """What DeepSpeed's partition of the pipeline counts beside the layers.

    Stages have as many as possible of what the method names.

    Source: ``deepspeed/runtime/pipe/module.py``, ``_partition_layers``;
    deepspeedai/Megatron-DeepSpeed 4efb479d, ``megatron/model/gpt_model.py``.
    """
    name = "pp_partition_method"
    method = (arguments.text(name).strip("'\"") or "type:transformer").lower()
    place = arguments.place(name)
    kind, _, wanted = method.partition(":")
    words = [word for word in wanted.split("|") if word]
    if kind != "type" or not any(word in _LAYER for word in words):
        found.notes.append(f"stages by {visible(method)} are taken as equally long")
        return
    untied = arguments.flag("untie_embeddings_and_output_weights")
    for end, layer in (
        ("embedding", _EMBEDDING),
        ("loss", _HEAD if untied else _EMBEDDING),
    ):
        if any(word in layer for word in words):
            found.derive(f"stages.{end}", 1, f"partition by {visible(wanted)}", place)


@dataclass
class _Config:
    """DeepSpeed's JSON, where it stands, and its parts that are not known.

    Attributes
    ----------
    open : dict of str to Text
        By the number that stands for each in the document.
    """

    document: Document
    place: Place
    open: dict[str, Text]

    def at(self, *keys: str) -> Place:
        """Where a key stands."""
        line, column = self.document.place(keys)
        if self.place.line:  # inside a script
            line = self.place.line + max(line, 1) - 1
        return Place(self.place.source, line, column)

    def value(self, found: Findings, key: str, *keys: str) -> Value | None:
        """A value; None where nothing is said, or it is asked for."""
        value = self.document.top.at(*keys)
        written = "" if value is None else str(value.content)
        for number, text in self.open.items():
            if number in written:
                ask(found, key, keys[-1], text)
                return None
        return value


def _config(
    found: Findings, arguments: Arguments, script: Script | None, asked: Asked
) -> _Config | None:
    """The configuration; None where there is none, or it is asked for."""
    argument = arguments.noted("deepspeed_config")
    if argument is None or not argument.values:
        return None
    name, where = argument.values[0].text.strip("'\""), argument.value_place
    text, shown = None, name
    if script is not None and name in script.files:
        text = script.files[name]
        where = text.place
    elif arguments.is_open("deepspeed_config"):
        arguments.ask(argument, "data_parallel.sharding")
        return None
    elif included := asked.include(found.source, name):
        content, shown = included
        text, where = text_at(content, Place(shown)), Place(shown)
    if text is None:
        _miss(found, arguments, f"{visible(name)} is not there", where)
        return None
    written, unsure = _numbered(text)
    try:
        return _Config(parse_answer(written, visible(shown)), where, unsure)
    except InputError as error:
        message = error.problems[0].message
        _miss(found, arguments, f"{visible(name)} is not read: {message}", where)
        return None


def _miss(found: Findings, arguments: Arguments, message: str, place: Place) -> None:
    """Ask for a file that cannot be read, unless the arguments say how it shards."""
    if arguments.noted("zero_stage") is not None:
        found.notes.append(f"{message}: DeepSpeed's defaults are assumed")
        return
    hint = (
        "put it beside the script, or "
        f"{named('settings', {'job.data_parallel.sharding': 'zero1'})}"
    )
    found.ask("data_parallel.sharding", message, hint, place)


def _numbered(text: Text) -> tuple[str, dict[str, Text]]:
    """A text with numbers that occur nowhere else for what is not known."""
    written, unsure = text.text, {}
    for count, part in enumerate(parts_of(text)):
        number = f"{_NUMBER}{count:03d}"
        written = written.replace(part.text, number)
        unsure[number] = part
    return written, unsure


def _read(found: Findings, config: _Config, stage: str) -> str:
    zero, key = "zero_optimization", "data_parallel.sharding"
    if (given := config.value(found, key, zero, "stage")) is not None:
        stage = _STAGES.get(given.integer(0, minimum=0), "zero3")
        found.read(key, stage, config.at(zero, "stage"))
    key = "data_parallel.overlap_reduce"
    if (overlap := config.value(found, key, zero, "overlap_comm")) is not None:
        for key in ("overlap_reduce", "overlap_gather"):
            where = config.at(zero, "overlap_comm")
            found.read(f"data_parallel.{key}", overlap.boolean(), where)
    key = "data_parallel.bucket_parameters"
    if (bucket := config.value(found, key, zero, "reduce_bucket_size")) is not None:
        where = config.at(zero, "reduce_bucket_size")
        size = int(bucket.number(float(_BUCKET), minimum=1, maximum=1e13))
        found.read(key, size, where)
    numbers = {
        name: value.integer()
        for name in ("train_batch_size", "gradient_accumulation_steps")
        if (value := config.value(found, "parallelism.dp", name)) is not None
        and value.kind == "number"
    }
    steps = numbers.get("gradient_accumulation_steps")
    batch = numbers.get("train_batch_size", found.integer(GLOBAL_BATCH))
    one = found.integer("micro_batch")
    if steps and batch and one and batch % (steps * one) == 0:
        rule = f"batch {batch} / (micro_batch {one} x {steps} accumulation steps)"
        found.derive(
            "parallelism.dp",
            batch // (steps * one),
            rule,
            config.at("train_batch_size"),
        )
    return stage
