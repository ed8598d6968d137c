"""A job and a machine as process mappers take them: a graph, and leaves in a tree.

Ranks that belong together anyway (a tensor parallel group, a pipeline stage) may be
contracted to one vertex before a tool sees the graph. That is our preprocessing, not
the tool's; results obtained with it are labelled. Shapes: R ranks, V vertices, E edges,
K leaves, T tiers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from placer.job.axes import MEGATRON_DEFAULT_ORDER
from placer.job.edges import hop_edges

if TYPE_CHECKING:
    from placer.job.axes import Parallelism
    from placer.job.model import Job
    from placer.topology.model import Topology

IntArray = npt.NDArray[np.int64]

UNITS = ("rank", "tp", "stage")


@dataclass(frozen=True, eq=False)
class Graph:
    """An undirected graph without doubled edges.

    Attributes
    ----------
    vertices : int
    edges : ndarray, shape (E, 2), vertex
    weights : ndarray, shape (E,)
    """

    vertices: int
    edges: IntArray
    weights: IntArray

    @cached_property
    def rows(self) -> tuple[IntArray, IntArray, IntArray]:
        """Start of each vertex's row, shape (V+1,); neighbours and weights, (2E,)."""
        source = self.edges.T.ravel()
        by_source = np.argsort(source, kind="stable")
        degree = np.bincount(source, minlength=self.vertices)
        start = np.concatenate(([0], np.cumsum(degree)))
        neighbours = self.edges[:, ::-1].T.ravel()[by_source]
        return start, neighbours, np.tile(self.weights, 2)[by_source]


@dataclass(frozen=True, eq=False)
class MappingProblem:
    """A graph to be mapped onto leaves.

    Attributes
    ----------
    graph : Graph
        All vertices are equally heavy: units of ``unit_size`` consecutive ranks.
    unit_size : int
    capacity : ndarray, shape (K,)
        Vertices that fit on each leaf.
    domain_of_leaf : ndarray, shape (T, K)
        Row 0 is ``arange(K)``, the last row is one domain.
    distance : ndarray, shape (T,)
    """

    graph: Graph
    unit_size: int
    capacity: IntArray
    domain_of_leaf: IntArray
    distance: IntArray

    def only(self, leaves: IntArray) -> MappingProblem:
        """The same problem with some of the leaves."""
        rows = [
            np.unique(row, return_inverse=True)[1]
            for row in self.domain_of_leaf[:, leaves]
        ]
        return MappingProblem(
            self.graph,
            self.unit_size,
            self.capacity[leaves],
            np.stack(rows),
            self.distance,
        )

    def first_leaves(self) -> IntArray:
        """The first leaves that hold the job when they are filled in turn."""
        enough = np.searchsorted(np.cumsum(self.capacity), self.graph.vertices)
        return np.arange(enough + 1)

    def hops(self, first: IntArray, second: IntArray) -> IntArray:
        """Distance between leaves, beyond that inside a leaf."""
        tier: IntArray = np.zeros(np.broadcast(first, second).shape, dtype=np.int64)
        for row in self.domain_of_leaf[:-1]:
            tier += row[first] != row[second]
        hops: IntArray = self.distance[tier] - self.distance[0]
        return hops


def leaves_joined(topology: Topology) -> Topology:
    """The machine with scale-up domains that are equally near as its nodes.

    Trays of a rack are no farther from each other than their own GPUs, so the rack is
    the leaf. Its nodes must be listed one after the other.
    """
    inner, outer = topology.tiers[:2]
    if not (outer.scale_up and outer.distance == inner.distance):
        return topology
    leaf_of_node = topology.domain_of_node[1]
    first = np.unique(leaf_of_node, return_index=True)[1]
    by_place = np.argsort(first)
    gpus = np.bincount(leaf_of_node, topology.gpus_of_node)
    names = tuple(topology.domain_names[1][leaf] for leaf in by_place)
    rows = topology.domain_of_node[1:, first[by_place]].copy()
    rows[0] = np.arange(len(first))
    return replace(
        topology,
        tiers=topology.tiers[1:],
        gpus_of_node=gpus.astype(np.int64)[by_place],
        bandwidth_factor=np.ones(len(first)),
        domain_of_node=rows,
        domain_names=(names, *topology.domain_names[2:]),
        built=None,
    )


def unit_size(axes: Parallelism, unit: str) -> int:
    """Ranks of a unit: one, a tp group, or a stage (with experts, all of their group).

    A unit that is a number has so many ranks.

    Consecutive ranks form a unit when ranks are numbered tp-cp-ep-dp-pp.

    Raises
    ------
    KeyError
        If there is no such unit.
    """
    if unit.isdigit():
        return int(unit)
    stage = max(axes.tp * axes.cp, axes.etp * axes.ep)
    return {"rank": 1, "tp": axes.tp, "stage": stage}[unit]


def problem_of(topology: Topology, job: Job, unit: str) -> MappingProblem | None:
    """The question with ranks contracted to units; None if those do not fit.

    Raises
    ------
    ValueError
        If ranks are not numbered tp-cp-ep-dp-pp.
    """
    if job.parallelism.order != MEGATRON_DEFAULT_ORDER:
        raise ValueError(f"ranks are numbered {'-'.join(job.parallelism.order)}")
    size = unit_size(job.parallelism, unit)
    capacity = topology.gpus_of_node // size
    vertices = job.world_size // size
    if capacity.sum() < vertices:
        return None
    fits = np.flatnonzero(capacity)
    problem = MappingProblem(
        contracted(job, size),
        size,
        capacity,
        topology.domain_of_node,
        np.array([tier.distance for tier in topology.tiers], dtype=np.int64),
    )
    return problem.only(fits)


def contracted(job: Job, size: int) -> Graph:
    """The job's edges between units of ``size`` consecutive ranks, parallel ones added.

    Raises
    ------
    ValueError
        If a weight is not a whole number, which the tools need.
    """
    vertices = job.world_size // size
    keys, weights = [], []
    for axis, weight, edges in hop_edges(job):
        if weight != int(weight):
            raise ValueError(f"weight of {axis}: {weight} is not a whole number")
        ends = np.sort(edges // size, axis=1)
        ends = ends[ends[:, 0] != ends[:, 1]]
        keys.append(ends[:, 0] * vertices + ends[:, 1])
        weights.append(np.full(len(ends), int(weight)))
    key, index = np.unique(np.concatenate(keys), return_inverse=True)
    total = np.zeros(len(key), dtype=np.int64)
    np.add.at(total, index, np.concatenate(weights))
    return Graph(vertices, np.stack(np.divmod(key, vertices), axis=1), total)
