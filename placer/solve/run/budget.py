"""How long a search may go on: its time, and whoever may end it before."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic


class Budget:
    """Time that is left, asked between two steps of a method.

    Parameters
    ----------
    seconds : float, s
        By the clock, from now on.
    *ends : callable
        Each asked as well; True ends the search.
    """

    def __init__(self, seconds: float, *ends: Callable[[], bool]) -> None:
        self._start, self.seconds = monotonic(), seconds
        self._ends = ends

    @property
    def elapsed_s(self) -> float:
        """Seconds since the start."""
        return monotonic() - self._start

    @property
    def is_stopped(self) -> bool:
        """Whether somebody, not the clock, asks for the end."""
        return any(end() for end in self._ends)

    @property
    def seconds_left(self) -> float:
        """Seconds left by the clock, at least 0."""
        return max(0.0, self.seconds - self.elapsed_s)

    def is_over(self) -> bool:
        """Whether it is time to end."""
        return self.is_stopped or self.seconds_left <= 0

    def anew(self, seconds: float) -> Budget:
        """So many seconds from now on, which the same may end before."""
        return Budget(seconds, *self._ends)

    def share(self, count: int) -> Budget:
        """An equal part of what is left, for the first of ``count`` searches."""
        return self.anew(self.seconds_left / count)

    def until(self, end: Callable[[], bool]) -> Budget:
        """What is left, which ``end`` may end too."""
        return Budget(self.seconds_left, *self._ends, end)
