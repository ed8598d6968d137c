"""How often each move of a local search was tried, and how often it helped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping


class MoveCounts:
    """Tallies by the name of the move."""

    def __init__(self) -> None:
        self._tried: Counter[str] = Counter()
        self._helped: Counter[str] = Counter()

    def count(self, move: str, helped: int, tried: int = 1) -> None:
        """Add so many tries, of which so many led to a cheaper placement."""
        self._tried[move] += tried
        self._helped[move] += helped

    def as_dict(self) -> Mapping[str, Mapping[str, int]]:
        """``{move: {"tried": number, "helped": number}}``."""
        return {
            move: {"tried": tried, "helped": self._helped[move]}
            for move, tried in sorted(self._tried.items())
        }
