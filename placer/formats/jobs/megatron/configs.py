"""Arguments in YAML: ``MODEL_ARGS`` of Megatron's tests, files of ``--yaml-cfg``."""

from __future__ import annotations

import re
from collections.abc import Iterator

from placer.documents import Value, parse_answer
from placer.formats.jobs.findings import Place
from placer.formats.jobs.megatron.arguments import Argument
from placer.formats.jobs.shell.text import text_at

MODEL_ARGS = r"^MODEL_ARGS[ ]*:"
_FLAG = re.compile(r"\s+['\"]?(--[A-Za-z][\w-]*)['\"]?[ ]*:[ ]*((?:[^#]|(?<! )#)*)")
# Names in YAML that differ from those of the flags.
_NAMES = {"num_moe_experts": "num_experts"}


def arguments_of_yaml(text: str, source: str) -> list[Argument]:
    """The arguments of a configuration, whatever sections they stand in.

    Raises
    ------
    InputError
        If it is not YAML.
    """
    if re.search(MODEL_ARGS, text, re.MULTILINE):
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
        source, line, column = (
            inside.place.source,
            inside.place.line,
            inside.place.column,
        )
        place = Place(source, line, column)
        items = inside.items() if inside.kind == "list" else [inside]
        values = tuple(text_at(_written(item), place) for item in items)
        yield Argument(_NAMES.get(key, key), values, place)


def _written(value: Value) -> str:
    """A scalar as an argument has it."""
    return "null" if value.kind == "null" else str(value.content)
