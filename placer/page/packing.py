"""Plain data with fewer bytes: lists of alike records by column, each name once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_FEW = 16


def packed(data: Mapping[str, Any]) -> dict[str, Any]:
    """``value``, from which a script restores ``data``, and the ``texts`` in it.

    A list of records with the same keys and no containers inside becomes
    ``{"packed": true, "columns": {key: values}, "names": keys}``, where the columns of
    ``names`` hold places in ``texts``. Shorter lists and all else stay as they are.
    """
    texts: dict[str, int] = {}
    return {"value": _packed(data, texts), "texts": list(texts)}


def _packed(value: Any, texts: dict[str, int]) -> Any:
    if isinstance(value, Mapping):
        return {key: _packed(item, texts) for key, item in value.items()}
    if not isinstance(value, list):
        return value
    if len(value) < _FEW or not _are_records(value):
        return [_packed(item, texts) for item in value]
    columns = {key: [record[key] for record in value] for key in value[0]}
    names = [
        key
        for key, items in columns.items()
        if all(isinstance(item, str) for item in items)
    ]
    for key in names:
        columns[key] = [texts.setdefault(text, len(texts)) for text in columns[key]]
    return {"packed": True, "columns": columns, "names": names}


def _are_records(items: list[Any]) -> bool:
    """Whether these are mappings with the same keys and nothing nested."""
    return all(
        isinstance(item, Mapping)
        and item.keys() == items[0].keys()
        and not any(isinstance(inner, Mapping | list) for inner in item.values())
        for item in items
    ) and bool(items[0])
