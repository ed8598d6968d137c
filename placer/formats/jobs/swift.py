"""ms-swift: ``swift`` and ``megatron``, each with ``sft``, ``pt`` and ``rlhf``.

The second is Megatron with other defaults (modelscope/ms-swift 3602360a,
``swift/megatron/arguments/megatron_args.py``). The shape is that of the Hugging Face
model that ``--model`` names.
"""

from __future__ import annotations

import itertools
import re
from math import ceil
from pathlib import PurePath

from placer.formats.jobs import adapters, deepspeed
from placer.formats.jobs.accelerate import named_deepspeed
from placer.formats.jobs.findings import (
    GLOBAL_BATCH,
    GPUS,
    Asked,
    Findings,
    Place,
    Scalar,
    join,
)
from placer.formats.jobs.megatron.arguments import Arguments
from placer.formats.jobs.megatron.facts import read_facts
from placer.formats.jobs.megatron.launches import (
    ask_for_anything,
    launch_of_command,
    read_world,
    started,
)
from placer.formats.jobs.megatron.rules import add_rules
from placer.formats.jobs.settings import AUTO, Setting, Settings
from placer.formats.jobs.shell import Command, read_script
from placer.formats.jobs.shell.text import readable

_PROGRAMS = ("swift", "megatron")
_TASKS = ("sft", "pt", "rlhf")
_MODULES = tuple(f"_megatron/{task}.py" for task in _TASKS)
_DEFAULT = "ms-swift's default"
_ONE = 1, _DEFAULT
_DEFAULTS: dict[str, Scalar] = {
    "parallelism.etp": 1,
    "micro_batch": 1,
    GLOBAL_BATCH: 16,
    "data_parallel.sharding": "zero1",
    "bytes.gradient": 4,
    "bytes.activation": 2,
    "bytes.parameter_gather": 2,
}
_ZERO = re.compile(r"zero([0-3])(?:_offload)?")
_BATCH = 16  # that its default of accumulation is for
_BUCKET = 200_000_000


def read(text: str, source: str, asked: Asked) -> Findings:
    """Findings of a script that starts ``megatron`` or ``swift``."""
    script = read_script(text, source, asked)
    launches = [
        launch_of_command(command, script.either)
        for command in script.commands
        if _trains(command)
    ]
    found, hint = Findings(source), "megatron sft --tensor_model_parallel_size 4 ..."
    launch = started(found, script, launches, asked, "it starts no training", hint)
    ask_for_anything(launch, found, script)
    # ``NNODES`` nodes, one if not set, of ``NPROC_PER_NODE`` processes.
    each, nodes = (
        launch.environment.get(name) or script.variables.get(name)
        for name in ("NPROC_PER_NODE", "NNODES")
    )
    if each is not None:
        read_world(found, each, nodes, asked)
    arguments = Arguments(found, launch.arguments)
    if any(PurePath(word.text).name == "swift" for word in launch.launcher):
        _model(found, arguments)
        found = read_training(found, arguments, launch.place, asked)
        found.rules.append(arguments.ignore_rest)
        return found
    for key, value in _DEFAULTS.items():
        found.derive(key, value, _DEFAULT)
    read_facts(found, arguments, shape=False)
    if not arguments.get("recompute_granularity"):
        found.derive("memory.recompute", "selective", _DEFAULT)
    adapters.read_swift(found, arguments)
    _model(found, arguments)
    add_rules(found, arguments)
    found.rules += [_dispatch, arguments.ignore_rest]
    return found


def _trains(command: Command) -> bool:
    words = [word.text for word in command.words]
    pairs = itertools.pairwise(PurePath(word).name for word in words)
    by_name = any(one in _PROGRAMS and other in _TASKS for one, other in pairs)
    return by_name or any(word.endswith(_MODULES) for word in words)


def _model(found: Findings, arguments: Arguments) -> None:
    if model := arguments.words("model"):
        name = readable(model[0].text)
        found.notes.append(f"the shape is that of {name}: join its hf:config.json")


def _dispatch(joined: Findings) -> None:
    if joined.integer("model.experts"):
        joined.derive("expert_parallel.dispatch", "flat", f"{_DEFAULT}, alltoall")


def read_training(
    found: Findings, arguments: Arguments, place: Place, asked: Asked
) -> Findings:
    """Findings with what the arguments of ``swift sft`` say.

    Parameters
    ----------
    found : Findings
        With the GPUs, where the script says them.
    place : Place
        Of the command.
    """
    found.derive("parallelism.order", "tp-cp-ep-dp-pp", "FSDP and DeepSpeed: dp alone")
    for axis in ("pp", "ep"):
        found.derive(f"parallelism.{axis}", 1, _DEFAULT)
    arguments.copy("parallelism.tp", "deepspeed_autotp_size", usual=_ONE)
    arguments.copy("parallelism.cp", "sequence_parallel_size", usual=_ONE)
    if found.integer("parallelism.cp") > 1:
        rule = "sequence_parallel_size is of Ulysses"
        found.derive("context_parallel.communication", "a2a", rule)
    if arguments.copy("sequence", "max_length"):
        found.notes.append("sequence is the longest: most are shorter, unless packed")
    _read_batch(found, arguments, asked)
    name = "gradient_checkpointing"
    if not arguments.get(name) or arguments.flag(name):
        found.derive("memory.recompute", "full", name)
    adapters.read_swift(found, arguments, place)
    return _with_sharding(found, arguments, asked)


def _read_batch(found: Findings, arguments: Arguments, asked: Asked) -> None:
    """Accumulation fills 16 sequences, where nothing says it."""
    name = "per_device_train_batch_size"
    micro = arguments.copy("micro_batch", name, usual=_ONE) or 1
    steps = arguments.copy("micro_batches", "gradient_accumulation_steps")
    world = asked.gpus or found.integer(GPUS)
    if steps is None and world:
        steps = max(1, ceil(_BATCH / micro / world))
        rule = f"{_DEFAULT}: {_BATCH} / ({micro} x {world} GPUs), rounded up"
        found.derive("micro_batches", steps, rule)


def _with_sharding(found: Findings, arguments: Arguments, asked: Asked) -> Findings:
    place, name = arguments.place("deepspeed"), arguments.text("deepspeed")
    preset = _ZERO.fullmatch(name)
    if name and not preset:
        return join([found, named_deepspeed(found, name, asked)])
    if preset:
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
    sharding = "ddp" if arguments.value("fsdp") is None else "zero3"
    found.derive("data_parallel.sharding", sharding, "no --deepspeed")
    for key in ("activation", "gradient", "parameter_gather"):
        found.derive(f"bytes.{key}", 2, f"{_DEFAULT}, bfloat16")
    return found
