"""How many ranks each domain should hold, at the least total floor.

``minimise sum_i floor(s_i)`` subject to ``sum_i s_i = world`` and
``low_i <= s_i <= capacity_i`` over the domains of a tier. Two steps bound it from
below:

1. Lagrange: for a price ``p`` a rank, ``sum_i min_s (floor(s) - p s) + p world``, at
   its best price (Everett 1963);
2. Gomory's group relaxation of what is left: with the reduced cost of every other size
   at hand, the cheapest combination of changes of size whose sum makes up the
   difference to ``world``, each change as often as one likes. In a suitable order the
   partial sums of the changes stay within one step of the way, so a shortest path over
   a short line of integers finds it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]

LARGEST_STEP = 2500
PRICE_ROUNDS = 100
# Ties of reduced costs, a few roundings wide, so that no bound moves by more.
TIE = 1e-14


@dataclass(frozen=True)
class SizeClass:
    """Domains of one tier with the same capacity.

    Attributes
    ----------
    low, high : int
        Fewest ranks such a domain must take (when all others are full), and most.
    count : int
        How many there are.
    """

    low: int
    high: int
    count: int


class _Choice(NamedTuple):
    """Best sizes of every class at one price a rank."""

    price: float
    floor: float  # of all domains, at their smallest best size
    smallest: IntArray
    largest: IntArray
    at_smallest: int  # ranks of all domains
    at_largest: int

    def value(self, world: int) -> float:
        return self.floor + self.price * (world - self.at_smallest)


def size_classes(gpus_of_domain: IntArray, world: int) -> list[SizeClass]:
    """Domains of a tier grouped by capacity, smallest first.

    Parameters
    ----------
    gpus_of_domain : ndarray, shape (D,)
    world : int
        Ranks to place; at most the sum of the capacities.
    """
    slack = int(gpus_of_domain.sum()) - world
    capacities, counts = np.unique(gpus_of_domain, return_counts=True)
    return [
        SizeClass(max(0, capacity - slack), min(capacity, world), count)
        for capacity, count in zip(capacities.tolist(), counts.tolist(), strict=True)
        if capacity > 0
    ]


def cheapest_sizes(
    floor: FloatArray, classes: list[SizeClass], world: int, *, refine: bool = True
) -> float:
    """Lower bound on the sum of ``floor`` over the domains.

    Parameters
    ----------
    floor : ndarray, shape (S + 1,)
        Floor of a domain by its number of ranks, up to the largest capacity.
    classes : list of SizeClass
    world : int
        Sum of the sizes.
    refine : bool
        Whether to add the group relaxation to the Lagrange bound.
    """
    choice = _best_price(floor, classes, world)
    value = choice.value(world)
    if refine and choice.at_smallest != world:
        value += _repair_cost(floor, classes, world, choice)
    return value


def _best_price(floor: FloatArray, classes: list[SizeClass], world: int) -> _Choice:
    """The choice at the price that maximises the Lagrange bound, by cutting planes."""
    slopes = np.diff(floor) if len(floor) > 1 else np.zeros(1)
    under = _choose(floor, classes, float(slopes.min()) - 1.0)
    over = _choose(floor, classes, float(slopes.max()) + 1.0)
    for choice in (under, over):
        if choice.at_smallest <= world <= choice.at_largest:
            return choice
    best = max(under, over, key=lambda choice: choice.value(world))
    for _ in range(PRICE_ROUNDS):
        rise = world - under.at_largest
        fall = over.at_smallest - world
        lift = over.value(world) - under.value(world)
        price = (lift + rise * under.price + fall * over.price) / (rise + fall)
        choice = _choose(floor, classes, price)
        best = max(best, choice, key=lambda choice: choice.value(world))
        if choice.at_smallest <= world <= choice.at_largest:
            return choice
        if not under.price < price < over.price:
            break
        if choice.at_largest < world:
            under = choice
        else:
            over = choice
    return best


def _choose(floor: FloatArray, classes: list[SizeClass], price: float) -> _Choice:
    reduced = floor - price * np.arange(len(floor))
    smallest, largest = [], []
    for domains in classes:
        part = reduced[domains.low : domains.high + 1]
        least = part.min()
        scale = abs(least) + abs(price) * domains.high
        best = np.flatnonzero(part <= least + TIE * scale)
        smallest.append(domains.low + int(best[0]))
        largest.append(domains.low + int(best[-1]))
    counts = np.array([domains.count for domains in classes])
    low, high = np.array(smallest), np.array(largest)
    return _Choice(
        price,
        float(counts @ floor[low]),
        low,
        high,
        int(counts @ low),
        int(counts @ high),
    )


def _repair_cost(
    floor: FloatArray, classes: list[SizeClass], world: int, choice: _Choice
) -> float:
    """Least reduced cost of changing sizes until they sum to ``world``."""
    reduced = floor - choice.price * np.arange(len(floor))
    bases, missing = _bases(classes, world, choice)
    reach = max(max(c.high - base, base - c.low) for c, base in bases)
    if missing == 0 or reach > LARGEST_STEP:
        return 0.0
    step_cost = np.full(2 * reach + 1, np.inf)  # by change of size, -reach first
    for domains, base in bases:
        part = reduced[domains.low : domains.high + 1] - reduced[base]
        scale = abs(reduced[base]) + abs(choice.price) * domains.high
        part = np.where(part <= TIE * scale, 0.0, part)
        first = reach + domains.low - base
        span = slice(first, first + len(part))
        step_cost[span] = np.minimum(step_cost[span], part)
    return _shortest_walk(step_cost, missing)


def _bases(
    classes: list[SizeClass], world: int, choice: _Choice
) -> tuple[list[tuple[SizeClass, int]], int]:
    """Sizes the domains start from, with ties used to come close to ``world``."""
    missing = world - choice.at_smallest
    bases = []
    for domains, low, high in zip(
        classes, choice.smallest.tolist(), choice.largest.tolist(), strict=True
    ):
        raised = min(domains.count, missing // (high - low)) if high > low else 0
        missing -= raised * (high - low)
        if raised < domains.count:
            bases.append((domains, low))
        if raised > 0:
            bases.append((domains, high))
    return bases, missing


def _shortest_walk(step_cost: FloatArray, target: int) -> float:
    """Cheapest sum of steps from 0 to ``target``; Dijkstra on a line of integers.

    Parameters
    ----------
    step_cost : ndarray, shape (2 M + 1,)
        Cost of the steps -M .. M, none negative, as often as one likes.
    target : int
    """
    reach = len(step_cost) // 2
    first, last = min(0, target) - reach, max(0, target) + reach
    open_cost = np.full(last - first + 1, np.inf)
    open_cost[-first] = 0.0
    closed = np.zeros(len(open_cost), dtype=bool)
    while True:
        here = int(np.argmin(open_cost))
        cost = float(open_cost[here])
        if here + first == target or cost == np.inf:
            return cost
        closed[here] = True
        low, high = max(0, here - reach), min(len(open_cost), here + reach + 1)
        offered = cost + step_cost[low - here + reach : high - here + reach]
        offered[closed[low:high]] = np.inf
        np.minimum(open_cost[low:high], offered, out=open_cost[low:high])
        open_cost[here] = np.inf
