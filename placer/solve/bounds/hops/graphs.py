"""The job's hop-cost graph as sums of products, whole or with sets contracted.

Where every domain of a tier holds whole sets of ranks, the cut of the tier is one of
the graph whose vertices are these sets: an edge inside a set is not cut, and all edges
between two sets are cut or none is. It is at least the least cut of the whole graph,
and what is taken axis by axis on it is tighter. If a set is a box of ``b_a`` values of
each axis ``a``, ``m`` ranks in all, an edge of axis ``a`` stands for

* ring or chain: ``m / b_a`` edges of ranks; twice as many where a ring of more than two
  is left with two members;
* clique: ``b_a * m``, since every pair of values of the two sets is joined.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from math import gcd, lcm, prod
from typing import TYPE_CHECKING

import numpy as np

from placer.base.arrays import IntArray
from placer.solve.bounds.hops.isoperimetric import Product
from placer.solve.problem.axes import EXPERT, Axis, axis_of, box_of
from placer.solve.problem.colocation import colocation_of
from placer.solve.tree.capacity import whole_sets

if TYPE_CHECKING:
    from placer.job.axes import Parallelism
    from placer.job.model import Job
    from placer.topology.machine import Machine

DENSE_AXES = ("tp", "cp", "pp", "dp")
EXPERT_AXES = ("ep", "etp", "pp", "edp")


@dataclass(frozen=True)
class Graph:
    """A job's edges as a sum of products of axes over the same vertices."""

    # Edges of a pipeline belong to all of them, and each has a share of their weight.
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
    families = [_axes(job, DENSE_AXES)]
    if _has_experts(job):
        families.append(_axes(job, EXPERT_AXES))
    return _graph(job, families)


def contracted(job: Job, label: IntArray) -> Graph | None:
    """The graph of sets of ranks, None unless they are equal boxes of every product.

    ``label`` ((R,)): set of every rank.
    """
    families = []
    for names in (DENSE_AXES, EXPERT_AXES)[: 1 + _has_experts(job)]:
        between = _between(job, _axes(job, names), label)
        if between is None:
            return None
        families.append(between)
    return _graph(job, families)


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


def _axes(job: Job, names: tuple[str, ...]) -> list[Axis]:
    # Edges of etp are those of tp, which the dense product has.
    weights = {**job.weights, "etp": 0.0}
    return [axis_of(job, name, weights) for name in names]


def _has_experts(job: Job) -> bool:
    """Whether experts have edges other than the pipeline's, which are a product."""
    alone = _product(_axes(job, EXPERT_AXES)).with_chain_share(0.0)
    return alone.has_edges and _is_product(job.parallelism)


def _between(job: Job, axes: list[Axis], label: IntArray) -> list[Axis] | None:
    """The axes between sets, with the weight of all edges between two of them."""
    box = box_of(axes, label)
    if box is None:
        return None
    found = []
    for axis, width in zip(axes, box, strict=True):
        if width > 1 and not _in_ring_order(job, axis):
            return None
        size = axis.size // width
        edges = prod(box) * width if axis.is_clique else prod(box) // width
        if axis.closed and size == 2 < axis.size:
            edges *= 2
        coordinate = axis.coordinate // width
        weight = axis.weight * edges
        found.append(replace(axis, size=size, weight=weight, coordinate=coordinate))
    return found


def _in_ring_order(job: Job, axis: Axis) -> bool:
    """Whether neighbours in a group differ by one in their coordinate."""
    along = axis.coordinate[job.parallelism.ranks_of_group[axis.name]]
    return bool((along == np.arange(axis.size)).all())


def _graph(job: Job, families: list[list[Axis]]) -> Graph:
    dense, *experts = (_product(axes) for axes in families)
    weights = [axis.weight for axes in families for axis in axes if axis.size > 1]
    vertices = prod(axis.size for axis in families[0])
    return Graph(_products(job, dense, experts), vertices, common_divisor(weights))


def _products(job: Job, dense: Product, experts: list[Product]) -> tuple[Product, ...]:
    if not experts:
        return (dense,)
    expert = experts[0]
    if not _same_chains(job.parallelism):
        return dense, expert.with_chain_share(0.0)
    if not dense.with_chain_share(0.0).has_edges:
        return (expert,)
    return dense.with_chain_share(0.5), expert.with_chain_share(0.5)


def _product(axes: list[Axis]) -> Product:
    first, second, chain, copies = axes
    return Product((first, second), chain, copies)


def _is_product(parallelism: Parallelism) -> bool:
    """Whether expert coordinates name every rank once, with alike ``edp`` rings."""
    at = parallelism.coordinates
    key = np.zeros(parallelism.world_size, dtype=np.int64)
    for name in EXPERT:
        key = key * parallelism.size(name) + at[name]
    if len(np.unique(key)) < parallelism.world_size:
        return False
    along = at["edp"][parallelism.ranks_of_group["edp"]]
    return bool((along == along[0]).all())


def _same_chains(parallelism: Parallelism) -> bool:
    """Whether the ranks of one pipeline share all their other expert coordinates."""
    rows = parallelism.ranks_of_group["pp"]
    return all(
        bool((at[rows] == at[rows[:, :1]]).all())
        for at in (parallelism.coordinates[name] for name in ("ep", "etp", "edp"))
    )


def common_divisor(weights: Iterable[float]) -> Fraction:
    """Greatest number of which all positive weights are multiples, read as decimals."""
    numbers = [Fraction(str(weight)) for weight in weights if weight > 0]
    scale = lcm(*(number.denominator for number in numbers))
    return Fraction(gcd(*(int(number * scale) for number in numbers)) or 1, scale)
