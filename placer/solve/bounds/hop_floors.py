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

**Sets kept whole.** Where every domain of a tier holds whole sets of ranks, the cut of
the tier is one of the graph whose vertices are these sets: an edge inside a set is not
cut, and all edges between two sets are cut or none is. It is at least the least cut of
the whole graph, and what is taken axis by axis on it is tighter. If a set is a box of
``b_a`` values of each axis ``a``, ``m`` ranks in all, an edge of axis ``a`` stands for

* ring or chain: ``m / b_a`` edges of ranks; twice as many where a ring of more than two
  is left with two members;
* clique: ``b_a * m``, since every pair of values of the two sets is joined.

What is said of a ring holds for any closed walk that comes to every member, as a ring
of edp is where ranks are not numbered along it: a part of it has two ends.

Shapes: B price vectors, S ranks of the largest set that is asked for. Arrays are
indexed by the set's size. `hop_cuts` sums the floors of all domains of a tier.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from math import gcd, lcm, prod

import numpy as np

from placer.base.arrays import FloatArray, IntArray
from placer.job.axes import pipeline_groups_agree
from placer.job.model import Job
from placer.solve.bounds import WORK
from placer.solve.problem.axes import Axis, axis_of, box_of
from placer.solve.problem.colocation import colocation_of
from placer.solve.tree.domains import whole_sets
from placer.topology.machine import Machine


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
    # Slices of larger rings are packed in any order.
    work = len(floor) * length * largest * size
    if length <= size and work <= WORK:
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
    floor = floor[:, : size + 1]
    packed = np.full((len(floor), size + 1), np.inf)
    packed[:, 0] = 0.0
    best = packed.copy()
    for n in range(1, floor.shape[1]):
        paid = floor[:, n, None]
        for first in range(n, size + 1, n):
            more = packed[:, first : first + n]
            fewer = packed[:, first - n : first - n + more.shape[1]]
            np.minimum(more, fewer + paid, out=more)
        np.minimum(best, packed + spread * n, out=best)
    sizes = np.arange(length, size + 1)
    for row in range(len(floor) if len(sizes) else 0):
        corners = hull_corners(floor[row, 1:])
        hull = np.interp(sizes / length, corners + 1, floor[row, corners + 1])
        whole = np.maximum(length * hull, packed[row, length:])
        np.minimum(best[row, length:], whole, out=best[row, length:])
    return best


def hull_corners(values: FloatArray) -> IntArray:
    """Where the lower convex hull of values at 0, 1 .. bends, both ends included."""
    corners = [0]
    while (at := corners[-1]) < len(values) - 1:
        slopes = (values[at + 1 :] - values[at]) / np.arange(1, len(values) - at)
        corners.append(len(values) - 1 - int(slopes[::-1].argmin()))
    return np.array(corners)


DENSE_AXES = ("tp", "cp", "pp", "dp")
EXPERT_AXES = ("ep", "etp", "pp", "edp")


@dataclass(frozen=True)
class Graph:
    """A job's edges as a sum of products of axes over the same vertices."""

    # Edges that no product can represent are left out, which only lowers a bound.
    products: tuple[Product, ...]
    vertices: int  # ranks, or sets of ranks
    quantum: Fraction  # every cut is a multiple of it

    @property
    def stages(self) -> int:
        """Positions of the chain."""
        return self.products[0].chain.size


def graph_of(job: Job) -> Graph:
    """The graph of all ranks."""
    return _graph(_families(job))


def contracted(job: Job, label: IntArray) -> Graph | None:
    """The graph of sets of ranks, None unless they are equal boxes of every product.

    ``label`` ((R,)): set of every rank.
    """
    families = []
    for axes in _families(job):
        box = box_of(axes, label)
        if box is None:
            return None
        families.append(_between(axes, box))
    return _graph(families)


def kept_whole(
    topology: Machine, job: Job, tier: int
) -> Iterator[tuple[IntArray, IntArray]]:
    """Set of each rank that rules keep in a domain of a tier; sets that each holds.

    One pair, or none where sets are single ranks or of several sizes.
    """
    colocation = colocation_of(topology, job, 1) if job.require else None
    sizes = colocation.uniform_sizes() if colocation else None
    if colocation and sizes and sizes[tier] > 1:
        room = whole_sets(topology, topology.gpus_of_node, sizes)
        yield colocation.label[tier], room[tier] // sizes[tier]


def _families(job: Job) -> list[list[Axis]]:
    """Axes of the dense product, and of the experts' where it has edges of its own.

    Ranks that no expert coordinates tell apart are no product.
    """
    # Edges of etp are those of tp, which the dense product has.
    weights = {**job.weights, "etp": 0.0}
    dense, expert = (
        [axis_of(job, name, weights) for name in names]
        for names in (DENSE_AXES, EXPERT_AXES)
    )
    has_edges = _product(expert).with_chain_share(0.0).has_edges
    is_product = has_edges and pipeline_groups_agree(job.parallelism)
    return [dense, expert] if is_product else [dense]


def _between(axes: list[Axis], box: tuple[int, ...]) -> list[Axis]:
    """The axes between sets, with the weight of all edges between two of them."""
    found = []
    for axis, width in zip(axes, box, strict=True):
        size = axis.size // width
        edges = prod(box) * width if axis.is_clique else prod(box) // width
        if axis.closed and size == 2 < axis.size:
            edges *= 2
        found.append(replace(axis, size=size, weight=axis.weight * edges))
    return found


def _graph(families: list[list[Axis]]) -> Graph:
    """Edges of a pipeline belong to all products, and each has a share of them."""
    weights = [axis.weight for axes in families for axis in axes if axis.size > 1]
    products = [_product(axes) for axes in families]
    own = [one for one in products if one.with_chain_share(0.0).has_edges]
    products = own or products[:1]
    shared = tuple(one.with_chain_share(1 / len(products)) for one in products)
    return Graph(shared, products[0].vertices, common_divisor(weights))


def _product(axes: list[Axis]) -> Product:
    first, second, chain, copies = axes
    return Product((first, second), chain, copies)


def common_divisor(weights: Iterable[float]) -> Fraction:
    """Greatest number of which all positive weights are multiples, read as decimals."""
    numbers = [Fraction(str(weight)) for weight in weights if weight > 0]
    scale = lcm(*(number.denominator for number in numbers))
    return Fraction(gcd(*(int(number * scale) for number in numbers)) or 1, scale)
