"""The job as a grid of axes: families, each of which numbers all ranks, and digits.

Dense axes (tp, cp, dp, pp) and expert axes (etp, ep, edp, pp) number the same ranks.
Cutting both at their common boundaries gives digits of the rank number that each belong
to one axis of either family: the finest grid in which every axis is a run of digits.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from placer.base.arrays import IntArray
from placer.job.axes import Parallelism
from placer.job.model import Job

DENSE = ("tp", "cp", "pp", "dp")
EXPERT = ("etp", "ep", "pp", "edp")
# Axes whose groups are kept whole, heaviest first. Pipelines and replicas are cut.
KEPT_WHOLE = ("tp", "etp", "ep", "cp")


@dataclass(frozen=True, eq=False)
class Axis:
    """An axis, or the inner or outer set of one."""

    name: str
    size: int
    weight: float  # of an edge between two neighbours
    closed: bool  # whether the last member is a neighbour of the first
    coordinate: IntArray  # (R,)

    @property
    def is_clique(self) -> bool:
        """Whether all members of a line are neighbours."""
        return self.name == "ep"


def axis_of(job: Job, name: str, weights: Mapping[str, float]) -> Axis:
    """A whole axis; edges of tp and etp are one and the same."""
    axes = job.parallelism
    weight = float(weights.get(name, 0.0))
    is_closed = name not in ("pp", "ep")
    return Axis(name, axes.size(name), weight, is_closed, axes.coordinates[name])


def box_of(
    grid: Sequence[Axis] | Sequence[Digit], label: IntArray
) -> tuple[int, ...] | None:
    """Values of each axis in a set, None unless sets are equal boxes side by side.

    ``grid``: which together number all ranks. ``label`` ((R,)): set of every rank.
    """
    first = label == label[0]
    box, cells = [], 1
    cell = np.zeros(len(label), dtype=np.int64)
    for axis in grid:
        coordinate = axis.coordinate
        width = len(np.unique(coordinate[first]))
        if axis.size % width:
            return None
        box.append(width)
        cell = cell * (axis.size // width) + coordinate // width
        cells *= axis.size // width
    parts = int(label.max()) + 1
    pairs = len(np.unique(cell * parts + label))
    return tuple(box) if parts == cells == pairs else None


def sizes_kept_whole(axes: Parallelism) -> list[int]:
    """Ranks of an expert group, of a cp group of tp groups, and of a tp group.

    Equal sizes count once.
    """
    sizes = axes.etp * axes.ep, axes.tp * axes.cp, axes.tp
    return list(dict.fromkeys(sizes))


@dataclass(frozen=True)
class Digit:
    """One digit of the rank number."""

    # dense and expert: the axis it belongs to in each family; ``expert`` is empty in a
    # job without experts.
    dense: str
    expert: str
    size: int  # values it takes
    stride: int  # ranks between two neighbouring values
    world: int  # ranks in all

    @property
    def coordinate(self) -> IntArray:
        """Value of every rank; shape (R,)."""
        return np.arange(self.world) // self.stride % self.size


def digits_of(axes: Parallelism) -> tuple[Digit, ...] | None:
    """Digits of the rank number, fastest first; None when the axes share no grid."""
    dense = _spans(axes.order, {a: axes.size(a) for a in ("tp", "cp", "pp", "dp")})
    if not axes.divides_experts:
        # Without experts of its own a job reduces these over all dp and cp ranks.
        family = {"tp": "etp", "cp": "edp", "pp": "pp", "dp": "edp"}
        return tuple(
            Digit(name, family[name], high // low, low, axes.world_size)
            for name, low, high in dense
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
        names_here = _at(dense, low), _at(expert, low)
        found.append(Digit(*names_here, high // low, low, axes.world_size))
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
