"""Ways to write a number as a sum."""

from __future__ import annotations

from collections.abc import Iterator


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
