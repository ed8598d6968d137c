"""How many leaves hold which runs, and how many replicas are cut in which way."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt
from ortools.sat.python import cp_model

from placer.solve.count.engine import cp_sat

if TYPE_CHECKING:
    from placer.solve.count.cut_patterns import Question

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Deal:
    """The answer.

    Attributes
    ----------
    leaves_of_pattern : ndarray, shape (F,)
    replicas_of_set : ndarray, shape (S,)
        Replicas cut in each way.
    """

    leaves_of_pattern: IntArray
    replicas_of_set: IntArray


class Limits(NamedTuple):
    """When a program is to end.

    Attributes
    ----------
    work : float
        CP-SAT's deterministic seconds.
    seconds : float, s
    seed : int
    """

    work: float
    seconds: float
    seed: int


def deal(
    question: Question, capacity: IntArray, replicas: int, limits: Limits
) -> tuple[Deal | None, float]:
    """Leaves of each pattern and replicas of each kind, and the work it took.

    None without a solution; of several one with few cuts is taken.

    Parameters
    ----------
    question : Question
    capacity : ndarray, shape (leaves,)
        Stages that each leaf has room for.
    replicas : int
    limits : Limits
    """
    patterns, sizes, uses = question.patterns, question.sizes, question.uses
    model = cp_model.CpModel()
    leaves = [model.new_int_var(0, len(capacity), "") for _ in patterns]
    made = [model.new_int_var(0, replicas, "") for _ in uses]
    model.add(sum(made) == replicas)
    for kind in range(patterns.shape[1]):
        held, used = patterns[:, kind], uses[:, kind]
        model.add(
            cp_model.LinearExpr.weighted_sum(leaves, held.tolist())
            == cp_model.LinearExpr.weighted_sum(made, used.tolist())
        )
    for size in np.unique(sizes).tolist():
        # Larger leaves can take smaller patterns, so counts from above suffice.
        larger = [leaves[i] for i in np.flatnonzero(sizes >= size).tolist()]
        model.add(sum(larger) <= int((capacity >= size).sum()))
    model.minimize(cp_model.LinearExpr.weighted_sum(made, uses.sum(axis=1).tolist()))
    solver = cp_sat(limits.work, limits.seed, limits.seconds)
    status = solver.solve(model)
    work = solver.response_proto.deterministic_time
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return None, work
    found = Deal(
        np.array([solver.value(x) for x in leaves]),
        np.array([solver.value(x) for x in made]),
    )
    return found, work
