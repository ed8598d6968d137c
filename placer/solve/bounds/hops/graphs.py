"""The job's hop-cost graph as sums of products, whole or with sets contracted.

Where every domain of a tier holds whole sets of ranks, the cut of the tier is one of
the graph whose vertices are these sets: an edge inside a set is not cut, and all edges
between two sets are cut or none is. It is at least the least cut of the whole graph,
and what is taken axis by axis on it is tighter. If a set is a box of ``b_a`` values of
each axis ``a``, ``m`` ranks in all, an edge of axis ``a`` stands for

* ring or chain: ``m / b_a`` edges of ranks; twice as many where a ring of more than two
  is left with two members;
* clique: ``b_a * m``, since every pair of values of the two sets is joined.

What is said of a ring holds for any closed walk that comes to every member, as a ring
of edp is where ranks are not numbered along it: a part of it has two ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from math import gcd, lcm, prod

from placer.base.arrays import IntArray
from placer.job.axes import pipeline_groups_agree
from placer.job.model import Job
from placer.solve.bounds.hops.isoperimetric import Product
from placer.solve.problem.axes import Axis, axis_of, box_of
from placer.solve.problem.colocation import colocation_of
from placer.solve.tree.domains import whole_sets
from placer.topology.machine import Machine

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
