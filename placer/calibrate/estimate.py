"""Constants of a linear model from relative errors, and how sure they are.

Each measured value is one times ``1 + lack + noise``: ``noise`` is the scatter of the
runs, whose variance is known, ``lack`` what the model misses there, of the same unknown
variance everywhere. Constants are weighted least squares, a weight being one over the
sum of both variances; the variance of ``lack`` is that with which the weighted squares
sum to their degrees of freedom (Paule and Mandel 1982, J. Res. NBS 87(5)). Intervals
take Student's t with these degrees (Knapp and Hartung 2003, Statistics in Medicine 22).
Without any known scatter this is least relative squares.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import cos, pi, sin, sqrt, tan

import numpy as np

from placer.base.arrays import FloatArray

_HALVINGS = 60


@cache
def quantile(share: float, degrees: int) -> float:
    """The t with probability ``share`` that ``|T| < t``.

    Source: Abramowitz and Stegun, Handbook of Mathematical Functions, 26.7.3 and
    26.7.4: closed forms in ``theta = atan(t / sqrt(degrees))``, here halved upon.
    """
    low, high = 0.0, pi / 2
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if _within(middle, degrees) < share:
            low = middle
        else:
            high = middle
    return tan(low) * sqrt(degrees)


def _within(theta: float, degrees: int) -> float:
    odd = degrees % 2
    term = cos(theta) if odd else 1.0
    total = term if degrees > 1 else 0.0
    for k in range(2 + odd, degrees - 1, 2):
        term *= cos(theta) ** 2 * (k - 1) / k
        total += term
    found = sin(theta) * total
    return 2 / pi * (theta + found) if odd else found


CONFIDENCE = 0.95
MOST_ROUNDS = 100
SETTLED = 1e-12  # relative change that ends the iteration


@dataclass(frozen=True, eq=False)
class Estimate:
    """Constants, and how sure they are."""

    values: FloatArray  # (p,): none is below 0
    covariance: FloatArray  # (p, p): zero for a constant that is held at 0
    lack: float  # variance of what the model misses, relative
    # Degrees of freedom of the intervals; 0 when nothing tells their width.
    degrees: int

    def half_width(self, row: FloatArray, variance: float = 0.0) -> float | None:
        """Half the interval of ``row @ values``; None when nothing tells it.

        ``row``: shape (p,). ``variance``: of what a new measurement adds.
        """
        if not self.degrees:
            return None
        total = float(row @ self.covariance @ row) + variance
        return quantile(CONFIDENCE, self.degrees) * sqrt(total)


def estimate(
    rows: FloatArray, targets: FloatArray, variances: FloatArray, known: int
) -> Estimate:
    """Constants ``x >= 0`` with ``rows @ x`` as near to ``targets`` as can be.

    ``rows`` ((n, p)): what a unit of each constant adds to each measured value,
    relative to it; of rank p. ``targets`` ((n,)): what the constants must add to,
    relative to each measured value. ``variances`` ((n,)): of the measured values,
    relative; all 0 when unknown. ``known``: degrees of freedom behind ``variances``.
    They count where scatter alone explains the residuals.
    """
    count, constants = rows.shape
    free = np.ones(constants, dtype=bool)
    while True:
        spare = count - int(free.sum())
        lack = _lack(rows[:, free], targets, variances, spare)
        found, covariance = _weighted(rows[:, free], targets, variances + lack)
        if (found >= 0).all():
            break
        free[np.flatnonzero(free)[found < 0]] = False
    values, spread = np.zeros(constants), np.zeros((constants, constants))
    values[free] = found
    spread[np.ix_(free, free)] = covariance
    return Estimate(values, spread, lack, spare if lack else spare + known)


def _weighted(
    rows: FloatArray, targets: FloatArray, variances: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Weighted least squares: constants, and their covariance."""
    largest = float(variances.max())
    deviations = np.sqrt(variances / largest) if largest else np.ones_like(variances)
    inverse = np.linalg.pinv(rows / deviations[:, None])
    return inverse @ (targets / deviations), largest * (inverse @ inverse.T)


def _lack(
    rows: FloatArray, targets: FloatArray, variances: FloatArray, spare: int
) -> float:
    """Variance beside the known one that explains the residuals.

    Paule and Mandel's own iteration, Newton's method from below: the weighted squares
    fall with it, at the rate of their squared weights.
    """
    if not spare:
        return 0.0
    if not variances.any():
        found, _ = _weighted(rows, targets, variances)
        return float(((rows @ found - targets) ** 2).sum()) / spare
    lack = 0.0
    for _ in range(MOST_ROUNDS):
        weights = 1 / (variances + lack)
        found, _ = _weighted(rows, targets, 1 / weights)
        squares = weights * (rows @ found - targets) ** 2
        step = float((squares.sum() - spare) / (squares @ weights))
        if lack + step <= 0:
            return 0.0
        lack += step
        if abs(step) <= SETTLED * lack:
            break
    return lack
