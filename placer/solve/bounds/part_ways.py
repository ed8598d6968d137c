"""Ways to make up units of parts, and shares of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

ANY = 0.0  # s, the limit of units that none tells apart


class Way(NamedTuple):
    """A unit inside an outer domain, or a share of one, or the shares of a unit.

    Attributes
    ----------
    home : int
        Outer domain; -1 for the shares of a unit.
    sizes : tuple of int
        Of parts, or of shares, ascending.
    low : int
        The least part has no fewer pieces.
    limit : float, s
        A unit in several outer domains, or the one that has such a share, is faster;
        0 where that is not told apart.
    """

    home: int
    sizes: tuple[int, ...]
    low: int
    limit: float = ANY


def summands(
    total: int, least: int, most: int, count: int | None = None
) -> Iterator[tuple[int, ...]]:
    """Ascending summands from ``least`` to ``most``, so many or as many as it takes."""
    if count in (None, 1) and least <= total <= most:
        yield (total,)
    if count == 1:
        return
    left = None if count is None else count - 1
    for first in range(least, min(most, total // (count or 2)) + 1):
        for rest in summands(total - first, first, most, left):
            yield (first, *rest)
