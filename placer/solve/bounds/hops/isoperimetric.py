"""The isoperimetric bound: the least weight that leaves any s ranks of a job.

``weight of edges out of S >= floor(|S|)`` for every set S of ranks. The job's hop-cost
graph is a sum of products of rings, chains and cliques: tp x cp x pp x dp, and ep x etp
x pp x edp over the same ranks. Each is read as a *stage* of one replica, a *chain* of
stages, and *copies* of the chain.

A set S of vertices of ``H x line`` is cut into slices S_1 .. S_L, one a position of the
line. In its copy of H a slice of n vertices has a boundary of ``floor(n)`` or more, and
neighbouring slices differ in ``|n_i - n_j|`` vertices or more, each a cut edge. So a
floor follows from the slice sizes alone (the compression argument of Bollobas and
Leader 1991, "Edge-isoperimetric inequalities in the grid", read as a lower bound):

* path of weight w: ``sum floor(n_i) + w sum |n_i - n_{i+1}|``, a dynamic program over
  the positions; a price per vertex and position may be added;
* ring: sizes rise to the largest and fall back, so ``sum floor(n_i) + 2 w (max - min)``
  (once w for a ring of two), as along a path of the same sizes in order;
* clique on single vertices: ``w n (L - n)``.

Shapes: B price vectors, K the largest slice, S the largest set. Arrays are indexed by
the set's size.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

import numpy as np

from placer.base.arrays import FloatArray, IntArray
from placer.solve.problem.axes import Axis

# Array elements that the floor of a ring may touch, slice after slice, and as a packing
# of slices; larger ones have slices in fractions.
RING_WORK = 5_000_000
PACKING_WORK = 100_000_000


@dataclass(frozen=True)
class Product:
    """A product graph on all ranks of a job."""

    # Factors inside one pipeline stage of one copy, a clique only at the front.
    stage: tuple[Axis, ...]
    chain: Axis  # the pipeline; its edges form a path
    copies: Axis  # data parallel copies; a ring

    @property
    def vertices(self) -> int:
        """Of the product."""
        return prod(axis.size for axis in (*self.stage, self.chain, self.copies))

    @property
    def has_edges(self) -> bool:
        """Whether any axis has a weight and more than one member."""
        return any(
            axis.size > 1 and axis.weight > 0
            for axis in (*self.stage, self.chain, self.copies)
        )

    def with_chain_share(self, share: float) -> Product:
        """The product with only a share of the chain's weight."""
        chain = replace(self.chain, weight=share * self.chain.weight)
        return replace(self, chain=chain)


def replica_floor(product: Product, prices: FloatArray, size: int) -> FloatArray:
    """Least boundary plus prices of any set inside one copy of the chain.

    ``prices`` ((B, P)): price of a rank on each position of the chain. ``size``:
    largest set of interest. Gives entry n: floor of sets of n ranks, N the lesser of
    ``size`` and the copy.
    """
    floor = np.zeros((1, 2))
    for axis in product.stage:
        floor = _add_line(floor, axis, size)
    chain = product.chain
    if not prices.any():
        # Without prices the sizes may be sorted: they only rise, by max - min.
        return _line_floor(floor, chain.size, chain.weight, size)
    size = min(size, (floor.shape[1] - 1) * chain.size)
    return _path_floor(floor, prices, size, chain.weight)


def copies_floor(replica: FloatArray, copies: Axis, size: int) -> FloatArray:
    """Least boundary of any set of ranks over all copies; shape (B, S + 1)."""
    return _add_line(replica[:, : size + 1], copies, size)


def _add_line(floor: FloatArray, axis: Axis, size: int) -> FloatArray:
    """Floor of the product with a ring, a clique or, without weight, a bare line."""
    length = axis.size
    if axis.is_clique and length > 1:
        inside = np.arange(min(size, length) + 1, dtype=np.float64)
        return axis.weight * (inside * (length - inside))[None, :]
    spread = axis.weight * (2 if length > 2 else 1)
    return _line_floor(floor, length, spread, size)


def _line_floor(floor: FloatArray, length: int, spread: float, size: int) -> FloatArray:
    """Floor of ``length`` slices that pay ``spread`` times the range of their sizes."""
    largest = floor.shape[1] - 1
    size = min(size, largest * length)
    if length == 1:
        return floor[:, : size + 1]
    work = len(floor) * length * largest * size
    if length <= size and work <= RING_WORK:
        return _path_floor(floor, np.zeros((1, length)), size, spread)
    return _ring_floor(floor, length, spread, size)


