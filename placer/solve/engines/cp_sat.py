"""CP-SAT as every model here is solved: in one thread, within a limit of work."""

from __future__ import annotations

from math import inf

from ortools.sat.python import cp_model


def solver(work: float, seed: int = 1, seconds: float = inf) -> cp_model.CpSolver:
    """A solver that answers the same every time unless the clock ends it.

    It leaves signals alone: CP-SAT's own handler of SIGINT would take the place of the
    caller's, and leave none behind.

    Parameters
    ----------
    work : float
        At most, in CP-SAT's deterministic seconds: the same on every machine.
    seed : int
        By default CP-SAT's own.
    seconds : float, s
        At most, by the clock.
    """
    made = cp_model.CpSolver()
    made.parameters.num_workers = 1
    made.parameters.random_seed = seed
    made.parameters.max_deterministic_time = work
    made.parameters.max_time_in_seconds = max(seconds, 0.0)
    made.parameters.catch_sigint_signal = False
    return made
