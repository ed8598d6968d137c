"""Counts and ranks in words, for the checker's sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from placer.base.arrays import IntArray

_SHOWN_RANKS = 4


def share(count: int, total: int, noun: str, one: str, many: str) -> str:
    """``3 of 1,024 ranks use``: a count of a total, and the verb that fits it."""
    return f"{count:,} of {total:,} {noun}s {one if count == 1 else many}"


def some_ranks(ranks: IntArray) -> str:
    """``(ranks 0, 8, 16, 24, ...)``: the first few of ``ranks``, shape (any,)."""
    shown = ", ".join(str(rank) for rank in ranks[:_SHOWN_RANKS])
    return f"(ranks {shown}{', ...' if len(ranks) > _SHOWN_RANKS else ''})"
