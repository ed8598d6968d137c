"""Simulated annealing, change by change: how hot it is, what is tried and accepted.

Kirkpatrick, Gelatt and Vecchi 1983, "Optimization by simulated annealing", Science
220(4598). Where many changes are priced at once, `improve/anneal.py` judges them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import exp
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from placer.solve.run.budget import Budget

Item = TypeVar("Item")


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


def exchanged(
    row: Sequence[Item], sizes: Sequence[int], one: int, begin: int
) -> tuple[list[Item], list[Item]] | None:
    """A row in which an item has changed places with others of its size together.

    Parameters
    ----------
    sizes : sequence of int
        Of its items.
    one, begin : int
        Places of the item, and of the first of the others, which follow each other.

    Returns
    -------
    (row, others), or None where no others from ``begin`` on are as large as the item.
    """
    end, size = begin, 0
    while end < len(row) and size < sizes[one]:
        size += sizes[end]
        end += 1
    if size != sizes[one] or begin <= one < end:
        return None
    others = list(row[begin:end])
    if one < begin:
        between = row[one + 1 : begin]
        return [*row[:one], *others, *between, row[one], *row[end:]], others
    between = row[end:one]
    return [*row[:begin], row[one], *between, *others, *row[one + 1 :]], others
