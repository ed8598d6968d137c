"""Parts of a machine that are stitched by themselves: windows."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from placer.arrays import IntArray
from placer.solve.construct.chains.segments import Fragment

if TYPE_CHECKING:
    from placer.solve.construct.chains.segments import Segment, Stitching
    from placer.solve.problem.params import Params


def window_width(problem: Stitching, params: Params) -> int:
    """Domains of level 1 in a window."""
    return max(1, params.window_joints // len(problem.pairs()))


def of_machine(leaves: IntArray, replica: Segment) -> Segment:
    """A replica of a part of the machine, made of these leaves."""
    return tuple(
        Fragment(int(leaves[leaf]), length, int(leaves[twin]))
        for leaf, length, twin in replica
    )


def restricted(
    problem: Stitching,
    leaves: IntArray,
    free: IntArray,
    halves: IntArray,
    replicas: int,
) -> Stitching:
    """The problem of making some replicas out of the free units of some leaves."""
    parents, domains = [], leaves
    for parent in problem.parents:
        domains, inside = np.unique(parent[domains], return_inverse=True)
        parents.append(inside)
    missing = max(0, replicas * problem.length - int(free[leaves].sum()))
    are_dear = _are_dear(problem)
    has_halves = problem.spare_halves is not None and (missing > 0 or not are_dear)
    return replace(
        problem,
        capacity=free[leaves],
        parents=parents,
        replicas=replicas,
        spare_halves=halves[leaves] if has_halves else None,
        most_halved=missing if has_halves and are_dear else None,
    )


def _are_dear(problem: Stitching) -> bool:
    """Whether a unit of halves costs more than any joint, so that the fewest are best.

    The fewest do wherever all units can be joined.
    """
    return (
        problem.spare_halves is not None
        and problem.most_joints is None
        and set(problem.multiples) <= {1}
        and min(problem.half_cost) > max(problem.joint_cost)
    )
