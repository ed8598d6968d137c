"""JSON text to plain values by the standard library, twenty times as fast as by token.

Only texts that are plainly fine are read here. Whatever may be wrong with the others,
`placer.documents.json_tree` says it with its place.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import chain
from typing import Any, NoReturn

from placer.documents.tree import MAX_DEPTH, MAX_TEXT


def most_values(text: str) -> int:
    """How many values a JSON text can have at most."""
    return 1 + sum(map(text.count, ",[{"))


def plain_json(text: str, parse_float: Callable[[str], Any] | None = None) -> Any:
    """The value of a JSON text.

    Raises
    ------
    ValueError
        If something may be wrong with it: the notation, a key that comes twice, nesting
        that overflows the stack, an integer of thousands of digits.
    """
    try:
        return json.loads(
            text,
            object_pairs_hook=_mapping,
            parse_constant=_refuse,
            parse_float=parse_float,
        )
    except RecursionError:
        raise ValueError("nested too deeply") from None


def is_modest(value: Any) -> bool:
    """Whether nothing is nested too deep, no text too long and every key printable."""
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        if any(isinstance(each, str) and len(each) > MAX_TEXT for each in level):
            return False
        boxes = [each for each in level if isinstance(each, dict | list)]
        if not boxes:
            return True
        keys = ["".join(box) for box in boxes if isinstance(box, dict)]
        if any(len(each) > MAX_TEXT or not each.isprintable() for each in keys):
            return False
        values = (box.values() if isinstance(box, dict) else box for box in boxes)
        level = list(chain.from_iterable(values))
    return False


def _mapping(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key comes twice")
    return found


def _refuse(word: str) -> NoReturn:
    raise ValueError(word)
