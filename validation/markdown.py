"""Numbers and tables as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; the first column is text, the others are set to the right."""
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def seconds(value: float) -> str:
    """A step time: five significant digits."""
    return f"{value:.5g} s"


def milliseconds(value: float) -> str:
    """A part of a step, in ms; never a negative zero."""
    return f"{round(value * 1e3, 2) + 0.0:.2f} ms"


def percent(value: float, digits: int = 2) -> str:
    """A signed share; never a negative zero."""
    return f"{round(value * 100, digits) + 0.0:+.{digits}f} %"
