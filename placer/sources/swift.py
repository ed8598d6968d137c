"""ms-swift's ``megatron sft``, ``pt`` and ``rlhf``: Megatron with other defaults.

Source: modelscope/ms-swift 3602360a, ``swift/megatron/arguments/megatron_args.py``. The
shape is that of the Hugging Face model that ``--model`` names.
"""

from __future__ import annotations

from placer.errors import InputError, Problem
from placer.sources import adapters
from placer.sources.findings import GLOBAL_BATCH, GPUS, Asked, Findings, Scalar
from placer.sources.megatron.arguments import Arguments, arguments_of
from placer.sources.megatron.facts import read_facts
from placer.sources.megatron.launches import Launch, select
from placer.sources.megatron.rules import add_rules
from placer.sources.shell import Command, Script, Text, read_script

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
    """Findings of a script that starts ``megatron``.

    Raises
    ------
    InputError
        If it cannot be followed, or starts no training or several.
    """
    script = read_script(text, source, asked)
    launches = [_launch(command) for command in script.commands if _trains(command)]
    if not launches:
        hint = "megatron sft --tensor_model_parallel_size 4 ..."
        raise InputError([Problem("it starts no training", source, hint=hint)])
    launch = select(launches, asked, source)
    found = Findings(source)
    _gpus(found, launch, script)
    for key, value in _DEFAULTS.items():
        found.derive(key, value, _DEFAULT)
    arguments = Arguments(found, launch.arguments)
    read_facts(found, arguments, shape=False)
    _changes(found, arguments)
    add_rules(found, arguments)
    found.rules.append(lambda joined: _last(joined, arguments))
    return found


def _trains(command: Command) -> bool:
    words = [word.text for word in command.words]
    if "megatron" in words[:-1]:
        return words[words.index("megatron") + 1] in _TASKS
    return any(
        word.endswith(f"_megatron/{task}.py") for word in words for task in _TASKS
    )


def _launch(command: Command) -> Launch:
    arguments, before = arguments_of(command.words)
    return Launch(tuple(arguments), tuple(before), command.environment)


def _gpus(found: Findings, launch: Launch, script: Script) -> None:
    """``NNODES`` nodes, one if not set, of ``NPROC_PER_NODE`` processes."""

    def value(name: str) -> Text | None:
        return launch.environment.get(name) or script.variables.get(name)

    each, nodes = value("NPROC_PER_NODE"), value("NNODES")
    if each is None or not each.text.isdecimal() or not int(each.text[:7]):
        return
    if nodes is None:
        found.read(GPUS, int(each.text[:7]), each.place)
    elif nodes.text.isdecimal() and int(nodes.text[:7]):
        found.read(GPUS, int(each.text[:7]) * int(nodes.text[:7]), each.place)


def _changes(found: Findings, arguments: Arguments) -> None:
    """Where ms-swift's defaults are on and the command turns them off."""
    name = "use_distributed_optimizer"
    place = arguments.place(name)
    if place is not None and not arguments.flag(name):
        found.read("data_parallel.sharding", "ddp", place)
    if arguments.get("recompute_granularity") is None:
        found.derive("memory.recompute", "selective", _DEFAULT)
    adapters.read_swift(found, arguments)
    model, place = arguments.text("model"), arguments.place("model")
    if model and place is not None:
        found.notes.append(f"the shape is that of {model}: join its hf:config.json")


def _last(joined: Findings, arguments: Arguments) -> None:
    if joined.integer("model.experts"):
        joined.derive("expert_parallel.dispatch", "flat", f"{_DEFAULT}, alltoall")
    joined.ignored += arguments.unused()
