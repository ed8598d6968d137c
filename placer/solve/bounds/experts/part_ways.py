"""A way to make up a unit of parts, or a share of one."""

from __future__ import annotations

from typing import NamedTuple

MOST_WAYS = 4_000  # to make up units, all in all
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
