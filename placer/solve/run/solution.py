"""What a search returns, and what it tells on the way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol
from warnings import warn

from placer.base.rounding import EXACT

if TYPE_CHECKING:
    from placer.placement.placement import Placement
    from placer.solve.run.budget import Pulse


def is_reached(value: float, bound: float) -> bool:
    """Whether a value equals its lower bound, but for rounding."""
    return abs(value - bound) <= EXACT * abs(value)


def checked_bound(value: float, bound: float, argument: str) -> tuple[float, str]:
    """A lower bound of a known value, and its argument; withdrawn if it is refuted.

    A bound above the value of a legal placement is no bound: then it is 0, and the
    argument asks for a report. A bound that the value has reached is the value.
    """
    if is_reached(value, bound):
        return value, argument
    if bound < value:
        return bound, argument
    refuted = (
        f"withdrawn: this placement costs less than the bound {bound!r} ({argument}); "
        "that is a fault of placer, please report it with the machine and the job"
    )
    warn(refuted, RuntimeWarning, stacklevel=2)
    return 0.0, refuted


@dataclass(frozen=True)
class Improvement:
    """A better placement, as shown to the user.

    Attributes
    ----------
    elapsed_s : float, s
    phase : str
        What found it: a baseline, a nesting, ...
    value, lower_bound : float
        In the unit of the objective (s, or hop cost); the bound is 0 while none is
        known.
    solution : Solution or None
        What the search would return if it ended here.
    order : tuple of str
        Axes in the rank order of that solution, innermost first.
    pulse : Pulse or None
        What the search is at, now and later on.
    """

    elapsed_s: float
    phase: str
    value: float
    lower_bound: float
    solution: Solution | None = None
    order: tuple[str, ...] = ()
    pulse: Pulse | None = None


class Progress(Protocol):
    """Called with every better placement, and when one is proved to be better."""

    def __call__(self, incumbent: Improvement) -> None:
        """Show it."""


@dataclass(frozen=True, eq=False)
class Solution:
    """The best placement found and what is proved about it."""

    placement: Placement
    objective: str  # ``time`` or ``hop-cost``
    # value and lower_bound: in the unit of the objective.
    value: float
    lower_bound: float
    argument: str  # what the bound rests on
    method: str  # what found the placement, for people
    # ``proved``, ``time-limit`` or ``interrupted``; ``searched`` when every method ran.
    stop_reason: str
    wall_s: float  # s
    deterministic: bool
    # A lower bound for every launcher and every rank order with the same groups; 0 when
    # none was needed.
    launch_bound: float = 0.0
    # Of local search: how often each move was ``tried``, and ``helped``.
    moves: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    def instead(self, placement: Placement, value: float, method: str) -> Solution:
        """Another placement of the same problem, under what is proved."""
        bound, argument = checked_bound(value, self.lower_bound, self.argument)
        ended = "searched" if self.stop_reason == "proved" else self.stop_reason
        return replace(
            self,
            placement=placement,
            value=value,
            method=method,
            lower_bound=bound,
            argument=argument,
            stop_reason="proved" if bound == value else ended,
        )

    @property
    def gap(self) -> float:
        """``(value - lower bound) / value``, 0 when the value is 0."""
        if self.value <= 0:
            return 0.0
        return max(0.0, (self.value - self.lower_bound) / self.value)

    @property
    def is_cut_short(self) -> bool:
        """Whether the clock or somebody ended the search before it had ended."""
        return self.stop_reason in ("time-limit", "interrupted")

    @property
    def status(self) -> str:
        """``optimal`` when the value has reached the bound, else ``feasible``."""
        return "optimal" if self.gap <= EXACT else "feasible"


def improvement_of(solution: Solution, order: tuple[str, ...]) -> Improvement:
    """The solution as progress gets it; ``order`` is that of its ranks."""
    return Improvement(
        solution.wall_s,
        solution.method,
        solution.value,
        solution.lower_bound,
        solution,
        order,
    )
