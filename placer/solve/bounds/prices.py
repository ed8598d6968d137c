"""Maximisation of a concave, piecewise linear function of a few prices."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
Values = Callable[[FloatArray], FloatArray]

DILATION = 2.0
LONGEST_SEARCH = 30
# Steps of the numerical gradient and offset of the start, as shares of the scale: the
# offset leaves the kinks, where prices are round, and the step does not reach the next.
PROBE = 1e-7
OFFSET = 0.02


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
