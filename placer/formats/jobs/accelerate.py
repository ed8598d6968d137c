"""accelerate: what ``accelerate config`` writes, and scripts of ``accelerate launch``.

TRL and axolotl have files like it; options of the launcher replace keys of them.

Sources: huggingface/accelerate 16cb6eb8, ``src/accelerate/parallelism_config.py`` (the
mesh and its rules), ``utils/dataclasses.py`` (FullyShardedDataParallelPlugin).
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from math import prod

from placer.base.errors import InputError, Problem
from placer.base.naming import named
from placer.formats.jobs import deepspeed
from placer.formats.jobs.findings import (
    GPUS,
    Asked,
    Findings,
    Place,
    Scalar,
    Unknown,
    join,
)
from placer.formats.jobs.fsdp import by_layer, shard
from placer.formats.jobs.megatron.arguments import arguments_of, name_of
from placer.formats.jobs.megatron.launches import Launch, launch_of_command, started
from placer.formats.jobs.reading import of_yaml
from placer.formats.jobs.settings import Setting, Settings, reader
from placer.formats.jobs.shell import Script, read_script
from placer.formats.jobs.shell.questions import setting_of
from placer.formats.jobs.starter import is_program, starter

_LAUNCH = re.compile(
    r"^[^#\n]*\baccelerate(?:[ \t]+|\.commands\.)launch\b", re.MULTILINE
)
_SIZES = ("dp_replicate", "dp_shard", "cp", "sp", "tp")
# torch's own numbers, which accelerate takes for names.
_STRATEGIES: dict[str, Scalar] = {
    "FULL_SHARD": "zero3",
    "1": "zero3",
    "SHARD_GRAD_OP": "zero2",
    "2": "zero2",
    "NO_SHARD": "ddp",
    "3": "ddp",
    "HYBRID_SHARD": "hsdp",
    "4": "hsdp",
    "HYBRID_SHARD_ZERO2": "hsdp",
    "5": "hsdp",
}
_CP_WAYS: dict[str, Scalar] = {"allgather": "all_gather", "alltoall": "p2p"}
_MEGATRON = {"parallelism.tp": "tp_degree", "parallelism.pp": "pp_degree"}
_ONE = 1, "default of accelerate"
# Sections of the configuration file, by how options that set their keys begin
# (accelerate, ``commands/launch.py``).
_SECTIONS = {
    "fsdp_": "fsdp_config.",
    "parallelism_config_": "parallelism_config.",
    "megatron_lm_": "megatron_lm_config.",
    "zero": "deepspeed_config.",
    "deepspeed_": "deepspeed_config.",
    "gradient_": "deepspeed_config.",
}
_KINDS = {"use_fsdp": "FSDP", "use_deepspeed": "DEEPSPEED", "multi_gpu": "MULTI_GPU"}


def _opened(text: str, source: str, found: Findings, asked: Asked) -> Settings:
    """A YAML or JSON, or a script with the launcher."""
    opener = settings_of_script if _LAUNCH.search(text) else of_yaml
    return opener(text, source, found, asked)


@reader(_opened)
def read(settings: Settings) -> None:
    """Take what accelerate's file says, or a script with its launcher."""
    found = settings.found
    kind = settings.text("distributed_type").upper()
    settings.copy(GPUS, "num_processes")
    precision = settings.text("mixed_precision") or "no"
    for key in ("activation", "gradient", "parameter_gather"):
        width, rule = 4 if precision == "no" else 2, f"mixed_precision {precision}"
        settings.derive(f"bytes.{key}", width, rule, "mixed_precision")
    if kind == "FSDP":
        _read_mesh(settings)
        read_fsdp(settings)
    elif kind == "DEEPSPEED":
        _read_mesh(settings)
        _read_deepspeed(settings)
    elif kind == "MEGATRON_LM":
        _read_megatron(settings)
    elif kind in ("MULTI_GPU", "NO", ""):
        found.derive("data_parallel.sharding", "ddp", f"distributed_type {kind}")
        _read_mesh(settings)
    else:
        settings.wrong("distributed_type", "FSDP, DEEPSPEED, MULTI_GPU or MEGATRON_LM")


