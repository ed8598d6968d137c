"""Orders of host names that launchers and people use."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise

_DIGITS = re.compile(r"([0-9]+)")


def natural_key(name: str) -> tuple[list[str | int], str]:
    """Key that compares runs of digits as numbers: ``n2`` before ``n10``.

    Names that differ only in leading zeros fall back to their text.
    """
    # Splitting at digits gives text, number, text, ...: the types always meet alike.
    parts = _DIGITS.split(name)
    return [int(p) if i % 2 else p for i, p in enumerate(parts)], name


def in_natural_order(hosts: Iterable[str]) -> list[str]:
    """The names with runs of digits compared as numbers."""
    return sorted(hosts, key=natural_key)


def text_order_surprise(hosts: Sequence[str]) -> str:
    """Two names that sort as text against their numbers, ``n10 before n9``, or empty.

    It happens when numbers in the names are not all of one width.
    """
    by_text = sorted(hosts)
    if by_text == in_natural_order(hosts):
        return ""
    first, second = next(
        (one, two)
        for one, two in pairwise(by_text)
        if natural_key(one) > natural_key(two)
    )
    return f"{first} before {second}"
