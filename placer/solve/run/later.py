"""Methods whose modules are loaded when they run: most searches need few of them.

And the questions about a problem that say whether they do.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from placer.job.even import is_even

if TYPE_CHECKING:
    from placer.solve.problem.compiled import Problem
    from placer.solve.run.budget import Budget
    from placer.solve.run.incumbent import Incumbent

Method = Callable[["Problem", "Incumbent", "Budget"], None]


def has_own_traffic(problem: Problem) -> bool:
    """Whether the job has groups or traffic of its own, or roles."""
    job = problem.job
    return bool(job.traffic or job.roles or job.groups)


def is_of_hops(problem: Problem) -> bool:
    """Whether the goal is the hop cost."""
    return problem.goal.name == "hop-cost"


def is_in_parts(problem: Problem) -> bool:
    """Whether groups must lie in equal parts."""
    return any(map(is_even, problem.job.require))


def _always(_problem: Problem) -> bool:
    return True


def later(
    module: str, is_for: Callable[[Problem], bool] = _always, name: str = ""
) -> Callable[..., Any]:
    """The method of a module of the solver, by default the one called as the module.

    ``module``: below `placer.solve`. ``is_for``: whether it may do anything for a
    problem; else the module is not loaded, and nothing is returned.
    """
    name = name or module.rpartition(".")[2]

    def method(problem: Problem, *others: Any) -> Any:
        if not is_for(problem):
            return None
        return getattr(import_module(method.__module__), name)(problem, *others)

    method.__name__, method.__module__ = name, f"placer.solve.{module}"
    return method
