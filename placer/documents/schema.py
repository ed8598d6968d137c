"""JSON Schema, made from the keys of a document."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any

from placer.base import units
from placer.documents.keys import Key, is_open, keys_of

_SCALARS = bool | int | float | str
_NUMBER = r"([0-9][0-9_]*(\.[0-9]*)?([eE][-+]?[0-9]+)?|\.[0-9]+([eE][-+]?[0-9]+)?)"


def schema_of(record: type) -> dict[str, Any]:
    """JSON Schema of the mapping that a class describes.

    What keys must be there together stands in its ``together``; one that ``is_open``
    may have others.
    """
    found = mapping_schema(keys_of(record), is_open=is_open(record))
    return found | getattr(record, "together", {})


def mapping_schema(known: Collection[Key], *, is_open: bool = False) -> dict[str, Any]:
    """JSON Schema of a mapping with some keys."""
    properties = {each.called: _property(each) for each in known}
    required = [each.called for each in known if each.required]
    return {
        "type": "object",
        "properties": properties,
        **({"required": required} if required else {}),
        **({} if is_open else {"additionalProperties": False}),
    }


def document_schema(record: type, format_name: str, title: str) -> dict[str, Any]:
    """JSON Schema of a whole file, which says its format where that has a name."""
    whole = schema_of(record)
    if format_name:
        head = {"format": {"const": format_name}, "version": {"const": 1}}
        whole["properties"] = head | whole["properties"]
        whole["required"] = [*head, *whole.get("required", [])]
    text = json.dumps(whole)
    used = {k: v for k, v in _definitions().items() if f'"#/$defs/{k}"' in text}
    dialect = "https://json-schema.org/draft/2020-12/schema"
    return {"$schema": dialect, "title": title, **whole, "$defs": used}


def _property(each: Key) -> dict[str, Any]:
    said, usual = plain_words(each.says), each.default
    found = {"description": said, **each.kind.schema()}
    if each.or_null:
        found |= _or_null(found)
    if each.absent:
        needed = each.absent.startswith("required")
        found["description"] += " " + plain_words(
            each.absent if needed else f"default: {each.absent}"
        )
    elif each.absent is None and usual != "" and isinstance(usual, _SCALARS):
        whole = isinstance(usual, float) and usual.is_integer()
        found["default"] = int(usual) if whole else usual
    return found


def _or_null(schema: Mapping[str, Any]) -> dict[str, Any]:
    """What a schema says otherwise where null is allowed besides."""
    if "enum" in schema:
        return {"enum": [*schema["enum"], None]}
    if "type" not in schema:  # anything is
        return {}
    types = schema["type"]
    return {"type": [*([types] if isinstance(types, str) else types), "null"]}


def plain_words(says: str) -> str:
    """A sentence without the marks of code."""
    text = says.replace("`", "")
    return f"{text[:1].upper()}{text[1:]}."


def _definitions() -> dict[str, Any]:
    text = {"type": "string", "pattern": r"\S"}
    return {"text": text} | {
        name: {
            "anyOf": [
                {"type": "number", **limits},
                {"type": "string", "pattern": _pattern(table)},
            ]
        }
        for name, (table, limits) in units.QUANTITIES.items()
    }


def _pattern(table: Mapping[str, float]) -> str:
    choices = "|".join(unit for unit in table if unit)
    return rf"^\s*{_NUMBER}\s*({choices})?\s*$"