def _read_mesh(settings: Settings) -> None:
    """Sizes of the axes; all that is left shards, as FSDP alone does."""
    found = settings.found
    keys = {
        name: (
            f"parallelism_config.parallelism_config_{name}_size",
            f"parallelism_config.{name}_size",
        )
        for name in _SIZES
    }
    sizes = {name: settings.integer(*keys[name]) for name in _SIZES}
    said = any(sizes.values())
    for axis in ("tp", "cp"):
        settings.copy(f"parallelism.{axis}", *keys[axis], usual=_ONE)
    if (sizes["sp"] or 1) > 1:
        if (sizes["cp"] or 1) > 1:
            settings.refuse(keys["sp"][0], "accelerate takes cp or sp, not both")
        settings.copy("parallelism.cp", *keys["sp"])
        found.derive("context_parallel.communication", "a2a", "sp is Ulysses")
    elif (sizes["cp"] or 1) > 1:
        way = "parallelism_config_cp_comm_strategy"
        chosen = settings.choice(_CP_WAYS, f"parallelism_config.{way}") or "all_gather"
        found.derive("context_parallel.communication", chosen, "cp_comm_strategy")
    if (sizes["tp"] or 1) > 1:
        found.derive("tensor_parallel.sequence", False, "tp plans of transformers")
    found.derive("parallelism.order", "tp-cp-ep-dp-pp", "mesh of accelerate")
    if said:
        product = prod(size or 1 for size in sizes.values())
        processes = settings.integer("num_processes")
        if processes and processes != product:
            used = f"the sizes of parallelism_config use {product} processes"
            message = f"{used}, not {processes}"
            settings.refuse("num_processes", message, "accelerate refuses it")
        dp = (sizes["dp_replicate"] or 1) * (sizes["dp_shard"] or 1)
        rule = "dp_replicate x dp_shard"
        settings.derive("parallelism.dp", dp, rule, *keys["dp_shard"])


def read_fsdp(settings: Settings) -> None:
    """How FSDP shards, version 1 or 2."""
    found = settings.found
    version = settings.integer("fsdp_config.fsdp_version", "fsdp_version") or 1
    named, resharding = _fsdp("sharding_strategy"), _fsdp("reshard_after_forward")
    strategy = settings.choice(_STRATEGIES, *named) if version == 1 else None
    replicate = settings.integer(
        "parallelism_config.parallelism_config_dp_replicate_size",
        "parallelism_config.dp_replicate_size",
        "dp_replicate_size",
    )
    place = settings.place(*named, *resharding)
    if strategy is not None:
        _read_strategy(settings, str(strategy), place)
    else:
        keeps = version > 1 and settings.flag(*resharding) is False
        found.later(shard, replicate or 1, keeps, place)
    by_layer(found)
    again = _fsdp("activation_checkpointing")
    if settings.flag(*again):
        settings.recomputed(*again)
    settings.mention("parameters in host memory", *_fsdp("offload_params"))


def _fsdp(name: str) -> tuple[str, str]:
    """Both keys that a setting of FSDP may have."""
    return f"fsdp_config.fsdp_{name}", f"fsdp_config.{name}"


