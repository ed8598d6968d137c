"""What a search returns, and what it tells on the way."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from placer.placement.placement import Placement

# Relative difference below which a value has reached its bound: sums of a few thousand
# double-precision terms agree to much better than this.
EXACT = 1e-9


@dataclass(frozen=True)
class Incumbent:
    """A better placement, as told to the user.

    Attributes
    ----------
    elapsed_s : float, s
    phase : str
        What found it: a baseline, a nesting, ...
    value, lower_bound : float
        In the unit of the objective (s, or hop cost); the bound is 0 while none is
        known.
    """

    elapsed_s: float
    phase: str
    value: float
    lower_bound: float


class Progress(Protocol):
    """Called with every better placement."""

    def __call__(self, incumbent: Incumbent) -> None:
        """Show it."""


@dataclass(frozen=True, eq=False)
class Solution:
    """The best placement found and what is proved about it.

    Attributes
    ----------
    placement : Placement
    objective : str
        ``time`` or ``hop-cost``.
    value, lower_bound : float
        In the unit of the objective.
    argument : str
        What the bound rests on.
    method : str
        What found the placement, for people.
    stop_reason : str
        ``proved``, ``time-limit`` or ``interrupted``; ``searched`` when every method
        ran.
    wall_s : float, s
    deterministic : bool
    """

    placement: Placement
    objective: str
    value: float
    lower_bound: float
    argument: str
    method: str
    stop_reason: str
    wall_s: float
    deterministic: bool

    @property
    def gap(self) -> float:
        """``(value - lower bound) / value``, 0 when the value is 0."""
        if self.value <= 0:
            return 0.0
        return max(0.0, (self.value - self.lower_bound) / self.value)

    @property
    def status(self) -> str:
        """``optimal`` when the value has reached the bound, else ``feasible``."""
        return "optimal" if self.gap <= EXACT else "feasible"
