"""What a peer answers: a leaf for every rank, made to fit where it did not.

Soft balance leaves some leaves too full. As many vertices as are too many, those bound
most loosely to their leaf, then move to the nearest leaves with room, and the answer
says how many ranks that were.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from time import perf_counter
from typing import TYPE_CHECKING, Protocol

import numpy as np
import numpy.typing as npt

from benchmarks.peers.problem import MappingProblem, problem_of

if TYPE_CHECKING:
    from placer.job.model import Job
    from placer.topology.model import Topology

IntArray = npt.NDArray[np.int64]
# Leaf of each vertex by a variant of a tool from a seed, None if it gives none.
Mapper = Callable[[MappingProblem, str, int], IntArray | None]


@dataclass(frozen=True, eq=False)
class Answer:
    """A placement by a peer.

    Attributes
    ----------
    leaf_of_rank : ndarray, shape (R,), node
    tool_s : float, s
        Time inside the tool, our preparation aside.
    moved : int
        Ranks moved because their leaf was too full.
    """

    leaf_of_rank: IntArray
    tool_s: float
    moved: int


class Place(Protocol):
    """What every peer is called as."""

    def __call__(
        self, topology: Topology, job: Job, *, unit: str, variant: str, seed: int
    ) -> Answer | None:
        """The placement of units of ranks by a variant; None if there is none."""


def placed_by(mapper: Mapper) -> Place:
    """The ``place`` of a tool that maps the vertices of a graph."""

    def place(
        topology: Topology, job: Job, *, unit: str, variant: str, seed: int
    ) -> Answer | None:
        problem = problem_of(topology, job, unit)
        if problem is None:
            return None
        start = perf_counter()
        leaf_of_vertex = mapper(problem, variant, seed)
        seconds = perf_counter() - start
        if leaf_of_vertex is None:
            return None
        leaf_of_vertex, moved = repaired(problem, leaf_of_vertex)
        # Leaves without room for one unit are no part of the question.
        size = problem.unit_size
        node_of_leaf = np.flatnonzero(topology.gpus_of_node // size)
        leaf_of_rank = np.repeat(node_of_leaf[leaf_of_vertex], size)
        return Answer(leaf_of_rank, seconds, moved * size)

    return place


def version_of(package: str) -> str | None:
    """Name and version of a Python package, None without it."""
    try:
        return f"{package} {metadata.version(package)}"
    except metadata.PackageNotFoundError:
        return None


def repaired(problem: MappingProblem, leaf_of_vertex: IntArray) -> tuple[IntArray, int]:
    """The mapping with no leaf too full, and how many vertices moved for that."""
    leaf_of_vertex = leaf_of_vertex.copy()
    load = np.bincount(leaf_of_vertex, minlength=len(problem.capacity))
    room = problem.capacity - load
    moved = 0
    for leaf in np.flatnonzero(room < 0).tolist():
        while room[leaf] < 0:
            vertex = _loosest(problem, leaf_of_vertex, leaf)
            target = _nearest(problem, leaf_of_vertex, vertex, np.flatnonzero(room > 0))
            leaf_of_vertex[vertex] = target
            room[leaf] += 1
            room[target] -= 1
            moved += 1
    return leaf_of_vertex, moved


def _loosest(problem: MappingProblem, leaf_of_vertex: IntArray, leaf: int) -> int:
    """The vertex of ``leaf`` with the least weight to others there."""
    start, neighbours, weights = problem.graph.rows
    members = np.flatnonzero(leaf_of_vertex == leaf)
    bound = [
        weights[start[v] : start[v + 1]][
            leaf_of_vertex[neighbours[start[v] : start[v + 1]]] == leaf
        ].sum()
        for v in members
    ]
    return int(members[np.argmin(bound)])


def _nearest(
    problem: MappingProblem, leaf_of_vertex: IntArray, vertex: int, leaves: IntArray
) -> int:
    """The one of ``leaves`` that is cheapest for ``vertex``."""
    start, neighbours, weights = problem.graph.rows
    span = slice(start[vertex], start[vertex + 1])
    at = leaf_of_vertex[neighbours[span]]
    cost = weights[span] @ problem.hops(at[:, None], leaves[None, :])
    return int(leaves[np.argmin(cost)])
