"""veRL: the actor's training, from the script that starts it.

Sources: volcengine/verl b178a3cd, ``verl/trainer/config/`` (defaults),
``verl/utils/megatron_utils.py`` (how gradients are reduced), ``workers/actor``. What
``rollout`` and ``ref`` say is not the training's.
"""

from __future__ import annotations

import re

from placer.base.naming import named
from placer.formats.jobs import adapters, mcore
from placer.formats.jobs.findings import GLOBAL_BATCH, GPUS, Asked, Findings
from placer.formats.jobs.fsdp import bucket_of_a_layer
from placer.formats.jobs.hf import ask_for_model
from placer.formats.jobs.megatron.arguments import Argument
from placer.formats.jobs.megatron.launches import Launch, ask_for_anything, started
from placer.formats.jobs.settings import Setting, Settings, reader
from placer.formats.jobs.shell import Command, Text, read_script
from placer.formats.jobs.shell.questions import setting_of, unknown_value
from placer.formats.jobs.shell.text import Either, known, opens

_ACTOR, _DATA = "actor_rollout_ref.actor.", "data."
_MEGATRON = f"{_ACTOR}megatron."
_OVERRIDE = f"{_MEGATRON}override_transformer_config."
_DDP = f"{_MEGATRON}override_ddp_config."
_WORD = re.compile(r"[+~]{0,2}([A-Za-z_][\w.@/-]*)=(.*)", re.DOTALL)
_OPTION = re.compile(r"--config-name[= ]?(.*)")
_PROGRAM = re.compile(r"\bmain_ppo\b|=")
_MOST_DEPTH = 12


def _opened(text: str, source: str, found: Findings, asked: Asked) -> Settings:
    """Arguments of the one command that trains."""
    script = read_script(text, source, asked)
    launches = [
        _launch_of(command, script.either)
        for command in script.commands
        if any(
            key.startswith(_ACTOR)
            for word in command.words
            for key in (word.text.lstrip("+"), *_hidden(word, script.either))
        )
    ]
    missing = f"no command has arguments {_ACTOR}*"
    hint = "the script that starts verl.trainer.main_ppo is wanted"
    launch = started(found, script, launches, asked, missing, hint)
    ask_for_anything(launch, found, script)
    values: dict[str, Setting] = {}
    for word in launch.launcher:
        for key in _hidden(word, script.either):
            values[key] = Setting(unknown_value(word), word.place)
        pair, option = _WORD.fullmatch(word.text), _OPTION.fullmatch(word.text)
        if match := pair or option:
            given = setting_of(
                word.part(match.start(match.lastindex or 0), match.end())
            )
            key = pair[1] if pair else "--config-name"
            values[key] = given._replace(place=word.place)
    return Settings(found, values, asked)


@reader(_opened)
def read(settings: Settings) -> None:
    """Take what a script says that starts a trainer of veRL."""
    _read_gpus(settings)
    _read_batch(settings)
    strategy = settings.text(f"{_ACTOR}strategy")
    named = "megatron" in settings.text("--config-name")
    if strategy == "megatron" or named or settings.has(_MEGATRON):
        _read_megatron(settings)
    else:
        _read_fsdp(settings)
    adapters.read_verl(settings)
    ask_for_model(settings, "actor_rollout_ref.model.path")


def _launch_of(command: Command, either: Either) -> Launch:
    """A command as the launch of a trainer, each word an argument."""
    words = command.words
    first = next((n for n, word in enumerate(words) if _PROGRAM.search(word.text)), 0)
    anything = (
        word
        for word in words[first + 1 :]
        if not known(word.text)
        and any(not either.of(o.number) for o in opens(word.text))
    )
    arguments = tuple(Argument(word.text, (), word.place) for word in words)
    environment, causes = command.environment, command.causes
    return Launch(arguments, words, environment, tuple(anything), causes, words)


def _hidden(word: Text, either: Either, depth: int = 0) -> list[str]:
    """Keys of the arguments that an unknown word may be."""
    if depth > _MOST_DEPTH or known(word.text):
        return []
    keys: list[str] = []
    for part in opens(word.text):
        for inner in (word for way in either.of(part.number) for word in way):
            pair = _WORD.fullmatch(inner.text)
            keys += [pair[1]] if pair else _hidden(inner, either, depth + 1)
    return keys


