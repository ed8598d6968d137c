"""Plain values of a file: their kinds, and how messages show them."""

from __future__ import annotations

import re
from types import NoneType
from typing import Any, Literal

Kind = Literal["text", "number", "boolean", "null", "list", "mapping"]

MAX_TEXT = 10_000

# C0 and C1 controls, line separators, direction overrides, lone surrogates, BOM.
CONTROL = re.compile(
    "[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufeff]"
)


BOOLEANS = {"true": True, "yes": True, "on": True}
BOOLEANS |= {"false": False, "no": False, "off": False}


class Number(str):
    """A number as the file writes it, where a Python number would not say that."""

    __slots__ = ()


class Boolean(str):
    """A boolean of YAML as the file writes it: ``no``, ``True``."""

    __slots__ = ()


_KINDS: dict[type, Kind] = {
    str: "text",
    int: "number",
    float: "number",
    Number: "number",
    bool: "boolean",
    Boolean: "boolean",
    NoneType: "null",
    list: "list",
    dict: "mapping",
}


def kind_of(value: Any) -> Kind:
    """Kind of a parsed value."""
    return _KINDS[type(value)]


def raw(value: Any) -> str:
    """A scalar as the file writes it, without quotes."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def shown(value: Any) -> str:
    """``value`` as a message shows it."""
    kind = kind_of(value)
    if kind == "text":
        return f'"{visible(value)}"'
    if kind in ("number", "boolean"):
        return f"the {kind} {visible(raw(value))}"
    return "nothing" if kind == "null" else f"a {kind}"


def scalar(kind: Kind, raw: str) -> Any:
    """The value of a scalar.

    Numbers and booleans stay as written until a schema asks for them: YAML 1.1 would
    turn ``no`` into false and ``010`` into 8 before anybody could object.
    """
    if kind == "text":
        return raw
    if kind == "number":
        return Number(raw)
    return None if kind == "null" else Boolean(raw)


def visible(text: str, limit: int = 60) -> str:
    """``text`` fit for a message: control characters replaced, long texts cut."""
    clean = CONTROL.sub("\N{REPLACEMENT CHARACTER}", text)
    return clean if len(clean) <= limit else f"{clean[:limit]}..."
