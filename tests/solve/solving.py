"""The solver as tests ask it: a machine, a job, and how long."""

from __future__ import annotations

from typing import TYPE_CHECKING

from placer.solve import search
from placer.solve.problem.compiled import Problem
from placer.solve.problem.starts import starts
from placer.solve.run.budget import Budget
from placer.solve.run.incumbent import Incumbent

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np

    from placer.job.model import Job
    from placer.solve.run.solution import Progress, Solution
    from placer.topology.model import Topology


def solve(
    topology: Topology,
    job: Job,
    *,
    objective: str | None = None,
    seed: int = 0,
    time_limit: float = 60.0,
    progress: Progress | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> Solution:
    """The best placement found in the time, s, and a lower bound."""
    problem = Problem.of(topology, job, objective, seed)
    return search.solve(problem, Budget(time_limit, stop), progress)


def known(
    problem: Problem, start: np.ndarray | None = None, budget: Budget | None = None
) -> Incumbent:
    """The incumbent of a search that knows one placement, or the usual orders."""
    incumbent = Incumbent(problem, budget or Budget(60.0))
    incumbent.offer_all(starts(problem) if start is None else [("start", start)])
    return incumbent
