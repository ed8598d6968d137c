"""Sources opened as settings: YAML, JSON and TOML, with the place of each value."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from typing import Any

from placer.base.errors import InputError, Problem
from placer.documents import Document, Value, parse_answer, parse_document
from placer.documents.scalars import BOOLEANS, raw
from placer.documents.yaml_reader import MERGE
from placer.formats.jobs.findings import Asked, Findings, Place
from placer.formats.jobs.settings import Setting, Settings, number_of

_DEEPEST = 64
_TOML_TABLE = re.compile(r"\s*\[\[?\s*([^\]]+?)\s*\]")
_KEY = re.compile(r"""\s*([\w.\-"' ]+?)\s*=\s*""")
_TOML_PLACE = re.compile(r" \(at line (\d+), column (\d+)\)| \(at end of document\)")


def of_yaml(text: str, source: str, found: Findings, asked: Asked) -> Settings:
    """All values of a YAML text, or of JSON with comments."""
    return settings_of(parse_document(text, source, aliases=True), found, asked)


def of_json(text: str, source: str, found: Findings, asked: Asked) -> Settings:
    """All values of a JSON text."""
    return settings_of(parse_answer(text, source), found, asked)


def settings_of(
    document: Document, found: Findings, asked: Asked | None = None
) -> Settings:
    """All values of a document that was read with places."""
    document.fail_if_problems()
    return Settings(found, _merged(dict(flat(document.top))), asked)


def _merged(values: dict[str, Setting]) -> dict[str, Setting]:
    """The values with those under merge keys where these stand; others count more."""
    own = {key: setting for key, setting in values.items() if MERGE not in key}
    for key, setting in values.items():
        if MERGE in key:
            steps = [step for step in key.split(".") if step != MERGE]
            own.setdefault(".".join(steps), setting)
    return own


def flat(value: Value, prefix: str = "") -> Iterator[tuple[str, Setting]]:
    """Leaves of a tree of mappings with their dotted keys; lists are leaves."""
    for key, inner in value.entries():
        name = f"{prefix}{key}"
        if inner.kind == "mapping" and len(inner.path) > _DEEPEST:
            inner.problem("nested too deep")
            inner.document.fail_if_problems()
        elif inner.kind == "mapping":
            yield from flat(inner, f"{name}.")
        else:
            yield name, Setting(_of_document(inner.content), place_of(inner))


def place_of(value: Value) -> Place:
    """Where a value of a document stands."""
    at = value.place
    return Place(at.source, at.line, at.column)


def _of_document(content: Any) -> Any:
    """A parsed value as one of Python's: documents keep numbers as they are written."""
    if isinstance(content, list):
        return [_of_document(item) for item in content]
    kind = Value(Document("", None), content, ()).kind
    if kind == "number" and isinstance(content, str):
        return number_of(raw(content))
    if kind == "boolean":
        return BOOLEANS.get(raw(content).lower(), content)
    return content


def toml_values(text: str, source: str) -> dict[str, Setting]:
    """The values of a TOML text by dotted key; lists are values."""
    try:
        data = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError, ValueError) as error:
        message = str(error)
        at = _TOML_PLACE.search(message)
        line, column = (int(at[1]), int(at[2])) if at and at[1] else (0, 0)
        words = f"not TOML: {_TOML_PLACE.sub('', message)}"
        raise InputError([Problem(words, source, line, column)]) from None
    places = dict(_places(text, source))
    return {
        key: Setting(value, places.get(key, Place(source)))
        for key, value in _flat(data, "")
    }


def _flat(data: dict[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    for key, value in data.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _places(text: str, source: str) -> Iterator[tuple[str, Place]]:
    """Where keys stand that have a line of their own."""
    table = ""
    for number, line in enumerate(text.splitlines(), start=1):
        header, key = _TOML_TABLE.match(line), _KEY.match(line)
        if header:
            table = f"{_bare(header[1])}."
        elif key:
            yield f"{table}{_bare(key[1])}", Place(source, number, key.end() + 1)


def _bare(key: str) -> str:
    """A dotted key without quotes and blanks."""
    return re.sub(r"""["'\s]""", "", key)
