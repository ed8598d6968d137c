"""Findings of a Megatron script, log or configuration."""

from __future__ import annotations

import re

from placer.base.errors import InputError, Problem
from placer.formats.jobs import core_rules
from placer.formats.jobs.findings import GPUS, Asked, Findings, Place, refuse_long
from placer.formats.jobs.megatron.arguments import Argument, Arguments, name_of
from placer.formats.jobs.megatron.configs import arguments_of_yaml
from placer.formats.jobs.megatron.deepspeed import read_deepspeed
from placer.formats.jobs.megatron.facts import read_facts
from placer.formats.jobs.megatron.launches import (
    LAUNCHER_FLAGS,
    ask_for_anything,
    host_of,
    launch_of,
    read_gpus,
)
from placer.formats.jobs.megatron.logs import BEGINS, arguments_of_log
from placer.formats.jobs.megatron.rules import add_rules
from placer.formats.jobs.shell import Script, read_script
from placer.formats.jobs.shell.questions import end, missing_files, note_left_out
from placer.formats.jobs.starter import read_starter

_RANKS_A_DOMAIN = "NUM_OF_HYBRID_EP_RANKS_PER_NVLINK_DOMAIN"
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
    return of_script(script, found, asked)


def of_script(script: Script, found: Findings, asked: Asked) -> Findings:
    """Findings of a script that was followed.

    Raises
    ------
    InputError
        If it trains nothing, or several things.
    """
    launch = launch_of(script, asked)
    if launch is None:
        raise InputError([*missing_files(script), *_nothing(script)])
    note_left_out(found, script)
    read_gpus(found, launch, script, asked)
    found.host = host_of(launch, script)
    told = {name: script.variables.get(name) for name in script.exported}
    number = (told | launch.environment).get(_RANKS_A_DOMAIN)
    if number is not None and number.text:
        core_rules.equal_parts(found, "hybridep", number.place)
    read_starter(found, launch.words, script, launch.environment)
    own = [a for a in launch.arguments if name_of(a.flag) not in LAUNCHER_FLAGS]
    ask_for_anything(launch, found, script)
    return _described(found, own, script, asked, launch.program)


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
    found: Findings,
    given: list[Argument],
    script: Script | None,
    asked: Asked,
    program: str = "",
) -> Findings:
    """The findings of arguments."""
    arguments = Arguments(found, given, program)
    read_facts(found, arguments)
    if arguments.flag("deepspeed"):
        read_deepspeed(found, arguments, script, asked)
    add_rules(found, arguments)
    # What rules read later is used too.
    found.rules.append(lambda joined: _leftover(joined, arguments))
    return found


def _leftover(joined: Findings, arguments: Arguments) -> None:
    joined.ignored += arguments.unused()


def _nothing(script: Script) -> list[Problem]:
    message = "no command or variable has arguments of Megatron"
    hint = "--tensor-model-parallel-size, --num-layers, --hidden-size, ..."
    return end(script) or [Problem(message, script.source, hint=hint)]
