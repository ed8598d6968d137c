"""How many GPUs may hold ranks when no budget is exceeded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from placer.base.arrays import IntArray
from placer.solve.count import Limits as EngineLimits
from placer.solve.count import Program, Term, solve

if TYPE_CHECKING:
    from placer.solve.problem.rules import Cap

BUDGET_WORK = 1.0  # CP-SAT's deterministic seconds


def gpus_within(
    caps: Sequence[Cap], gpus_of_node: IntArray, replica_size: int
) -> tuple[int, bool]:
    """GPUs that budgets leave, and whether so many are really there.

    Parameters
    ----------
    caps : sequence of Cap
        At least one.
    gpus_of_node : ndarray, shape (N,)
    replica_size : int
        Ranks of a replica: a budget of replicas holds so many times that.
    """
    of_node = np.array([cap.inside for cap in caps])
    sorts, sort_of_node = np.unique(of_node, axis=1, return_inverse=True)
    room = np.bincount(sort_of_node.ravel(), gpus_of_node)
    program = Program()
    columns = [program.column(most=float(most), price=-1) for most in room]
    for cap, held in zip(caps, sorts.tolist(), strict=True):
        terms = [Term(c) for c, there in zip(columns, held, strict=True) if there]
        if cap.ranks is not None:
            program.row(terms, most=cap.ranks)
        if cap.replicas is not None:
            program.row(terms, most=cap.replicas * replica_size)
    answer = solve(program, EngineLimits(BUDGET_WORK))
    return round(-answer.bound), answer.is_proved
