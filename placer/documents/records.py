"""Dataclasses read from mappings, and written as such, by the keys that fill them.

Digest of content, independent of how a file lays it out.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from placer.documents.keys import REQUIRED, Key, Kind, keys_of
from placer.documents.schema import schema_of

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
