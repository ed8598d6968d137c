"""The best placement of a job on a machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from placer.api.checked_plan import checked_plan
from placer.api.inputs import JobLike, TopologyLike, read_inputs
from placer.api.options import (
    ObjectiveName,
    effort_problems,
    number_problems,
    objective_problems,
    search_seconds,
    seconds_of,
)
from placer.api.result import Result
from placer.base.arguments import INTEGER, NOTHING, TEXT, instance, takes
from placer.base.errors import InputError, refuse
from placer.base.rounding import EXACT
from placer.base.threads import awaited, granted_cores
from placer.cost.step import StepModel
from placer.explain.difference import Saving, links_are_assumed, saving
from placer.job.even import evenly
from placer.job.model import Job
from placer.job.orders import in_order
from placer.job.rules import Rules
from placer.placement.baselines import baseline, order_in_use
from placer.placement.inputs import Inputs
from placer.placement.memory_need import check_memory
from placer.placement.placement import Placement
from placer.placement.plan_file import PlanLike, plan_of
from placer.placement.previous import Previous, PreviousPlan
from placer.solve.problem.compiled import Problem as PlacementProblem
from placer.solve.problem.params import MEASURABLE, Effort, params_of
from placer.solve.run.budget import Budget, InTime, LeftBehind
from placer.solve.run.solution import Progress, Solution, improvement_of
from placer.topology.model import Topology


class _Asked(NamedTuple):
    """What a search is asked for."""

    machine: Topology
    job: Job
    objective: str | None
    seed: int
    effort: Effort
    previous: PreviousPlan | None


class _Found(NamedTuple):
    """What a search found: the model of its rank order, and what is answered."""

    model: StepModel
    solution: Solution
    advice: Mapping[str, Any] | None
    saved: Saving | None
    best: Placement


@takes(rules=instance(Rules) | NOTHING, effort=TEXT | INTEGER)
@awaited()
def place(
    topology: TopologyLike,
    job: JobLike,
    hosts: Sequence[str] | str | None = None,
    exclude: Sequence[str] | str = (),
    objective: ObjectiveName | None = None,
    require: Mapping[str, str] | None = None,
    even: Mapping[str, str] | None = None,
    rules: Rules | None = None,
    previous: PlanLike | None = None,
    time_limit: float | str = 60.0,
    seed: int = 0,
    effort: Effort = MEASURABLE,
    workers: int | None = None,
    progress: Progress | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> Result:
    """The best placement found, checked, with its score and lower bound.

    Parameters
    ----------
    topology : Topology, or what `read_topology` takes
    job : Job, or what `read_job` takes
    hosts : sequence of str, or str, optional
        The allocation in launch order, as names or as a host list such as ``n[01-16]``;
        every usable node when None.
    exclude : sequence of str, or str
        Hosts not to use.
    objective : str, optional
        ``time`` (seconds a step) or ``hop-cost``; by default time, and hop cost for a
        job that has only weights.
    require : mapping of str to str, optional
        Hard rules beside those of the job: axis or group -> tier.
    even : mapping of str to str, optional
        Axis or group -> tier: every group lies in equal parts of consecutive ranks, one
        in each domain of the tier that it touches.
    rules : Rules, optional
        Pins, hosts to avoid, replicas a domain and spares beside those of the job.
    previous : Plan, Result, path or dict, optional
        Of equally good placements, the one that leaves the most ranks where this has
        them.
    time_limit : float, s, or str
    seed : int
    effort : str or int
        When to stop without a proof before the time is over: ``quick`` after the
        constructions; ``normal`` once local search finds hardly any more; ``full``
        never; a number after so many generations of local search. ``measurable`` is
        normal, but ends where steps of a run differ by as much as is left to gain, and
        keeps the hosts in the given order, or the previous plan, where that cannot be
        told from the best.
    workers : int, optional
        Threads that search at a time, by default one for each core that is granted.
        The result does not depend on it.
    progress : callable, optional
        Called with an ``Improvement`` at every better placement.
    stop : callable
        Asked now and then; once it is true the best placement so far is returned. A
        step that does not end soon is left behind in a daemon thread.

    Returns
    -------
    Result
        The plan with its score, bound and status; `summary` is what the command prints.

    Raises
    ------
    InputError
        If an argument is of a wrong type; hosts, rules or objective do not fit the
        machine or the job; or they need more memory than there is.
    InfeasibleError
        If no placement satisfies the hard rules.
    StoppedError
        If ``stop`` was true before there was any placement.

    Examples
    --------
    >>> found = placer.place("dgx-h100-4x8", "quickstart", time_limit="5s")
    >>> found.plan.world_size
    16
    """
    time_limit = seconds_of(time_limit)
    refuse(
        [
            *objective_problems(objective),
            *number_problems(workers=workers, time_limit=time_limit, seed=seed),
            *effort_problems(effort),
        ]
    )
    whole, work = read_inputs(topology, job)
    require = {**(require or {}), **evenly(even or {})}
    inputs = Inputs.given(whole, work, hosts, exclude, require, rules)
    machine, ruled_job = inputs.machine, inputs.ruled
    if ruled_job.parallelism.auto_order and ruled_job.names_ranks:
        message = "the order cannot be chosen: pins or groups name ranks by number"
        hint = "give the order these numbers are of"
        raise InputError(message, key="order", hint=hint)
    check_memory(machine, ruled_job)
    earlier = None if previous is None else PreviousPlan(plan_of(previous), machine)
    asked = _Asked(machine, ruled_job, objective, seed, effort, earlier)
    seconds = search_seconds(time_limit, ruled_job)
    budget = Budget(seconds, stop, workers=workers or granted_cores())
    model, solution, advice, saved, best = _search(asked, budget, progress)
    plan = checked_plan(inputs, model, solution, seed, advice, best, saved=saved)
    if earlier is not None:
        seats = earlier.seats(model.job)
        plan = replace(plan, previous=seats.summary(solution.placement.gpu_of_rank))
    return Result(plan)


def _search(asked: _Asked, budget: Budget, progress: Progress | None) -> _Found:
    """The best placement found in time, or the one in use, and advice."""

    def search(tell: Progress, within: Budget) -> _Found:
        # The solver takes half a second to load, which scoring and reading must not
        # pay. It is loaded in this thread, where no signal can break it off in the
        # middle: an extension module that is interrupted cannot be imported.
        from placer.solve.advice import advise
        from placer.solve.orders import solve_orders

        chosen, solution = solve_orders(_problem(asked), within, tell, asked.previous)
        tell(improvement_of(solution, chosen.job.parallelism.order))
        with task.concluding():
            best = solution.placement
            solution, saved = _answer(asked, chosen, solution)
            answer = _Found(_model(chosen), solution, None, saved, best)
            answers.append(answer)
        return answer._replace(advice=advise(chosen, solution, within))

    answers: list[_Found] = []  # without advice, which is not waited for
    task = InTime(search, budget, progress)
    found = task.run()
    if not isinstance(found, LeftBehind):
        return found
    if answers:
        return answers[0]
    budget.pulse.phase = "beside the order in use"
    problem = _problem(asked, in_order(asked.job, found.order))
    solution, saved = _answer(asked, problem, found.solution)
    return _Found(_model(problem), solution, None, saved, found.solution.placement)


def _problem(asked: _Asked, job: Job | None = None) -> PlacementProblem:
    """The problem, of the job in an order of its own."""
    one = job or asked.job
    problem = PlacementProblem.of(asked.machine, one, asked.objective, asked.seed)
    return problem.with_params(**params_of(asked.effort, problem.goal.name))


def _model(problem: PlacementProblem) -> StepModel:
    """What a step costs: as the search knows it, where it asked for time."""
    if problem.goal.name == "time":
        return problem.model
    return StepModel(problem.machine, problem.job)


def _answer(
    asked: _Asked, problem: PlacementProblem, found: Solution
) -> tuple[Solution, Saving | None]:
    """What was found, or what is in use where nobody could measure the difference.

    In use is the previous plan, else the hosts in the given order. Of equally good
    placements the one is taken that leaves the most ranks there. On the hop cost, which
    nothing disturbs, only what is equal is kept. Beside it what the best that was found
    saves of a step in the given order.
    """
    if asked.effort != MEASURABLE:
        return found, None
    from placer.solve.rearrange.settle import settled

    job, previous = problem.job, asked.previous
    if previous is None:
        name: str = order_in_use(job)
        used = baseline(name, asked.machine, job, problem.seed).gpu_of_rank
    else:
        name, used = "previous plan", previous.seats(job).gpu_of_rank
    if (used < 0).any() or np.array_equal(used, found.placement.gpu_of_rank):
        return found, None
    if previous is None and job.world_size <= problem.params.most_ranks:
        domain = problem.machine.domain_of_gpu[:, used]
        seats = Previous(used, domain, (), np.zeros(len(used), dtype=bool))
        found = settled(problem, found, seats)
    saved = None
    value = float(problem.goal.value(used))
    is_better = value > found.value * (1 + EXACT)
    if problem.goal.name == "time":
        after = found.placement.gpu_of_rank
        thin = links_are_assumed(asked.machine)
        saved = saving(problem.model, used, after, problem.seed, thin=thin)
        is_better = saved.is_measurable
    avoided = problem.avoided(found.placement.gpu_of_rank)
    is_legal = problem.allows(used) and problem.avoided(used) <= avoided
    if not is_better and is_legal:
        found = found.instead(Placement(used), value, f"{name}, kept")
    return found, saved if previous is None else None
