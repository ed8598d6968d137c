"""Convex functions of a number of vertices, piece by piece."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from placer.arrays import FloatArray


class Segment(NamedTuple):
    """A piece of a convex function: how steep it is, and how long."""

    slope: float
    length: float


def below(value: FloatArray) -> FloatArray:
    """The lower convex hull of 0, 1, ... at each of them."""
    parts = hull(np.arange(float(len(value))), value)
    slope = [part.slope for part in parts]
    return np.cumsum([0.0, *np.repeat(slope, [int(part.length) for part in parts])])


def filled(parts: list[Segment], length: float) -> float:
    """What so much of the steepest descents, or the least ascents, adds up to."""
    total = 0.0
    for part in sorted(parts):
        taken = min(part.length, length)
        total += part.slope * taken
        length -= taken
    return total


def hull(at: FloatArray, value: FloatArray) -> list[Segment]:
    """The lower convex hull of some points, from the first one on."""
    kept: list[int] = []
    for index in range(len(at)):
        while len(kept) > 1 and _slope(at, value, kept[-1], index) <= _slope(
            at, value, *kept[-2:]
        ):
            kept.pop()
        kept.append(index)
    return [
        Segment(_slope(at, value, one, other), float(at[other] - at[one]))
        for one, other in pairwise(kept)
    ]


def _slope(at: FloatArray, value: FloatArray, one: int, other: int) -> float:
    return float((value[other] - value[one]) / (at[other] - at[one]))
