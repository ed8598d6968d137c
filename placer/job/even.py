"""Requirements of equal parts: ``ep/even`` beside ``ep``; ``ep/16`` in a search.

Back ends that send over NVLink inside a domain and over the network between domains
want each group in equal, consecutive, aligned parts, one in each domain: HybridEP
asserts ``group_size % ranks_per_nvlink_domain == 0`` (deepseek-ai/DeepEP, branch
hybrid-ep, ``deep_ep/hybrid_ep_buffer.py``) and takes rank modulo that number for the
place in the domain.
"""

from __future__ import annotations

from collections.abc import Mapping

_SEPARATOR = "/"
_EVEN = "even"


def even_key(axis: str) -> str:
    """The key of a requirement of equal parts of an axis' groups."""
    return f"{axis}{_SEPARATOR}{_EVEN}"


def part_key(axis: str, size: int) -> str:
    """The key of a requirement of whole parts of so many consecutive ranks."""
    return f"{axis}{_SEPARATOR}{size}"


def axis_of(key: str) -> str:
    """The axis of a requirement: of ``ep``, ``ep/even`` and ``ep/16`` ``ep``."""
    axis, separator, how = key.rpartition(_SEPARATOR)
    return axis if separator and (how == _EVEN or how.isdecimal()) else key


def is_even(key: str) -> bool:
    """Whether a requirement is one of equal parts."""
    return axis_of(key) != key and key.endswith(_EVEN)


def part_size(key: str) -> int:
    """Consecutive ranks that a requirement ties; 0 for whole groups."""
    how = key.removeprefix(axis_of(key)).lstrip(_SEPARATOR)
    return int(how) if how.isdecimal() else 0


def evenly(even: Mapping[str, str]) -> dict[str, str]:
    """Axis -> tier of equal parts, as requirements."""
    return {even_key(axis): tier for axis, tier in even.items()}


def told(key: str, tier: str) -> str:
    """A requirement in words: ``ep in one rack``, ``ep in equal parts, one a rack``."""
    if is_even(key):
        return f"{axis_of(key)} in equal parts, one a {tier}"
    return f"{key} in one {tier}"


def told_part(key: str) -> str:
    """What a requirement ties, in words: ``ep``, or ``ep part of 16``."""
    size = part_size(key)
    return f"{axis_of(key)} part of {size}" if size else key
