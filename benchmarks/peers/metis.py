"""METIS through pymetis: recursive bisection into parts as large as the leaves.

METIS minimises the edge cut and knows no tree. Recursive bisection numbers its parts so
that near numbers are cut late, which on leaves in order amounts to a mapping.

Karypis and Kumar 1998, "A fast and high quality multilevel scheme for partitioning
irregular graphs".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from benchmarks.peers.answer import placed_by, version_of

if TYPE_CHECKING:
    from benchmarks.peers.problem import MappingProblem

IntArray = npt.NDArray[np.int64]

NAME = "METIS"
# Slack is spread over all leaves, or left on the last ones.
VARIANTS = ("spread", "packed")
IMBALANCE = 1  # in thousandths


def version() -> str | None:
    """Version of the package, None without it."""
    return version_of("pymetis")


def _map(problem: MappingProblem, variant: str, seed: int) -> IntArray:
    import pymetis

    packed = variant == "packed"
    leaves = problem.first_leaves() if packed else np.arange(len(problem.capacity))
    capacity = problem.capacity[leaves]
    start, neighbours, weights = problem.graph.rows
    if len(leaves) == 1:
        return np.zeros(problem.graph.vertices, dtype=np.int64)
    _, part = pymetis.part_graph(
        len(leaves),
        pymetis.CSRAdjacency(start, neighbours),
        eweights=weights,
        tpwgts=(capacity / capacity.sum()).tolist(),
        recursive=True,
        options=pymetis.Options(ufactor=IMBALANCE, seed=seed),
    )
    return leaves[np.array(part, dtype=np.int64)]


# A partition whose parts are the leaves in order.
place = placed_by(_map)