def _read_gpus(settings: Settings) -> None:
    keys = "trainer.nnodes", "trainer.n_gpus_per_node"
    nodes, each = (settings.integer(key, fact=GPUS) for key in keys)
    if any(map(settings.unknown, keys)):
        return  # asked for
    if nodes is not None or each is not None:
        # One node of eight is the default of the trainer's configuration.
        rule = f"{nodes or 1} nodes x {each or 8} GPUs"
        settings.derive(GPUS, (nodes or 1) * (each or 8), rule, *keys)


def _read_batch(settings: Settings) -> None:
    """A step is a mini-batch of prompts, each with its responses."""
    found = settings.found
    key = f"{_ACTOR}ppo_mini_batch_size"
    prompts = settings.integer(key)
    times = settings.integer("actor_rollout_ref.rollout.n") or 1
    if prompts:
        rule = f"ppo_mini_batch_size {prompts} x rollout.n {times}"
        settings.derive(GLOBAL_BATCH, prompts * times, rule, key)
    lengths = [
        settings.integer(f"{_DATA}max_{end}_length") for end in ("prompt", "response")
    ]
    if lengths[0] and lengths[1]:
        rule = f"max_prompt_length {lengths[0]} + max_response_length {lengths[1]}"
        key = f"{_DATA}max_response_length"
        settings.derive("sequence", lengths[0] + lengths[1], rule, key)
        found.notes.append("sequence is the longest: most are shorter")
    one = f"{_ACTOR}ppo_micro_batch_size_per_gpu"
    if settings.flag(f"{_ACTOR}use_dynamic_bsz"):
        settings.known.add(one)
        place = settings.place(f"{_ACTOR}use_dynamic_bsz")
        found.facts.pop(GLOBAL_BATCH, None)
        for key in ("micro_batch", "micro_batches"):
            message = "use_dynamic_bsz fills micro-batches by tokens"
            hint = named("settings", {f"job.{key}": "N"})
            found.ask_later(key, message, hint, place)
    else:
        settings.copy("micro_batch", one)


def _read_megatron(settings: Settings) -> None:
    found = settings.found
    mcore.read_sizes(settings, _MEGATRON)
    mcore.ones(found, "default of veRL")
    mcore.read_ddp(settings, _DDP, _MEGATRON)
    found.derive("data_parallel.sharding", "zero1", "default of veRL")
    for key in ("overlap_reduce", "overlap_gather"):
        found.derive(f"data_parallel.{key}", False, "default of veRL")
    found.derive("bytes.gradient", 4, "veRL reduces in fp32")
    found.derive("tensor_parallel.sequence", True, "default of veRL")
    mcore.read_shape(settings, _OVERRIDE)
    mcore.read_rest(settings, _OVERRIDE)
    _read_offload(settings, _MEGATRON, ("param", "grad", "optimizer"))


def _read_offload(settings: Settings, prefix: str, parts: tuple[str, ...]) -> None:
    for part in parts:
        key = f"{prefix}{part}_offload"
        if settings.flag(key):
            settings.not_modelled(key, "state moves to host memory and back")


def _read_fsdp(settings: Settings) -> None:
    """PyTorch's FSDP over all GPUs, or over groups of ``fsdp_size``."""
    found, key = settings.found, f"{_ACTOR}fsdp_config.fsdp_size"
    ulysses = f"{_ACTOR}ulysses_sequence_parallel_size"
    settings.copy("parallelism.cp", ulysses, usual=(1, "default of veRL"))
    if found.integer("parallelism.cp") > 1:
        found.derive("context_parallel.communication", "a2a", "Ulysses")
    found.derive("parallelism.order", "tp-cp-ep-dp-pp", "mesh of veRL")
    size = settings.integer(key, minimum=-1)
    if size is not None and size > 0:
        place = settings.place(key)
        found.derive("data_parallel.sharding", "hsdp", f"fsdp_size {size}", place)
        found.read("data_parallel.shard_size", size, place)
    else:
        found.derive("data_parallel.sharding", "zero3", "FSDP over all GPUs")
    found.derive("bytes.gradient", 4, "veRL reduces in fp32")
    found.later(bucket_of_a_layer)
    _read_offload(settings, f"{_ACTOR}fsdp_config.", ("param", "optimizer"))
    key = "actor_rollout_ref.model.enable_gradient_checkpointing"
    if settings.flag(key):
        settings.recomputed(key)
