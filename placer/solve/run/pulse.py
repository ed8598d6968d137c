"""What a search is at, for whoever watches it from another thread."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Pulse:
    """Written by the search as it goes on; no result depends on it.

    Attributes
    ----------
    phase : str
        The method at work, for people.
    placements : int
        How many were tried: built, or proposed as a change by local search. Threads
        that count at the same time may lose a few.
    lower_bound : float
        The best so far, in the unit of the objective; 0 while none is known.
    """

    phase: str = ""
    placements: int = 0
    lower_bound: float = 0.0
