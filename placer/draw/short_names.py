"""Short names of domains whose own are long, such as ids of NVLink domains."""

from __future__ import annotations

import re
from collections.abc import Sequence

_LONG, _SHORT = 16, 12  # characters of a name that is shortened, and of one that is not
_PARTS = re.compile(r"[-._/:]|[^-._/:]+")


def short_names(names: Sequence[str], noun: str) -> list[str]:
    """The names, or what differs between them, or numbers where that is long as well.

    Different names stay different.

    Parameters
    ----------
    names : sequence of str
        Those of one tier, in the order in which they are numbered.
    noun : str
        The tier.
    """
    different = list(dict.fromkeys(names))
    if max(map(len, different), default=0) <= _LONG:
        return list(names)
    parts = [_PARTS.findall(name) for name in different]
    start = _alike(parts)
    end = _alike([row[start:][::-1] for row in parts])
    middle = ["".join(row[start : len(row) - end]).strip("-._/:") for row in parts]
    is_told = len(set(middle)) == len(different) and all(
        0 < len(text) <= _SHORT for text in middle
    )
    if not is_told:
        middle = [str(number) for number in range(1, len(different) + 1)]
    shown = [f"{noun} {text}" if text.isdecimal() else text for text in middle]
    short = dict(zip(different, shown, strict=True))
    return [short[name] for name in names]


def _alike(rows: Sequence[Sequence[str]]) -> int:
    """How many parts at the start all rows have in common."""
    columns = zip(*rows, strict=False)
    same = [len(set(column)) == 1 for column in columns]
    return same.index(False) if False in same else len(same)
