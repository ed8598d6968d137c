"""Orders of host names that launchers and people use."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise

_DIGITS = re.compile(r"([0-9]+)")
_TOKEN = re.compile(r"[0-9]+|[^0-9]")


def natural_key(name: str) -> tuple[list[str | int], str]:
    """Key that compares runs of digits as numbers: ``n2`` before ``n10``.

    Names that differ only in leading zeros fall back to their text.
    """
    # Splitting at digits gives text, number, text, ...: the types always meet alike.
    parts = _DIGITS.split(name)
    return [int(p) if i % 2 else p for i, p in enumerate(parts)], name


def slurm_key(name: str) -> list[tuple[int, int, str]]:
    """Key of Slurm's order of node names, character by character.

    Numbers compare by value, but one that starts with 0 is text and comes before the
    others: ``n010 n09 n2 n10`` (Slurm, ``src/common/strnatcmp.c``).
    """
    return [_slurm_token(token) for token in _TOKEN.findall(name)]


def _slurm_token(token: str) -> tuple[int, int, str]:
    """Sorts a number among other characters where its first digit is."""
    if not "0" <= token[0] <= "9":
        return ord(token), 0, ""
    return (ord("0"), 0, token) if token[0] == "0" else (ord("1"), int(token), "")


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
