"""Dataclasses read from mappings, written as such and described, by their keys.

What describes them is JSON Schema. Digest of content, independent of how a file lays it
out.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from placer.base import units
from placer.documents.keys import REQUIRED, Key, Kind, is_open, keys_of

if TYPE_CHECKING:
    from placer.documents.section import Section

Record = TypeVar("Record")


def read(
    section: Section,
    record: type[Record],
    usual: Mapping[str, Any] | None = None,
    **known: Any,
) -> Record:
    """The object that a mapping of a file describes; problems go to its document.

    ``record``: a dataclass with keys. ``usual``: defaults by attribute, where they
    differ from those of the keys. ``**known``: attributes that are not read here.
    """
    return record(**values(section, record, usual, **known))


def values(
    section: Section,
    record: type,
    usual: Mapping[str, Any] | None = None,
    **known: Any,
) -> dict[str, Any]:
    """The attributes of that object by name."""
    for each in keys_of(record):
        if each.attribute not in known and (each.attribute or not each.kind.special):
            default = (usual or {}).get(each.attribute, REQUIRED)
            if each.implied is not None:
                default = each.implied(known)
            value = each.take(section, default)
            if each.attribute:
                known[each.attribute] = value
    return known


def nested(record: type) -> Kind:
    """A mapping that a dataclass describes."""
    return Kind(
        lambda: schema_of(record),
        lambda value, _: read(value.section(), record),
        record,
    )


def entries(item: Any, **instead: Any) -> dict[str, Any]:
    """What a file says of an object; nothing of what goes without saying.

    ``instead`` are values by key that say it otherwise.
    """
    return {
        each.called: value if each.called in instead else _plain(value)
        for each in keys_of(type(item))
        if each.attribute or each.called in instead
        if (value := _value(item, each, instead)) is not None
    }


def _value(item: Any, each: Key, instead: Mapping[str, Any]) -> Any:
    if each.called in instead:
        return instead[each.called]
    value = getattr(item, each.attribute)
    goes_without = each.goes_unsaid and value == each.usual
    if goes_without and each.implied is not None:
        goes_without = each.implied(vars(item)) == value
    return None if goes_without else value


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        return entries(value)
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    return dict(value) if isinstance(value, Mapping) else value


def digested(item: Any) -> dict[str, Any]:
    """All attributes, without newer keys at their defaults: digests outlive them."""
    newer = {each.attribute: each.usual for each in keys_of(type(item)) if each.newer}
    found = {each.name: getattr(item, each.name) for each in fields(item)}
    return {k: v for k, v in found.items() if k not in newer or v != newer[k]}


def content_digest(content: Mapping[str, Any]) -> str:
    """SHA-256 (hexadecimal) of JSON-like content; key order does not matter.

    Raises `ValueError` if a number is not finite.
    """
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


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
