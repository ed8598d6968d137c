"""Which nodes one job or several get, out of those that are free."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from typing import cast

from placer.allocate.allocation import Allocation
from placer.allocate.grade import graded
from placer.allocate.offers import Offers
from placer.allocate.question import Question, demand_of
from placer.allocate.search import searched
from placer.allocate.shared import limits_of, use_of
from placer.api.allocation_inputs import mask_of, read_question
from placer.api.allocation_plans import allocation_of, grade_of
from placer.api.inputs import JOBS, JobLike, JobsLike, TopologyLike, read_inputs
from placer.api.options import (
    ObjectiveName,
    number_problems,
    objective_problems,
    seconds_of,
)
from placer.base.arguments import (
    NOTHING,
    NUMBER,
    TEXT,
    instance,
    mapping,
    takes,
)
from placer.base.arrays import BoolArray
from placer.base.errors import InputError, refuse
from placer.base.threads import awaited
from placer.formats.jobs.job_list import Listed, is_job_list, read_job_list
from placer.job.even import evenly
from placer.job.rules import Rules
from placer.placement.plan_file import PlanLike, plan_of
from placer.solve.run.budget import Budget
from placer.topology.model import Topology

_DEMAND = TEXT | mapping("a mapping of texts to numbers", NUMBER)


@takes(
    jobs=JOBS,
    rules=instance(Rules) | NOTHING,
    demand=_DEMAND | NOTHING,
)
@awaited()
def allocate(
    topology: TopologyLike,
    jobs: JobsLike,
    free: Sequence[str] | str | None = None,
    busy: Sequence[str] | str = (),
    keep: Sequence[PlanLike] = (),
    move: Sequence[PlanLike] = (),
    move_price: float | str = 0.0,
    weights: Mapping[str, float] | None = None,
    objective: ObjectiveName | None = None,
    require: Mapping[str, str] | None = None,
    even: Mapping[str, str] | None = None,
    rules: Rules | None = None,
    apart: str | None = None,
    tolerance: float = 0.0,
    demand: Mapping[str, float] | str | None = None,
    grade: Sequence[str] | str | None = None,
    requests: bool = False,
    time_limit: float | str = 60.0,
    seed: int = 0,
    stop: Callable[[], bool] = lambda: False,
    progress: Callable[[str, int], None] = lambda _job, _number: None,
) -> Allocation:
    """The nodes of every job, out of the free ones, with their placements.

    The weighted sum of the step times is the least that was found. Of steps that nobody
    can tell apart the one on the fewest leaves is taken, of allocations that cost the
    same on as many leaves the one that leaves the most useful rest.

    Parameters
    ----------
    topology : Topology, or what `read_topology` takes
        The whole machine.
    jobs : Job, or what `read_job` takes, or a file of several, or a list of such
        A list is one of jobs, not of sources of one job.
    free : sequence of str, or str, optional
        Free hosts, as names or as a host list; by default all that can be used.
    busy : sequence of str, or str
        Hosts that are not free.
    keep, move : sequence of Plan, Result, path or dict
        Jobs that run: those of ``keep`` stay on their nodes, those of ``move`` may move
        at the price of ``move_price``.
    move_price : float or str
        In the unit of the objective, for each job that moves.
    weights : mapping of str to float, optional
        What a job counts, by its name; others as their file says, or 1.
    objective, require, even, rules : as for `place`, for every job
    apart : str, optional
        Tier no domain of which two jobs may share.
    tolerance : float
        How much longer a step may be for a more useful rest: 0.01 for 1 %.
    demand : mapping of str to float, or str, optional
        Nodes of one domain that jobs to come want, how often: ``{"16": 4, "1": 1}``,
        ``"16=4,1"``, or ``"@FILE"`` with an item a line. What is left free is judged by
        it first; without it by whole domains, then by 16, 8, 4 and 1 nodes, 4, 3, 2
        and 1 times of ten.
    grade : sequence of str, or str, optional
        Hosts that the one job was granted: how good they are. They count as free.
    requests : bool
        Also find, for every job, the least strict request for nodes that guarantees its
        step time. It is in the plan and in what `emit` writes for schedulers.
    time_limit : float, s, or str
    seed : int
    stop : callable
        Asked now and then; once it is true the best so far is returned.
    progress : callable
        Told the name of a job before each search for it, and how many have begun.

    Returns
    -------
    Allocation
        Its jobs with hosts, times and plans, and what is left; `to_dict` is the data.

    Raises
    ------
    InputError
        If an argument is wrong, or the inputs do not fit each other.
    InfeasibleError
        If the free nodes cannot hold the jobs under their rules.

    Examples
    --------
    >>> found = placer.allocate("dgx-h100-4x8", "quickstart", busy="n1")
    >>> found.jobs[0].hosts
    'n[2-3]'
    """
    time_limit = seconds_of(time_limit)
    move_price = seconds_of(move_price, "move_price")
    numbers = {"time_limit": time_limit, "seed": seed}
    numbers |= {"move_price": move_price, "tolerance": tolerance}
    refuse([*number_problems(**numbers), *objective_problems(objective)])
    terms = {} if demand is None else {"demand": demand_of(demand)}
    listed = _listed(jobs, topology if isinstance(topology, Topology) else None)
    whole, _ = read_inputs(topology, listed[0][0])
    asked = read_question(
        whole,
        listed,
        weights or {},
        free,
        busy,
        [*map(plan_of, keep)],
        [*map(plan_of, move)],
        move_price,
        {**(require or {}), **evenly(even or {})},
        rules,
        tolerance=tolerance,
        objective=objective,
        seed=seed,
        **terms,
    )
    question = replace(asked.question, apart=_tier(whole, apart))
    granted = None if grade is None else _granted(question, grade)
    if granted is not None:
        question = replace(question, free=question.free | granted)
    always = [use_of(whole, one.inputs.job, one.placement) for one in asked.kept]
    kept = [(one.inputs.job, one.seats) for one in asked.kept]
    if kept or len(question.jobs) > 1:
        work = [wanted.job for wanted in question.jobs]
        question = replace(question, limits=limits_of(whole, work, kept))
    offers = Offers(question, Budget(time_limit, stop), progress, always)
    found = searched(offers)
    budget = offers.budget if requests else None
    result = allocation_of(asked._replace(question=question), found, always, budget)
    if granted is None:
        return result
    return replace(result, grade=grade_of(question, graded(offers, found, granted)))


def _granted(question: Question, hosts: Sequence[str] | str) -> BoolArray:
    """The granted nodes; shape (N,)."""
    if len(question.jobs) != 1:
        message = f"one job is graded at a time, {len(question.jobs)} are given"
        raise InputError(message, key="grade")
    return mask_of(question.machine, hosts, (), {"hosts": "grade"})


def _listed(jobs: JobsLike, machine: Topology | None) -> list[tuple[JobLike, float]]:
    """The jobs one by one, each with what it counts; files of several are read."""
    is_list = isinstance(jobs, Sequence) and not isinstance(jobs, str)
    found: list[tuple[JobLike, float]] = []
    for given in cast("list[JobLike | Listed]", jobs if is_list else [jobs]):
        if isinstance(given, Listed):
            found.append((given.job, given.weight))
        elif isinstance(given, str | PathLike) and is_job_list(given):
            listed = read_job_list(given, machine=machine)
            found += [(one.job, one.weight) for one in listed]
        else:
            found.append((given, 1.0))
    if not found:
        raise InputError("no job is given", key="jobs")
    return found


def _tier(machine: Topology, name: str | None) -> int | None:
    if name is None:
        return None
    try:
        return machine.tier_index(name)
    except KeyError:
        known = f"known: {', '.join(tier.name for tier in machine.tiers)}"
        message = f'the topology has no tier "{name}"'
        raise InputError(message, key="apart", hint=known) from None
