"""Lagrangian prices: how many ranks each domain should hold, and what a stage pays.

``sum_i floor(s_i) >= max over prices p of sum_i min_s (floor(s) - p s) + p world`` for
all sizes with ``sum_i s_i = world`` and ``low_i <= s_i <= capacity_i`` over the domains
of a tier: at its best price (Lagrange; Everett 1963) this bounds the sum. By hand:
domains of 4 pay 0, 10, 10, 10 and 0 for 0 to 4 ranks. At a price of 0 all are full or
empty and pay nothing, also where 7 ranks are on three of them.

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
# What a better price must gain, relative to the bound.
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


class _Tangent(NamedTuple):
    """The bound at a price, and the ranks that the sizes leave out."""

    price: float
    value: float
    missing: int


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


def cheapest_sizes(floor: FloatArray, classes: list[SizeClass], world: int) -> float:
    """Lower bound on the sum of ``floor`` over the domains, at the best price a rank.

    Parameters
    ----------
    floor : ndarray, shape (S + 1,)
        Floor of a domain by its number of ranks, up to the largest capacity.
    world : int
        Sum of the sizes.
    """
    lows, highs, counts = np.array([(c.low, c.high, c.count) for c in classes]).T
    # Sizes of each class in a row: the last again where there are few.
    sizes = lows[:, None] + np.arange(int((highs - lows).max()) + 1)
    sizes, rows = np.minimum(sizes, highs[:, None]), np.arange(len(classes))

    def at(price: float) -> _Tangent:
        parts = (floor - price * np.arange(len(floor))).take(sizes)
        held = sizes[rows, parts.argmin(axis=1)]
        missing = world - int(counts @ held)
        return _Tangent(price, float(counts @ floor[held]) + price * missing, missing)

    slopes = np.diff(floor) if len(floor) > 1 else np.zeros(1)
    under, over = at(float(slopes.min()) - 1.0), at(float(slopes.max()) + 1.0)
    best = max(under.value, over.value)
    for _ in range(PRICE_ROUNDS):
        if under.missing <= 0 or over.missing >= 0:
            break
        rise = under.missing * under.price - over.missing * over.price
        price = (over.value - under.value + rise) / (under.missing - over.missing)
        if not under.price < price < over.price:
            break
        found, top = at(price), under.value + under.missing * (price - under.price)
        best = max(best, found.value)
        if found.value >= top - TIE * abs(top):
            break
        under, over = (found, over) if found.missing > 0 else (under, found)
    return best


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
