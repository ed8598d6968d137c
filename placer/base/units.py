"""Quantities with units: texts to SI numbers, and SI numbers to texts for people."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence

_QUANTITY = re.compile(
    r"\s*([-+]?(?:[0-9]+(?:_[0-9]+)*\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?)\s*(.*?)\s*"
)
_NOT_FINITE = re.compile(r"\s*[-+]?\.?(?:inf|infinity|nan)\s*", re.IGNORECASE)

_DECIMAL = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
_BINARY = {"Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40, "Pi": 2.0**50}
_BYTES = {f"{p}B": factor for p, factor in (_DECIMAL | _BINARY).items()}
_BANDWIDTHS = (
    {f"{unit}/s": factor for unit, factor in _BYTES.items()}
    | {f"{p}b/s": factor / 8 for p, factor in _DECIMAL.items()}
    | {f"{p}bit/s": factor / 8 for p, factor in _DECIMAL.items()}
    | {f"{p}bps": factor / 8 for p, factor in _DECIMAL.items()}
)
_PREFIXES = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
_COUNTS = _DECIMAL | {"B": 1e9}
_WATTS = {f"{p}W": factor for p, factor in _DECIMAL.items()}
_TIMES = {
    "ns": 1e-9,
    "us": 1e-6,
    "\N{MICRO SIGN}s": 1e-6,
    "\N{GREEK SMALL LETTER MU}s": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "min": 60.0,
    "h": 3600.0,
}

MAX_BANDWIDTH = 1e18
MAX_BYTES = 1e18
MAX_SECONDS = 1e9

# Of each quantity the factors of its units, and what a bare number may be.
QUANTITIES: Mapping[str, tuple[Mapping[str, float], Mapping[str, float]]] = {
    "bandwidth": (_BANDWIDTHS, {"exclusiveMinimum": 0, "maximum": MAX_BANDWIDTH}),
    "time": (_TIMES, {"minimum": 0, "maximum": MAX_SECONDS}),
    "duration": (_TIMES | {"m": 60.0}, {"minimum": 0, "maximum": MAX_SECONDS}),
    "size": (_BYTES, {"minimum": 0, "maximum": MAX_BYTES}),
    "power": (_WATTS, {"exclusiveMinimum": 0, "maximum": MAX_BYTES}),
    "count": (_COUNTS, {"minimum": 0.5, "maximum": MAX_BYTES}),
}


def _parser(
    what: str,
    units: Mapping[str, float],
    example: str,
    largest: float,
    *,
    is_positive: bool = False,
) -> Callable[[str], float]:
    """Reads a number from 0 to ``largest`` with one of the units, or a bare one.

    What it reads raises a `ValueError` that says what is wrong with another text.
    """

    def parse(text: str) -> float:
        shown = text if len(text) <= 60 else f"{text[:60]}..."
        if _NOT_FINITE.fullmatch(text):
            raise ValueError(f"{shown} is not a finite {what}")
        found = _QUANTITY.fullmatch(text)
        if found is None or len(text) > 100:
            raise ValueError(f'"{shown}" is not a {what}; write for example {example}')
        digits, unit = found.groups()
        if unit and unit not in units:
            message = f'unknown unit "{unit}" in the {what} "{shown}"'
            raise ValueError(f"{message}; write for example {example}")
        if re.match(r"[-+]?0[0-9]", digits):
            raise ValueError(f"the {what} {shown} has leading zeros; leave them out")
        factor = units.get(unit, 1.0)
        number = float(digits)
        # Dividing keeps 5us the same number as 5e-6.
        value = number * factor if factor >= 1.0 else number / round(1.0 / factor)
        if value < 0.0:
            raise ValueError(f"the {what} {shown} is negative")
        if not math.isfinite(value) or value > largest:
            raise ValueError(f"the {what} {shown} is too large; at most {largest:g}")
        if is_positive and value == 0.0:
            raise ValueError(f"the {what} must be above 0")
        return value

    return parse


# Bytes per second; Gb/s are bits.
parse_bandwidth = _parser(
    "bandwidth", _BANDWIDTHS, "100GB/s or 400Gb/s", MAX_BANDWIDTH, is_positive=True
)
parse_time = _parser("time", _TIMES, "5us, 120ms or 1.2s", MAX_SECONDS)
# Seconds to wait: 5m is five minutes.
parse_duration = _parser("time", _TIMES | {"m": 60.0}, "90s, 5m or 2h", MAX_SECONDS)
parse_bytes = _parser("size", _BYTES, "64MB or 16MiB", MAX_BYTES)
parse_power = _parser("power", _WATTS, "1000W or 1.2MW", MAX_BYTES, is_positive=True)
# How many; B is 1e9, as models are named.
parse_count = _parser("number", _COUNTS, "84M or 1.5B", MAX_BYTES)
parse_number = _parser("number", {}, "2 or 0.5", MAX_BYTES)


def format_seconds(seconds: float) -> str:
    """A time for people: ``1.271 s``, ``20.1 ms``, ``5 us``."""
    factor, unit = unit_of_seconds(seconds)
    shown = _short(seconds / factor)
    return f"{shown} {unit}" if float(shown.replace(",", "")) else "0 s"


def unit_of_seconds(seconds: float) -> tuple[float, str]:
    """The unit that shows a time best, in s, and its name."""
    for factor, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")):
        if abs(seconds) >= factor * 0.99995:
            return factor, unit
    return 1e-9, "ns"


def format_beside(seconds: float, largest: float) -> str:
    """A time in a column, in the unit of its largest: ``39.15 ms`` by ``6,551 ms``."""
    units = ((9.9995, 1.0, "s"), (0.99995e-3, 1e-3, "ms"), (0.99995e-6, 1e-6, "us"))
    fitting = ((size, name) for least, size, name in units if abs(largest) >= least)
    size, name = next(fitting, (1e-9, "ns") if largest else (1e-3, "ms"))
    return f"{_in_column(seconds / size)} {name}"


def format_bytes_beside(size_bytes: float, largest: float) -> str:
    """A size in a column, in the unit of its largest: ``98.96 TB`` by ``1,848 TB``."""
    fitting = ((f, prefix) for f, prefix in _PREFIXES if largest >= 9.9995 * f)
    factor, prefix = next(fitting, (1.0, ""))
    return f"{_in_column(size_bytes / factor)} {prefix}B"


def _in_column(value: float) -> str:
    """Four significant digits, three after the point; what is next to nothing is so."""
    if 0 < abs(value) < 0.001:
        return "<0.001"
    if abs(value) < 1000:
        return _short(round(value, 3))
    return f"{float(f'{value:.4g}'):,.0f}"


def format_bytes(size_bytes: float) -> str:
    """A size for people, in decimal units: ``33.55 MB``."""
    return f"{_prefixed(size_bytes)}B"


def format_count(count: float) -> str:
    """How many, for people: ``83.89 M``, ``8.03 B``."""
    return _prefixed(count).rstrip().replace("G", "B")


def format_power(watts: float) -> str:
    """A power for people: ``1.2 MW``."""
    return f"{_prefixed(watts)}W"


def _prefixed(value: float) -> str:
    """A number and the prefix of its unit: ``33.55 M``."""
    for factor, prefix in _PREFIXES:
        if abs(value) >= factor * 0.99995:
            return f"{_short(value / factor)} {prefix}"
    return f"{_short(value)} "


def format_bandwidth(bytes_per_s: float) -> str:
    """A bandwidth for people: ``100 GB/s``."""
    return f"{format_bytes(bytes_per_s)}/s"


def _short(value: float) -> str:
    """Four significant digits, without an exponent or trailing zeros."""
    text = f"{value:z.4g}"
    return text if "e" not in text else f"{value:z.0f}"


def counted(count: int, noun: str) -> str:
    """So many of a thing: ``1 leaf``, ``2,048 nodes``, ``2 blocks-2``."""
    return f"{count:,} {plural(noun, count)}"


def plural(noun: str, count: int) -> str:
    """A countable noun after its number: ``2`` takes ``racks``, ``leaves``."""
    if count == 1:
        return noun
    if noun.endswith("leaf"):
        return f"{noun[:-1]}ves"
    if noun.endswith(("ss", "us", "x", "ch", "sh")):
        return f"{noun}es"
    if noun.endswith("s") or noun[-1:].isdecimal():
        return noun
    if noun.endswith("y") and noun[-2:-1] not in "aeiou":
        return f"{noun[:-1]}ies"
    return f"{noun}s"


def listed(words: Sequence[str]) -> str:
    """At least one word: ``tp, cp and pp``."""
    *others, last = words
    return f"{', '.join(others)} and {last}" if others else last
