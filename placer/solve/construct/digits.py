"""The rank number as digits: the finest grid in which every axis is a run of digits.

Dense axes (tp, cp, dp, pp) and expert axes (etp, ep, edp, pp) number the same ranks.
Cutting both at their common boundaries gives digits that each belong to one axis of
either family; a nesting chooses how many values of each digit lie inside one domain of
a tier.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from placer.job.axes import Parallelism

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Digit:
    """One digit of the rank number.

    Attributes
    ----------
    dense, expert : str
        The axis it belongs to in each family; ``expert`` is empty in a job without
        experts.
    size : int
        Values it takes.
    stride : int
        Ranks between two neighbouring values.
    """

    dense: str
    expert: str
    size: int
    stride: int


def digits_of(axes: Parallelism) -> tuple[Digit, ...] | None:
    """Digits of the rank number, fastest first; None when the axes share no grid."""
    dense = _spans(axes.order, {a: axes.size(a) for a in ("tp", "cp", "pp", "dp")})
    if not axes.divides_experts:
        # Without experts of its own a job reduces these over all dp and cp ranks.
        family = {"tp": "etp", "cp": "edp", "pp": "pp", "dp": "edp"}
        return tuple(
            Digit(name, family[name], high // low, low) for name, low, high in dense
        )
    sizes = {"tp": axes.etp, "ep": axes.ep, "pp": axes.pp, "dp": axes.edp}
    names = {"tp": "etp", "dp": "edp"}
    expert = [
        (names.get(name, name), low, high)
        for name, low, high in _spans(axes.order, sizes)
    ]
    cuts = sorted({end for _, low, high in dense + expert for end in (low, high)})
    found = []
    for low, high in itertools.pairwise(cuts):
        if high % low:
            return None
        found.append(Digit(_at(dense, low), _at(expert, low), high // low, low))
    return tuple(found)


def _spans(order: tuple[str, ...], sizes: dict[str, int]) -> list[tuple[str, int, int]]:
    """(axis, first stride, stride past its end) of every axis with several members."""
    spans, stride = [], 1
    for axis in order:
        size = sizes.get(axis, 1)
        if size > 1:
            spans.append((axis, stride, stride * size))
            stride *= size
    return spans


def _at(spans: list[tuple[str, int, int]], stride: int) -> str:
    return next(name for name, low, high in spans if low <= stride < high)


def box_of(digits: tuple[Digit, ...], label: IntArray) -> tuple[int, ...] | None:
    """Values of each digit in a part, None unless all parts are alike, side by side.

    Parameters
    ----------
    digits : tuple of Digit
    label : ndarray, shape (R,)
        Part of every rank.
    """
    ranks = np.flatnonzero(label == label[0])
    box = tuple(len(np.unique(ranks // digit.stride % digit.size)) for digit in digits)
    if any(digit.size % width for digit, width in zip(digits, box, strict=True)):
        return None
    cell = np.zeros(len(label), dtype=np.int64)
    for digit, width in zip(digits, box, strict=True):
        value = np.arange(len(label)) // digit.stride % digit.size
        cell = cell * (digit.size // width) + value // width
    parts, cells = int(label.max()) + 1, int(cell.max()) + 1
    pairs = len(np.unique(cell * parts + label))
    return box if parts == cells == pairs else None


def sequence_of(
    digits: tuple[Digit, ...], factors: list[tuple[int, int]], world: int
) -> IntArray:
    """Ranks in nested order; shape (R,).

    ``factors`` lists (digit, factor), innermost first; the factors of a digit multiply
    to its size and take its values in blocks of neighbours.
    """
    rest = np.arange(world, dtype=np.int64)
    rank = np.zeros(world, dtype=np.int64)
    inner = [1] * len(digits)
    for index, factor in factors:
        rank += rest % factor * inner[index] * digits[index].stride
        inner[index] *= factor
        rest //= factor
    return rank
