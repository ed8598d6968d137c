"""Simulated annealing, change by change: how hot it is, and what is accepted.

Kirkpatrick, Gelatt and Vecchi 1983, "Optimization by simulated annealing", Science
220(4598). Where many changes are priced at once, `improve/anneal.py` judges them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import exp
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from placer.solve.run.budget import Budget


def cooling(
    hot: float, cold: float, changes: int, budget: Budget, looks_every: int = 1
) -> Iterator[float]:
    """Temperatures of so many changes, falling from hot to cold.

    They end when the budget does, which is asked once in so many changes.
    """
    for number in range(changes):
        if number % looks_every == 0 and budget.is_over():
            return
        yield hot * (cold / hot) ** (number / changes)


def accepts(rise: float, heat: float, draw: Callable[[], float]) -> bool:
    """Metropolis' rule: what costs so much more is made now and then, if it is hot.

    Parameters
    ----------
    rise, heat : float
        In one unit.
    draw : callable
        A random number from 0, below 1; asked where it decides.
    """
    return rise <= 0 or (heat > 0 and draw() < exp(-rise / heat))
