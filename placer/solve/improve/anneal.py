"""Simulated annealing of placements and of flows that are weighed.

Kirkpatrick, Gelatt and Vecchi 1983, "Optimization by simulated annealing", Science
220(4598). Moves propose changes, and Metropolis' rule judges them: one that costs
``delta`` more is made with probability ``exp(-delta / temperature)``. What an objective
adds is a state, which proposes changes, prices them and makes them, and the walks that
its states take.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np

from placer.arrays import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from placer.solve.run.budget import Budget
    from placer.solve.run.incumbent import MoveCounts

# A change that gains less than this is rounding.
WORTHWHILE = 1e-9


class Changes(Protocol):
    """Proposed changes, one an entry."""

    @property
    def move(self) -> IntArray:
        """Number of the move that proposed each."""

    @property
    def copy(self) -> IntArray:
        """Copy of the placement that each would change."""


C = TypeVar("C", bound=Changes)


class State(Protocol[C]):
    """Copies of a placement on a walk from ``hot`` to ``cold``, then at 0.

    Attributes
    ----------
    moves : sequence of callable
        Counted by their names.
    hot, cold : ndarray, shape (copies,)
        Temperatures, in the unit of the cost.
    """

    @property
    def moves(self) -> Sequence[Callable[..., Any]]: ...  # noqa: D102
    @property
    def hot(self) -> FloatArray: ...  # noqa: D102
    @property
    def cold(self) -> FloatArray: ...  # noqa: D102

    @property
    def progress(self) -> float:
        """Share of the way from hot to cold, by work done; inf at temperature 0."""

    @property
    def is_done(self) -> bool:
        """Whether the work is used up."""

    def propose(self) -> C:
        """Changes that the rules allow, perhaps none."""

    def delta(self, changes: C) -> FloatArray:
        """What each change, by itself, adds to the cost."""

    def draw(self, count: int) -> FloatArray:
        """Random numbers from 0 to 1."""

    def apply(self, changes: C, accepted: BoolArray) -> None:
        """Make accepted changes, of those that interfere the first."""


def anneal(state: State[C], budget: Budget, counts: MoveCounts) -> None:
    """Walk until the state has done its work, or the budget is over."""
    tried, helped = np.zeros((2, len(state.moves)), dtype=np.int64)
    while not (state.is_done or budget.is_over()):
        changes = state.propose()
        delta = state.delta(changes)
        budget.pulse.placements += len(delta)
        temperature = state.hot * (state.cold / state.hot) ** state.progress
        limit = -temperature[changes.copy] * np.log(state.draw(len(delta)))
        helps = delta < -WORTHWHILE
        tried += np.bincount(changes.move, minlength=len(tried))
        helped += np.bincount(changes.move[helps], minlength=len(tried))
        state.apply(changes, (delta <= limit) & (helps | (limit > 0)))
    for move, number, better in zip(state.moves, tried, helped, strict=True):
        counts.count(move.__name__.replace("_", " "), int(better), int(number))
