"""What a placement takes at the least, for one reason among others."""

from __future__ import annotations

from typing import NamedTuple


class Floor(NamedTuple):
    """Seconds of a placement, of two kinds that add up.

    Attributes
    ----------
    pipeline_s : float, s
        Of the slowest replica.
    exposed_s : float, s
        Data-parallel time.
    """

    pipeline_s: float = 0.0
    exposed_s: float = 0.0

    def above(self, other: Floor) -> Floor:
        """What both say."""
        return Floor(*map(max, self, other))


FREE = Floor()
