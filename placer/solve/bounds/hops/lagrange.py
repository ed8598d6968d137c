"""Lagrangian prices: how many ranks each domain should hold, and what a stage pays.

``sum_i floor(s_i) >= max over prices p of sum_i min_s (floor(s) - p s) + p world`` for
all sizes with ``sum_i s_i = world`` and ``low_i <= s_i <= capacity_i`` over the domains
of a tier: at its best price (Lagrange; Everett 1963) this bounds the sum. Then Gomory's
group relaxation: with the reduced cost of every other size at hand, the cheapest
changes of size, each as often as one likes, whose sum makes up the difference to
``world``. In a suitable order their partial sums stay within one step of the way, so a
shortest path over a short line of integers finds them.

Prices of pipeline stages are improved by an ascent over a concave, piecewise linear
function (`climb`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from placer.base.arrays import FloatArray, IntArray

Values = Callable[[FloatArray], FloatArray]

PRICE_ROUNDS = 100
# Ties of reduced costs, a few roundings wide, so that no bound moves by more.
TIE = 1e-14
DILATION = 2.0
LONGEST_SEARCH = 30
# Steps of the numerical gradient and offset of the start, as shares of the scale: the
# offset leaves the kinks, where prices are round, and the step does not reach the next.
PROBE = 1e-7
OFFSET = 0.02


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
    floor: FloatArray, classes: list[SizeClass], world: int, reach: int
) -> float:
    """Lower bound on the sum of ``floor`` over the domains.

    Parameters
    ----------
    floor : ndarray, shape (S + 1,)
        Floor of a domain by its number of ranks, up to the largest capacity.
    world : int
        Sum of the sizes.
    reach : int
        Largest change of a size that the group relaxation may look at; 0 leaves it out.
    """
    choice = _best_price(floor, classes, world)
    value = choice.value(world)
    if not reach:
        return value
    bases, missing = _bases(classes, world, choice)
    if missing and _furthest(bases) <= reach:
        value += _repair_cost(floor, bases, missing, choice.price)
    return value


def _best_price(floor: FloatArray, classes: list[SizeClass], world: int) -> _Choice:
    """The choice at the price that maximises the Lagrange bound, by cutting planes."""
    slopes = np.diff(floor) if len(floor) > 1 else np.zeros(1)
    ranges = _Ranges.of(classes)
    under = _choose(floor, ranges, float(slopes.min()) - 1.0)
    over = _choose(floor, ranges, float(slopes.max()) + 1.0)
    for choice in (under, over):
        if choice.at_smallest <= world <= choice.at_largest:
            return choice
    best = max(under, over, key=lambda choice: choice.value(world))
    for _ in range(PRICE_ROUNDS):
        rise = world - under.at_largest
        fall = over.at_smallest - world
        lift = over.value(world) - under.value(world)
        price = (lift + rise * under.price + fall * over.price) / (rise + fall)
        choice = _choose(floor, ranges, price)
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


class _Ranges(NamedTuple):
    """Sizes that every class may take, in a row: the last again where there are few."""

    lows: IntArray
    highs: IntArray
    counts: IntArray
    sizes: IntArray

    @classmethod
    def of(cls, classes: list[SizeClass]) -> _Ranges:
        lows, highs, counts = np.array([(c.low, c.high, c.count) for c in classes]).T
        sizes = lows[:, None] + np.arange(int((highs - lows).max()) + 1)
        return cls(lows, highs, counts, np.minimum(sizes, highs[:, None]))


def _choose(floor: FloatArray, ranges: _Ranges, price: float) -> _Choice:
    lows, highs, counts, sizes = ranges
    parts = (floor - price * np.arange(len(floor))).take(sizes)
    least = parts.min(axis=1)
    scale = np.abs(least) + abs(price) * highs
    is_best = parts <= (least + TIE * scale)[:, None]
    low = lows + is_best.argmax(axis=1)
    last = lows + is_best.shape[1] - 1 - is_best[:, ::-1].argmax(axis=1)
    high = np.minimum(last, highs)
    return _Choice(
        price,
        float(counts @ floor[low]),
        low,
        high,
        int(counts @ low),
        int(counts @ high),
    )


def _repair_cost(
    floor: FloatArray, bases: list[tuple[SizeClass, int]], missing: int, price: float
) -> float:
    """Least reduced cost of changing sizes until they sum to all ranks."""
    reduced = floor - price * np.arange(len(floor))
    reach = _furthest(bases)
    step_cost = np.full(2 * reach + 1, np.inf)  # by change of size, -reach first
    for domains, base in bases:
        part = reduced[domains.low : domains.high + 1] - reduced[base]
        scale = abs(reduced[base]) + abs(price) * domains.high
        part = np.where(part <= TIE * scale, 0.0, part)
        first = reach + domains.low - base
        span = slice(first, first + len(part))
        step_cost[span] = np.minimum(step_cost[span], part)
    return _shortest_walk(step_cost, missing)


def _furthest(bases: list[tuple[SizeClass, int]]) -> int:
    """Largest change of a size."""
    return max(max(c.high - base, base - c.low) for c, base in bases)


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


def climb(values: Values, start: FloatArray, scale: float, rounds: int) -> FloatArray:
    """Prices with the greatest value found by Shor's r-algorithm.

    Parameters
    ----------
    values : callable
        Value of each row of an array of shape (B, n); concave in a row.
    start : ndarray, shape (n,)
    scale : float
        First step; the search ends when steps fall below a thousandth of it.
    rounds : int
        Most directions to try.

    Returns
    -------
    ndarray, shape (n,)

    Notes
    -----
    Space dilation along the difference of two successive subgradients (Shor 1985,
    "Minimization methods for non-differentiable functions", chapter 3). Deterministic.
    """
    size = len(start)
    offset = np.random.default_rng(0).normal(size=size)
    point = start + OFFSET * scale * offset
    value, gradient = _gradient(values, point, PROBE * scale)
    best_value, best = value, point
    space = np.eye(size)
    step = scale
    for _ in range(rounds):
        slope = space.T @ gradient
        length = np.linalg.norm(slope)
        if length == 0.0:
            break
        direction = space @ (slope / length)
        before = point
        for tries in range(LONGEST_SEARCH):
            point = point + step * direction
            value, after = _gradient(values, point, PROBE * scale)
            if value > best_value:
                best_value, best = value, point
            if after @ direction <= 0.0:
                break
            if tries >= 2:
                step *= 1.5
        if tries == 0:
            step *= 0.9
        space = _dilate(space, after - gradient)
        gradient = after
        if np.linalg.norm(point - before) < 1e-3 * scale:
            break
    return best


def _gradient(
    values: Values, point: FloatArray, probe: float
) -> tuple[float, FloatArray]:
    around = values(np.vstack([point, point + probe * np.eye(len(point))]))
    return float(around[0]), (around[1:] - around[0]) / probe


def _dilate(space: FloatArray, difference: FloatArray) -> FloatArray:
    """Shrink ``space`` along the difference of two gradients."""
    turned = space.T @ difference
    length = np.linalg.norm(turned)
    if length == 0.0:
        return space
    turned = turned / length
    return space + (1.0 / DILATION - 1.0) * np.outer(space @ turned, turned)
