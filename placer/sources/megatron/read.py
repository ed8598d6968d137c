"""Findings of a Megatron script, log or configuration."""

from __future__ import annotations

import re

from placer.errors import InputError, Problem
from placer.sources.findings import GPUS, Asked, Findings, Place, refuse_long
from placer.sources.megatron.arguments import Argument, Arguments, name_of
from placer.sources.megatron.configs import arguments_of_yaml
from placer.sources.megatron.deepspeed import read_deepspeed
from placer.sources.megatron.facts import read_facts
from placer.sources.megatron.launches import LAUNCHER_FLAGS, gpus_of, launch_of
from placer.sources.megatron.logs import BEGINS, arguments_of_log
from placer.sources.megatron.rules import add_rules
from placer.sources.shell import Script, read_script

_SETTABLE = re.compile(r"[A-Za-z_]\w*|[0-9]")
_MOST_CHOICES, _MOST_TEXT = 20, 50_000
_YAML = re.compile(r"^(?:MODEL_ARGS|language_model|model_parallel)[ ]*:", re.MULTILINE)


def read(text: str, source: str, asked: Asked) -> Findings:
    """Findings of a text, whichever of Megatron's it is.

    Raises
    ------
    InputError
        If the script cannot be followed, or trains nothing.
    """
    if re.search(BEGINS, text):
        return _of_log(text, source, asked)
    refuse_long(text, source)
    found = Findings(source)
    if _YAML.search(text):
        return _described(found, arguments_of_yaml(text, source), None, asked)
    script = read_script(text, source, asked)
    found = of_script(script, found, asked)
    _ask_for_branches(found, script, text, asked)
    return found


def of_script(script: Script, found: Findings, asked: Asked) -> Findings:
    """Findings of a script that was followed.

    Raises
    ------
    InputError
        If it trains nothing, or several things.
    """
    launch = launch_of(script, asked)
    if launch is None:
        raise InputError([_nothing(script)])
    found.notes += [
        f"{remark.key} at {remark.place}: {remark.reason}" for remark in script.left_out
    ]
    gpus = gpus_of(launch, script)
    if gpus is not None:
        found.read(GPUS, *gpus)
    own = [a for a in launch.arguments if name_of(a.flag) not in LAUNCHER_FLAGS]
    return _described(found, own, script, asked)


def _ask_for_branches(found: Findings, script: Script, text: str, asked: Asked) -> None:
    """Ask for what nobody sets, where the job would be another if it were set."""
    if len(text) > _MOST_TEXT:
        return
    for number, choice in enumerate(script.choices[:_MOST_CHOICES]):
        names = [name for name in choice.key.split(", ") if _SETTABLE.fullmatch(name)]
        if not names:
            continue
        try:
            other = read_script(text, script.source, asked, number)
            facts = of_script(other, Findings(script.source), asked).facts
        except InputError:
            continue
        told = {key: fact.value for key, fact in facts.items()}
        differing = [
            k for k, f in found.facts.items() if k != GPUS and told.get(k) != f.value
        ]
        key = next(
            iter(differing), next(iter(told.keys() - found.facts.keys() - {GPUS}), "")
        )
        if key:
            message = f"it depends on {names[0]}, which nothing sets"
            found.ask(key, message, f"--set {names[0]}=VALUE", choice.place)


def _of_log(text: str, source: str, asked: Asked) -> Findings:
    found = Findings(source)
    given, padded = arguments_of_log(text, source)
    world = next((a for a in given if a.flag == "world_size"), None)
    if world is not None and world.values[0].text.isdecimal():
        found.read(GPUS, int(world.values[0].text[:9]), world.value_place)
    if padded:
        found.read("model.vocab", padded, Place(source))
    return _described(found, given, None, asked)


def _described(
    found: Findings, given: list[Argument], script: Script | None, asked: Asked
) -> Findings:
    """The findings of arguments."""
    arguments = Arguments(found, given)
    read_facts(found, arguments)
    if arguments.flag("deepspeed"):
        read_deepspeed(found, arguments, script, asked)
    add_rules(found, arguments)
    # What rules read later is used too.
    found.rules.append(lambda joined: _leftover(joined, arguments))
    return found


def _leftover(joined: Findings, arguments: Arguments) -> None:
    joined.ignored += arguments.unused()


def _nothing(script: Script) -> Problem:
    if script.ended is not None:
        hint = "set what it depends on: --set NAME=VALUE"
        message = "the script ends before it starts anything"
        return Problem(message, *script.ended, hint=hint)
    message = "no command or variable has arguments of Megatron"
    hint = "--tensor-model-parallel-size, --num-layers, --hidden-size, ..."
    return Problem(message, script.source, hint=hint)