def _path_floor(
    floor: FloatArray, prices: FloatArray, size: int, weight: float
) -> FloatArray:
    """Cheapest sequence of slices by its total size; shape (B, size + 1).

    Pays ``floor`` and price for each slice and ``weight`` for every vertex by which two
    neighbours differ.
    """
    slices = np.arange(floor.shape[1])
    climb = (weight * slices)[:, None]
    batch = max(len(floor), len(prices))
    best = np.full((batch, len(slices), size + 1), np.inf)
    fitting = slices[: size + 1]
    best[:, fitting, fitting] = (floor + prices[:, :1] * slices)[:, fitting]
    for position in range(1, prices.shape[1]):
        reach = np.minimum.accumulate(best - climb, axis=1) + climb
        down = np.minimum.accumulate((best + climb)[:, ::-1], axis=1)[:, ::-1]
        np.minimum(reach, down - climb, out=reach)
        step = floor + prices[:, position, None] * slices
        best = _shift_rows(reach) + step[:, :, None]
    cheapest: FloatArray = best.min(axis=1)
    return cheapest


def _shift_rows(table: FloatArray) -> FloatArray:
    """``table`` with row n moved n places to the right, infinity moved in."""
    batch, rows, width = table.shape
    padded = np.full((batch, rows, width + rows), np.inf)
    padded[:, :, :width] = table
    # Reading the same memory in rows shorter by one shifts each row by its number.
    skewed = padded.reshape(batch, -1)[:, :-rows].reshape(batch, rows, -1)
    return skewed[:, :, :width]


def _ring_floor(floor: FloatArray, length: int, spread: float, size: int) -> FloatArray:
    """Floor of a ring so long that the number of slices hardly binds.

    Either some slice is empty, then the set pays ``spread`` times its largest slice and
    is a packing of slices; or none is, and it pays at least the convex hull of them.
    """
    largest = min(floor.shape[1] - 1, size)
    floor = floor[:, : largest + 1]
    small = len(floor) * largest * size <= PACKING_WORK
    pack = _packing_floor if small else _rate_floor
    packed, unspread = pack(floor, spread, size)
    sizes = np.arange(length, size + 1)
    for row in range(len(floor) if len(sizes) else 0):
        corners = hull_corners(floor[row, 1:])
        hull = np.interp(sizes / length, corners + 1, floor[row, corners + 1])
        whole = np.maximum(length * hull, unspread[row, length:])
        np.minimum(packed[row, length:], whole, out=packed[row, length:])
    return packed


def _packing_floor(
    floor: FloatArray, spread: float, size: int
) -> tuple[FloatArray, FloatArray]:
    """Unbounded knapsack of slices, with and without ``spread`` x the largest slice."""
    batch = len(floor)
    packed = np.full((batch, size + 1), np.inf)
    packed[:, 0] = 0.0
    best = packed.copy()
    for n in range(1, floor.shape[1]):
        paid = floor[:, n, None]
        for first in range(n, size + 1, n):
            more = packed[:, first : first + n]
            fewer = packed[:, first - n : first - n + more.shape[1]]
            np.minimum(more, fewer + paid, out=more)
        np.minimum(best, packed + spread * n, out=best)
    return best, packed


def _rate_floor(
    floor: FloatArray, spread: float, size: int
) -> tuple[FloatArray, FloatArray]:
    """The packing with fractional slices, for sets too large for a knapsack.

    A set whose largest slice is n pays at least ``min_{m <= n} floor(m) / m`` a vertex.
    """
    largest = floor.shape[1] - 1
    sizes = np.arange(size + 1, dtype=np.float64)
    rates = np.minimum.accumulate(floor[:, 1:] / np.arange(1, largest + 1), axis=1)
    best = np.full((len(floor), size + 1), np.inf)
    for row, rate in enumerate(rates):
        for n in 1 + np.flatnonzero(np.diff(rate, prepend=np.inf)):
            np.minimum(best[row], rate[n - 1] * sizes + spread * n, out=best[row])
    best[:, 0] = 0.0
    return best, rates[:, -1:] * sizes


def hull_corners(values: FloatArray) -> IntArray:
    """Where the lower convex hull of values at 0, 1 .. bends, both ends included."""
    corners = [0]
    while (at := corners[-1]) < len(values) - 1:
        slopes = (values[at + 1 :] - values[at]) / np.arange(1, len(values) - at)
        corners.append(len(values) - 1 - int(slopes[::-1].argmin()))
    return np.array(corners)