def _read_strategy(settings: Settings, sharding: str, place: Place) -> None:
    """A strategy of version 1; a hybrid one shards inside a node."""
    found = settings.found
    found.read("data_parallel.sharding", sharding, place)
    if sharding == "zero2":
        rule = "accelerate accumulates without synchronising"
        found.derive("data_parallel.reduce_once", True, rule, place)
    if sharding != "hsdp":
        return
    processes = settings.integer("num_processes")
    machines = settings.integer("num_machines") or 1
    if processes:
        rule = f"HYBRID_SHARD: a node, {processes} processes / {machines} machines"
        found.derive("data_parallel.shard_size", processes // machines, rule, place)


def _read_deepspeed(settings: Settings) -> None:
    """DeepSpeed's own keys, inline or in a JSON beside the file."""
    found, asked, section = settings.found, settings.asked, "deepspeed_config"
    name = settings.text(f"{section}.deepspeed_config_file")
    if name:
        settings.found = join([found, named_deepspeed(found, name, asked)])
        return
    prefix = f"{section}."
    inner: dict[str, Setting] = {}
    for key in (*settings.values, *asked.settings):
        got = settings.get(key) if key.startswith(prefix) else None
        if got is not None:
            value, place = got[1]
            if isinstance(value, Unknown):
                value = Unknown(value.text, named("settings", {key: "VALUE"}))
            inner[key.removeprefix(prefix)] = Setting(value, place)
    stage = inner.pop("zero_stage", None)
    renamed = {f"zero_optimization.{key}": value for key, value in inner.items()}
    renamed |= {key: inner[key] for key in inner if key.startswith("gradient_acc")}
    if stage is not None:
        renamed["zero_optimization.stage"] = stage
    precision = settings.text("mixed_precision")
    if precision in ("bf16", "fp16"):
        place = settings.place("mixed_precision")
        renamed[f"{precision}.enabled"] = Setting(True, place)
    deepspeed.read_inline(Settings(found, renamed, asked))


def named_deepspeed(found: Findings, name: str, asked: Asked) -> Findings:
    """Findings of a DeepSpeed JSON that a source names; a note where it is missing."""
    included = asked.include(found.source, name)
    if included is None:
        found.notes.append(
            f"{name} is not beside it: join {named('job', 'deepspeed:FILE')}"
        )
        return Findings(found.source)
    try:
        return deepspeed.read(*included, asked)
    except InputError as error:
        found.problems += error.problems
        return Findings(found.source)


def _read_megatron(settings: Settings) -> None:
    """Megatron-LM as accelerate's plugin starts it."""
    found, prefix = settings.found, "megatron_lm_config.megatron_lm_"
    settings.take(_MEGATRON, prefix, _ONE)
    settings.copy("micro_batches", prefix + "num_micro_batches")
    settings.copy("tensor_parallel.sequence", prefix + "sequence_parallelism")
    sharded = settings.flag(prefix + "use_distributed_optimizer")
    sharding = "zero1" if sharded else "ddp"
    found.derive("data_parallel.sharding", sharding, "use_distributed_optimizer")


def settings_of_script(
    text: str, source: str, found: Findings, asked: Asked
) -> Settings:
    """What the one ``accelerate launch`` of a script says."""
    script = read_script(text, source, asked)
    launches = [
        launch_of_command(command, script.either)
        for command in script.commands
        if (called := starter(command.words, script.variables))
        and called[0].startswith("accelerate")
    ]
    launch = started(found, script, launches, asked, "it has no accelerate launch")
    given = dict(_given(launch, script))
    file = given.pop("config_file", None)
    if file is None:
        return Settings(found, given, asked)
    included = asked.include(source, str(file.value))
    if included is None:
        message = f"{file.value} is not beside it"
        hint = named("job", f"accelerate:{file.value}")
        raise InputError([Problem(message, *file.place, "--config_file", hint)])
    values = of_yaml(*included, found, asked).values
    return Settings(found, {**values, **given}, asked)


def _given(launch: Launch, script: Script) -> Iterator[tuple[str, Setting]]:
    """The options before the program, as keys of the configuration file."""
    own = itertools.takewhile(lambda word: not is_program(word.text), launch.words)
    for argument in arguments_of(tuple(own), script.either).arguments:
        name = name_of(argument.flag)
        if name in _KINDS:
            yield "distributed_type", Setting(_KINDS[name], argument.place)
            continue
        starts = (s for start, s in _SECTIONS.items() if name.startswith(start))
        value = argument.values[0] if argument.values else None
        yield (
            next(starts, "") + name,
            setting_of(value) if value else Setting(True, argument.place),
        )
