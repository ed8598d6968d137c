"""CP-SAT on one model: deterministic, in one thread, stopped on request."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from threading import Event, Thread
from typing import TYPE_CHECKING

from ortools.sat.python import cp_model

from placer.solve.count.engine import cp_sat

if TYPE_CHECKING:
    from placer.solve.count.engine import Limits
    from placer.solve.exact.homes import Homes

ASK_AFTER = 0.1  # s


@dataclass(frozen=True, eq=False)
class Found:
    """What a search ended with.

    Attributes
    ----------
    solver : CpSolver
    has_placement : bool
    bound : float
        Of the objective, in its units.
    in_time : bool
        Whether neither the clock nor a request ended it.
    """

    solver: cp_model.CpSolver
    has_placement: bool
    bound: float
    in_time: bool


def search(homes: Homes, limits: Limits, stop: Callable[[], bool]) -> Found:
    """The best homes found within the limits, or until ``stop`` says so.

    All of CP-SAT's strategies, neighbourhoods among them, take turns in one thread, so
    the answer is the same every time unless the clock ends the search.
    """
    solver = cp_sat(limits)
    solver.parameters.interleave_search = True
    ended = Event()
    watch = Thread(target=_watch, args=(solver, ended, stop), daemon=True)
    watch.start()
    try:
        status = solver.solve(homes.model)
    finally:
        ended.set()
        watch.join()
    is_complete = status in (cp_model.OPTIMAL, cp_model.INFEASIBLE)
    return Found(
        solver,
        status in (cp_model.OPTIMAL, cp_model.FEASIBLE),
        -inf if status == cp_model.INFEASIBLE else solver.best_objective_bound,
        is_complete or solver.response_proto.deterministic_time >= limits.work,
    )


def _watch(solver: cp_model.CpSolver, ended: Event, stop: Callable[[], bool]) -> None:
    """End the search when asked to, again until it has heard."""
    while not ended.wait(ASK_AFTER):
        if stop():
            solver.stop_search()
