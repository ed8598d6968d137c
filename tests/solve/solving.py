"""The solver as tests ask it: a machine, a job, and how long."""

from placer import testing
from placer.solve import search
from placer.solve.construct.fills import starts
from placer.solve.problem.compiled import Problem
from placer.solve.run.budget import Budget
from placer.solve.run.incumbent import Incumbent


def solve(
    topology,
    job,
    *,
    objective=None,
    seed=0,
    time_limit=60.0,
    progress=None,
    stop=lambda: False,
):
    """The best placement found in the time, s, and a lower bound."""
    problem = Problem.of(topology, job, objective, seed)
    return search.solve(problem, Budget(time_limit, stop), progress)


def known(problem, start=None, budget=None):
    """The incumbent of a search that knows one placement, or the usual orders."""
    incumbent = Incumbent(problem, budget or Budget(60.0))
    incumbent.offer_all(starts(problem) if start is None else [("start", start)])
    return incumbent


def alone(method, problem):
    """The incumbent of a search that ran one method, and knows nothing else."""
    incumbent = Incumbent(problem, Budget(60.0))
    method(problem, incumbent, incumbent.budget)
    return incumbent


def own_job(ranks, launcher="free", **keys):
    """A job of so many ranks with groups or traffic of the user's own."""
    return testing.job("own", launcher=launcher, dp=ranks, **keys)
