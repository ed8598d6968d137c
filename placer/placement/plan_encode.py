"""JSON for people too: indented, but with every list of scalars on one line."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from placer.placement.plan import Plan

_WIDTH = 88


def encode_plan(plan: Plan) -> str:
    """JSON text of ``plan``, keys in the order of ``Plan.to_dict``.

    Raises
    ------
    ValueError
        If a number is not finite.
    """
    return json_text(plan.to_dict())


def json_text(data: Mapping[str, Any]) -> str:
    """JSON text of ``data``, keys in the order given, newline at the end.

    Floats are written as ``repr``: the shortest text that reads back the same.

    Raises
    ------
    ValueError
        If a number is not finite.
    """
    return _text(data, "") + "\n"


def _text(value: object, indent: str) -> str:
    """JSON of one value; lines after the first start with ``indent``."""
    deeper = indent + "  "
    if isinstance(value, Mapping):
        if not _holds_containers(value.values()):
            line = _scalar(dict(value))
            # Room for a key before it; a longer key only makes a longer line.
            if len(indent) + len(line) <= _WIDTH - 20:
                return line
        items = [f"{_scalar(k)}: {_text(v, deeper)}" for k, v in value.items()]
        return _block("{", items, "}", indent)
    if isinstance(value, list | tuple) and _holds_containers(value):
        return _block("[", [_text(item, deeper) for item in value], "]", indent)
    return _scalar(value)


def _block(start: str, items: list[str], end: str, indent: str) -> str:
    separator = f",\n{indent}  "
    return f"{start}\n{indent}  {separator.join(items)}\n{indent}{end}"


def _holds_containers(values: Iterable[object]) -> bool:
    """Whether any value is a mapping or a list; each type is looked at once."""
    kinds = {*map(type, values)}
    return any(issubclass(kind, Mapping | list | tuple) for kind in kinds)


def _plain(value: object) -> object:
    """A numpy number or array as Python's own."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} has no place in a plan")


_scalar = json.JSONEncoder(allow_nan=False, default=_plain).encode
