"""What Megatron-DeepSpeed takes from the JSON of DeepSpeed.

Source: deepspeedai/DeepSpeed edaa7221, ``runtime/zero/config.py``,
``runtime/config.py``, ``runtime/engine.py``.
"""

from __future__ import annotations

from placer.base.errors import InputError
from placer.base.naming import named
from placer.documents.scalars import visible
from placer.formats.jobs.deepspeed import BUCKET, read_sharding
from placer.formats.jobs.findings import GLOBAL_BATCH, Asked, Findings, Place
from placer.formats.jobs.megatron.arguments import Arguments
from placer.formats.jobs.reading import of_json
from placer.formats.jobs.settings import Setting, Settings
from placer.formats.jobs.shell import Script
from placer.formats.jobs.shell.questions import setting_of
from placer.formats.jobs.shell.text import Text, parts_of, text_at

_NUMBER = "987650"  # begins the numbers that stand for what is not known
# What layers of a model are called in DeepSpeed's pipeline.
_LAYER = "paralleltransformerlayerpipe"
_EMBEDDING, _HEAD = "embeddingpipe", "lmheadpipe"


def read_deepspeed(
    found: Findings, arguments: Arguments, script: Script | None, asked: Asked
) -> None:
    """Read the configuration that a script writes, or that lies beside it."""
    for key in ("overlap_reduce", "overlap_gather", "bucket_parameters"):
        found.facts.pop(f"data_parallel.{key}", None)
    settings = _config(found, arguments, script, asked)
    if settings is not None:
        read_sharding(settings)
        _read_batch(settings)
        return
    overlap = found.text("data_parallel.sharding") == "zero3"
    rule = "DeepSpeed's default at stage 3" if overlap else "DeepSpeed's default"
    found.assume("data_parallel.overlap_reduce", overlap, rule)
    found.assume("data_parallel.overlap_gather", overlap, rule)
    found.assume("data_parallel.bucket_parameters", BUCKET, rule)


def pipeline_ends(found: Findings, arguments: Arguments) -> None:
    """What DeepSpeed's partition of the pipeline counts beside the layers.

    Stages have as many as possible of what the method names.

    Source: ``deepspeed/runtime/pipe/module.py``, ``_partition_layers``;
    deepspeedai/Megatron-DeepSpeed 4efb479d, ``megatron/model/gpt_model.py``.
    """
    name = "pp_partition_method"
    method = (arguments.text(name) or "type:transformer").lower()
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


def _config(
    found: Findings, arguments: Arguments, script: Script | None, asked: Asked
) -> Settings | None:
    """The configuration; None where there is none, or it is asked for."""
    given = arguments.words("deepspeed_config")
    if not given:
        return None
    name, where = given[0].text.strip("'\""), given[0].place
    text, shown = None, name
    if script is not None and name in script.files:
        text = script.files[name]
        where = text.place
    elif arguments.unknown("deepspeed_config"):
        arguments.ask("deepspeed_config", "data_parallel.sharding")
        return None
    elif included := asked.include(found.source, name):
        content, shown = included
        text, where = text_at(content, Place(shown)), Place(shown)
    if text is None:
        _miss(found, arguments, f"{visible(name)} is not there", where)
        return None
    try:
        return _settings(text, visible(shown), found, asked, where)
    except InputError as error:
        message = error.problems[0].message
        _miss(found, arguments, f"{visible(name)} is not read: {message}", where)
        return None


def _miss(found: Findings, arguments: Arguments, message: str, place: Place) -> None:
    """Ask for a file that cannot be read, unless the arguments say how it shards."""
    if arguments.get("zero_stage"):
        found.notes.append(f"{message}: DeepSpeed's defaults are assumed")
        return
    hint = (
        "put it beside the script, or "
        f"{named('settings', {'job.data_parallel.sharding': 'zero1'})}"
    )
    found.ask("data_parallel.sharding", message, hint, place)


def _settings(
    text: Text, source: str, found: Findings, asked: Asked, where: Place
) -> Settings:
    """The values of a JSON, of which parts may not be known.

    Numbers that occur nowhere else stand for these while it is parsed.
    """
    written, unsure = text.text, {}
    for count, part in enumerate(parts_of(text)):
        number = f"{_NUMBER}{count:03d}"
        written = written.replace(part.text, number)
        unsure[number] = part
    settings = of_json(written, source, found, asked)
    before = max(where.line, 1) - 1  # lines of a script in front of it
    for key, (value, (_, line, column)) in settings.values.items():
        place = Place(where.source, before + line, column)
        parts = [part for number, part in unsure.items() if number in str(value)]
        settings.values[key] = setting_of(parts[0]) if parts else Setting(value, place)
    return settings


def _read_batch(settings: Settings) -> None:
    """The replicas, where both the batch and the accumulation are told."""
    found, key = settings.found, "parallelism.dp"
    steps = settings.integer("gradient_accumulation_steps", fact=key)
    batch = settings.integer("train_batch_size", fact=key)
    batch = batch or found.integer(GLOBAL_BATCH)
    one = found.integer("micro_batch")
    if steps and batch and one and batch % (steps * one) == 0:
        rule = f"batch {batch} / (micro_batch {one} x {steps} accumulation steps)"
        place = settings.place("train_batch_size")
        found.derive(key, batch // (steps * one), rule, place)
