"""Findings of a Megatron script, its log, or a configuration in YAML."""

from __future__ import annotations

import re
from collections.abc import Iterator

from placer.documents import Value, parse_answer
from placer.formats.jobs import mcore_rules
from placer.formats.jobs.findings import GPUS, Asked, Findings, Place, refuse_long
from placer.formats.jobs.megatron.arguments import Argument, Arguments, name_of
from placer.formats.jobs.megatron.deepspeed import read_deepspeed
from placer.formats.jobs.megatron.facts import read_facts
from placer.formats.jobs.megatron.launches import (
    LAUNCHER_FLAGS,
    ask_for_anything,
    counts,
    host_of,
    launch_of,
    read_world,
)
from placer.formats.jobs.megatron.rules import add_rules
from placer.formats.jobs.reading import place_of
from placer.formats.jobs.shell import Script, read_script
from placer.formats.jobs.shell.questions import no_launch, note_left_out
from placer.formats.jobs.shell.text import text_at
from placer.formats.jobs.starter import read_starter

_RANKS_A_DOMAIN = "NUM_OF_HYBRID_EP_RANKS_PER_NVLINK_DOMAIN"
_YAML = re.compile(r"^(?:MODEL_ARGS|language_model|model_parallel)[ ]*:", re.MULTILINE)
_MODEL_ARGS = r"^MODEL_ARGS[ ]*:"
_FLAG = re.compile(r"\s+['\"]?(--[A-Za-z][\w-]*)['\"]?[ ]*:[ ]*((?:[^#]|(?<! )#)*)")
# Names in YAML that differ from those of the flags.
_NAMES = {"num_moe_experts": "num_experts"}
_MOST_ROWS = 20_000  # of a block, and of those of other hosts between
_BEGINS = r"-{6,} arguments -{6,}"
_ENDS = re.compile(r"-{6,} end of arguments -{6,}")
_ROW = re.compile(r"(?:^|[\s:>\]])  ([A-Za-z]\w*) \.* ?(\S.*)$")
_PADDED = re.compile(
    r"padded vocab \(size: [0-9]{1,9}\) with [0-9]+ dummy tokens "
    r"\(new size: ([0-9]{1,9})\)"
)


def read(text: str, source: str, asked: Asked) -> Findings:
    """Findings of a text, whichever of Megatron's it is."""
    if re.search(_BEGINS, text):
        return _of_log(text, source, asked)
    refuse_long(text, source)
    found = Findings(source)
    if _YAML.search(text):
        return _described(found, arguments_of_yaml(text, source), None, asked)
    script = read_script(text, source, asked)
    return of_script(script, found, asked)


def of_script(script: Script, found: Findings, asked: Asked) -> Findings:
    """Findings of a script that was followed."""
    launch = launch_of(script, asked)
    if launch is None:
        message = "no command or variable has arguments of Megatron"
        hint = "--tensor-model-parallel-size, --num-layers, --hidden-size, ..."
        raise no_launch(script, message, hint)
    note_left_out(found, script)
    read_world(found, *counts(launch, script), asked)
    found.host = host_of(launch, script)
    told = {name: script.variables.get(name) for name in script.exported}
    number = (told | launch.environment).get(_RANKS_A_DOMAIN)
    if number is not None and number.text:
        mcore_rules.equal_parts(found, "hybridep", number.place)
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
    found.rules.append(arguments.ignore_rest)
    return found


def arguments_of_yaml(text: str, source: str) -> list[Argument]:
    """The arguments of a configuration, whatever sections they stand in."""
    if re.search(_MODEL_ARGS, text, re.MULTILINE):
        return list(_flags(text, source))
    document = parse_answer(text, source, yaml=True)
    found = list(_arguments(document.top))
    document.fail_if_problems()
    return found


def _flags(text: str, source: str) -> Iterator[Argument]:
    """``--flag: value``, a line each; tests have some twice, and the last counts."""
    for number, line in enumerate(text.split("\n"), start=1):
        match = _FLAG.match(line)
        if match:
            place = Place(source, number, match.start(1) + 1)
            value = Place(source, number, match.start(2) + 1)
            written = match[2].strip()
            yield Argument(match[1], (text_at(written.strip("'\""), value),), place)


def _arguments(value: Value) -> Iterator[Argument]:
    for key, inside in value.entries():
        if inside.kind == "mapping":
            yield from _arguments(inside)
            continue
        place = place_of(inside)
        items = inside.items() if inside.kind == "list" else [inside]
        written = ("null" if i.kind == "null" else str(i.content) for i in items)
        values = tuple(text_at(text, place) for text in written)
        yield Argument(_NAMES.get(key, key), values, place)


def arguments_of_log(text: str, source: str) -> tuple[list[Argument], int]:
    """The arguments of the first block, and the padded vocabulary, 0 if not told.

    Where lines of several hosts mingle, those of the one whose block it is.
    """
    lines = text.split("\n")
    rows: list[tuple[str, Argument]] = []
    prefix = None
    for number, line in enumerate(lines, start=1):
        begins = re.search(_BEGINS, line)
        if prefix is None and begins:
            prefix = line[: begins.start()]
        elif prefix is not None and (_ENDS.search(line) or len(rows) == _MOST_ROWS):
            break
        elif prefix is not None and (match := _ROW.search(line)):
            value = text_at(match[2].strip(), Place(source, number, match.start(2) + 1))
            place = Place(source, number, match.start(1) + 1)
            rows.append((line, Argument(match[1], (value,), place)))
    own = [argument for line, argument in rows if line.startswith(prefix or "")]
    padded = _PADDED.search(text)
    few = 2 * len(own) < len(rows)  # times stand before each line
    found = [argument for _, argument in rows] if few and len(own) < 9 else own
    return found, int(padded[1]) if padded else 0
