"""Mt-KaHyPar: mapping onto a target graph with hard capacities.

A target graph of all leaves is out of reach beyond some hundreds of them. There the
answer is wrapped in a multisection of ours: the outermost tiers with at most
`TARGETS_AT_MOST` domains are mapped first, then the share of every domain within it.

Heuer 2024, "A direct k-way hypergraph partitioning algorithm for optimizing the Steiner
tree metric" (ALENEX).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from benchmarks.peers.answer import placed_by, version_of
from benchmarks.peers.problem import Graph

if TYPE_CHECKING:
    from benchmarks.peers.problem import MappingProblem

IntArray = npt.NDArray[np.int64]

NAME = "Mt-KaHyPar"
VARIANTS = ("DEFAULT", "HIGHEST_QUALITY")
TARGETS_AT_MOST = 256
THREADS = 2


def version() -> str | None:
    """Version of the package, None without it."""
    return version_of("mtkahypar")


def mapped(problem: MappingProblem, variant: str, seed: int) -> IntArray:
    """Leaf of each vertex of a problem, with the preset ``variant``."""
    mapper = _Mapper(problem, variant, seed)
    everything = np.arange(problem.graph.vertices)
    return mapper.split(everything, np.arange(len(problem.capacity)))


place = placed_by(mapped)


@dataclass(frozen=True, eq=False)
class _Mapper:
    """Runs of the tool on parts of a problem."""

    problem: MappingProblem
    preset: str
    seed: int

    def split(self, vertices: IntArray, leaves: IntArray) -> IntArray:
        """Leaf of each of ``vertices`` when they share ``leaves``."""
        if len(leaves) == 1:
            return np.full(len(vertices), leaves[0])
        tier = self._tier(leaves)
        domain_of_leaf = self.problem.domain_of_leaf[tier, leaves]
        domains, first = np.unique(domain_of_leaf, return_index=True)
        capacity = np.array(
            [
                self.problem.capacity[leaves[domain_of_leaf == domain]].sum()
                for domain in domains
            ]
        )
        block = self._mapped(vertices, leaves[first], capacity)
        leaf_of_vertex = np.empty(len(vertices), dtype=np.int64)
        for index, domain in enumerate(domains.tolist()):
            mine = np.flatnonzero(block == index)
            below = leaves[domain_of_leaf == domain]
            if len(mine):
                leaf_of_vertex[mine] = self.split(vertices[mine], below)
        return leaf_of_vertex

    def _tier(self, leaves: IntArray) -> int:
        """The innermost tier of which ``leaves`` make few enough domains."""
        counts = [len(np.unique(row)) for row in self.problem.domain_of_leaf[:, leaves]]
        return next(
            (t for t, count in enumerate(counts) if count <= TARGETS_AT_MOST),
            len(counts) - 1,
        )

    def _mapped(
        self, vertices: IntArray, targets: IntArray, capacity: IntArray
    ) -> IntArray:
        """Index of the target of each vertex."""
        import mtkahypar

        tool = _tool()
        mtkahypar.set_seed(self.seed)
        context = tool.context_from_preset(getattr(mtkahypar.PresetType, self.preset))
        context.set_partitioning_parameters(len(targets), 0.0, mtkahypar.Objective.CUT)
        context.set_individual_target_block_weights(capacity.tolist())
        context.logging = False
        inside = induced(self.problem.graph, vertices)
        graph = graph_of(tool, context, inside)
        target = target_of(tool, context, self.problem, targets)
        found = graph.map_onto_graph(target, context)
        return np.array(found.get_partition(), dtype=np.int64)


def graph_of(tool: Any, context: Any, graph: Graph) -> Any:
    """The graph as the library has it."""
    return tool.create_graph(
        context,
        graph.vertices,
        len(graph.edges),
        list(map(tuple, graph.edges.tolist())),
        [1] * graph.vertices,
        graph.weights.tolist(),
    )


def target_of(
    tool: Any, context: Any, problem: MappingProblem, leaves: IntArray
) -> Any:
    """The target graph: all pairs of ``leaves``, as far apart as they are."""
    first, second = np.triu_indices(len(leaves), k=1)
    return tool.create_target_graph(
        context,
        len(leaves),
        len(first),
        list(zip(first.tolist(), second.tolist(), strict=True)),
        problem.hops(leaves[first], leaves[second]).tolist(),
    )


def induced(graph: Graph, vertices: IntArray) -> Graph:
    """The graph between some of the vertices, numbered as they are listed."""
    if len(vertices) == graph.vertices:
        return graph
    number = np.full(graph.vertices, -1)
    number[vertices] = np.arange(len(vertices))
    edges = number[graph.edges]
    kept = (edges >= 0).all(axis=1)
    return Graph(len(vertices), edges[kept], graph.weights[kept])


@cache
def _tool() -> Any:
    """The initialised library; it may be initialised only once."""
    import mtkahypar

    return mtkahypar.initialize(THREADS, False)
