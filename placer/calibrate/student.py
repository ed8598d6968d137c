"""Quantiles of Student's t distribution for whole degrees of freedom."""

from __future__ import annotations

from functools import cache
from math import cos, pi, sin, sqrt, tan

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
