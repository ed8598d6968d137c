"""ms-swift: ``swift`` and ``megatron``, each with ``sft``, ``pt`` and ``rlhf``.

The second is Megatron with other defaults (modelscope/ms-swift 3602360a,
``swift/megatron/arguments/megatron_args.py``). The shape is that of the Hugging Face
model that ``--model`` names.
"""

from __future__ import annotations

import itertools
from pathlib import PurePath

from placer.base.errors import InputError, Problem
from placer.formats.jobs import adapters
from placer.formats.jobs.findings import GLOBAL_BATCH, Asked, Findings, Scalar
from placer.formats.jobs.megatron.arguments import Arguments
from placer.formats.jobs.megatron.facts import read_facts
from placer.formats.jobs.megatron.launches import (
    Launch,
    ask_for_anything,
    launch_of_command,
    read_world,
    select,
)
from placer.formats.jobs.megatron.rules import add_rules
from placer.formats.jobs.shell import Command, Script, read_script
from placer.formats.jobs.shell.questions import end, missing_files, note_left_out
from placer.formats.jobs.shell.text import readable
from placer.formats.jobs.starter import read_starter
from placer.formats.jobs.swift_hf import read_training

_PROGRAMS = ("swift", "megatron")
_TASKS = ("sft", "pt", "rlhf")
_DEFAULT = "ms-swift's default"
_DEFAULTS: dict[str, Scalar] = {
    "parallelism.etp": 1,
    "micro_batch": 1,
    GLOBAL_BATCH: 16,
    "data_parallel.sharding": "zero1",
    "bytes.gradient": 4,
    "bytes.activation": 2,
    "bytes.parameter_gather": 2,
}


def read(text: str, source: str, asked: Asked) -> Findings:
    """Findings of a script that starts ``megatron`` or ``swift``.

    Raises
    ------
    InputError
        If it cannot be followed, or starts no training or several.
    """
    script = read_script(text, source, asked)
    launches = [
        launch_of_command(command, script.either)
        for command in script.commands
        if _trains(command)
    ]
    if not launches:
        hint = "megatron sft --tensor_model_parallel_size 4 ..."
        nothing = [Problem("it starts no training", source, hint=hint)]
        raise InputError([*missing_files(script), *(end(script) or nothing)])
    launch = select(launches, asked, source)
    found = Findings(source)
    note_left_out(found, script)
    ask_for_anything(launch, found, script)
    _gpus(found, launch, script, asked)
    read_starter(found, launch.words, script, launch.environment)
    arguments = Arguments(found, launch.arguments)
    if any(PurePath(word.text).name == "swift" for word in launch.launcher):
        _model(found, arguments)
        found = read_training(found, arguments, launch.place, asked)
        found.rules.append(lambda joined: _leftover(joined, arguments))
        return found
    for key, value in _DEFAULTS.items():
        found.derive(key, value, _DEFAULT)
    read_facts(found, arguments, shape=False)
    _changes(found, arguments)
    add_rules(found, arguments)
    found.rules += [_dispatch, lambda joined: _leftover(joined, arguments)]
    return found


def _trains(command: Command) -> bool:
    words = [word.text for word in command.words]
    pairs = itertools.pairwise(PurePath(word).name for word in words)
    if any(one in _PROGRAMS and other in _TASKS for one, other in pairs):
        return True
    return any(
        word.endswith(f"_megatron/{task}.py") for word in words for task in _TASKS
    )


def _gpus(found: Findings, launch: Launch, script: Script, asked: Asked) -> None:
    """``NNODES`` nodes, one if not set, of ``NPROC_PER_NODE`` processes."""
    each, nodes = (
        launch.environment.get(name) or script.variables.get(name)
        for name in ("NPROC_PER_NODE", "NNODES")
    )
    if each is not None:
        read_world(found, each, nodes, asked)


def _changes(found: Findings, arguments: Arguments) -> None:
    """Where ms-swift's defaults are on and the command turns them off."""
    name = "use_distributed_optimizer"
    place = arguments.place(name)
    if place is not None and not arguments.flag(name):
        found.read("data_parallel.sharding", "ddp", place)
    if arguments.noted("recompute_granularity") is None:
        found.derive("memory.recompute", "selective", _DEFAULT)
    adapters.read_swift(found, arguments)
    _model(found, arguments)


def _model(found: Findings, arguments: Arguments) -> None:
    model = arguments.noted("model")
    if model is not None and model.values:
        name = readable(model.values[0].text)
        found.notes.append(f"the shape is that of {name}: join its hf:config.json")


def _leftover(joined: Findings, arguments: Arguments) -> None:
    joined.ignored += arguments.unused()


def _dispatch(joined: Findings) -> None:
    if joined.integer("model.experts"):
        joined.derive("expert_parallel.dispatch", "flat", f"{_DEFAULT}, alltoall")
