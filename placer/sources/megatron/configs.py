"""Arguments in YAML: ``MODEL_ARGS`` of Megatron's tests, files of ``--yaml-cfg``."""

from __future__ import annotations

from collections.abc import Iterator

from placer.document import Value, parse_answer
from placer.sources.findings import Place
from placer.sources.megatron.arguments import Argument
from placer.sources.shell.text import text_at

# Names in YAML that differ from those of the flags.
_NAMES = {"num_moe_experts": "num_experts"}


def arguments_of_yaml(text: str, source: str) -> list[Argument]:
    """The arguments of a configuration, whatever sections they stand in.

    Raises
    ------
    InputError
        If it is not YAML.
    """
    document = parse_answer(text, source, yaml=True)
    top = document.top.at("MODEL_ARGS") or document.top
    found = list(_arguments(top))
    document.fail_if_problems()
    return found


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
