"""Which nodes one job or several get, out of those that are free."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from placer.allocation.allocation import Allocation, JobNodes
from placer.allocation.left import left
from placer.api.checked_plan import OBJECTIVES, checked_plan
from placer.api.inputs import inputs_of_plan, read_inputs
from placer.api.options import limit_problems
from placer.arguments import (
    CALL,
    FLAG,
    HOSTS,
    INTEGER,
    NOTHING,
    NUMBER,
    TEXT,
    TEXT_BY_NAME,
    instance,
    mapping,
    sequence,
    takes,
)
from placer.cost.step import StepModel
from placer.errors import InputError, Problem, refuse
from placer.hostlist import compress
from placer.job.rules import Rules
from placer.placement.build import placement_of_plan
from placer.placement.inputs import Inputs
from placer.placement.memory_need import check_memory
from placer.placement.plan import Plan
from placer.report.grade_text import grade_text
from placer.report.verdict import verdict
from placer.solve.run.budget import Budget
from placer.solve.run.solution import Solution
from placer.topology.allocation import allocate as selected

if TYPE_CHECKING:
    import numpy.typing as npt

    from placer.allocation.grade import Graded
    from placer.allocation.offers import Offer
    from placer.allocation.question import Question, Wanted
    from placer.allocation.search import Found
    from placer.allocation.shared import Use
    from placer.api.inputs import JobLike, TopologyLike
    from placer.placement.placement import Placement
    from placer.topology.model import Topology

    BoolArray = npt.NDArray[np.bool_]

_PLANS = sequence("a list of plans", instance(Plan))
_WEIGHTS = mapping("a mapping of names to numbers", NUMBER) | NOTHING


class _Kept(NamedTuple):
    """A plan that is in use: its inputs on the machine, and where it lies."""

    name: str
    inputs: Inputs
    plan: Plan
    placement: Placement
    nodes: BoolArray


class _Asked(NamedTuple):
    """All inputs, read."""

    whole: Topology
    inputs: list[Inputs]
    question: Question
    kept: list[_Kept]


@takes(
    free=HOSTS | NOTHING,
    busy=HOSTS,
    keep=_PLANS,
    move=_PLANS,
    move_price=NUMBER,
    weights=_WEIGHTS,
    objective=TEXT | NOTHING,
    require=TEXT_BY_NAME | NOTHING,
    rules=instance(Rules) | NOTHING,
    apart=TEXT | NOTHING,
    tolerance=NUMBER,
    grade=HOSTS | NOTHING,
    requests=FLAG,
    time_limit=NUMBER,
    seed=INTEGER,
    stop=CALL,
)
def allocate(
    topology: TopologyLike,
    jobs: JobLike | Sequence[JobLike],
    free: Sequence[str] | str | None = None,
    busy: Sequence[str] | str = (),
    keep: Sequence[Plan] = (),
    move: Sequence[Plan] = (),
    move_price: float = 0.0,
    weights: Mapping[str, float] | None = None,
    objective: str | None = None,
    require: Mapping[str, str] | None = None,
    rules: Rules | None = None,
    apart: str | None = None,
    tolerance: float = 0.0,
    grade: Sequence[str] | str | None = None,
    requests: bool = False,
    time_limit: float = 60.0,
    seed: int = 0,
    stop: Callable[[], bool] = lambda: False,
) -> Allocation:
    """The nodes of every job, out of the free ones, with their placements.

    The weighted sum of the step times is the least that was found. Of allocations that
    cost the same, the one that leaves the most useful rest is taken.

    Parameters
    ----------
    topology : Topology, or what `read_topology` takes
        The whole machine.
    jobs : Job, or what `read_job` takes, or a list of such
        A list is one of jobs, not of sources of one job.
    free : sequence of str, or str, optional
        Free hosts, as names or as a host list; by default all that can be used.
    busy : sequence of str, or str
        Hosts that are not free.
    keep, move : sequence of Plan
        Jobs that run: those of ``keep`` stay on their nodes, those of ``move`` may move
        at the price of ``move_price``.
    move_price : float
        In the unit of the objective, for each job that moves.
    weights : mapping of str to float, optional
        What a job counts, by its name; 1 for others.
    objective, require, rules : as for `place`, for every job
    apart : str, optional
        Tier no domain of which two jobs may share.
    tolerance : float
        How much longer a step may be for a more useful rest: 0.01 for 1 %.
    grade : sequence of str, or str, optional
        Hosts that the one job was granted: how good they are. They count as free.
    requests : bool
        Also find, for every job, the least strict request for nodes that guarantees its
        step time. It is in the plan and in what `emit` writes for schedulers.
    time_limit : float, s
    seed : int
    stop : callable
        Asked now and then; once it is true the best so far is returned.

    Raises
    ------
    InputError
        If an argument is wrong, or the inputs do not fit each other.
    InfeasibleError
        If the free nodes cannot hold the jobs under their rules.
    """
    refuse([*limit_problems(time_limit, seed), *_number_problems(locals())])
    whole, _ = read_inputs(topology, _listed(jobs)[0])
    # The solver takes half a second to load, which wrong inputs must not pay.
    from placer.allocation.grade import graded
    from placer.allocation.offers import Offers
    from placer.allocation.search import searched
    from placer.allocation.shared import use_of

    asked = _asked(
        whole, _listed(jobs), free, busy, keep, move, move_price, require, rules
    )
    question = replace(
        asked.question,
        jobs=_weighted(asked.question, weights or {}),
        apart=_tier(whole, apart),
        tolerance=tolerance,
        objective=objective,
        seed=seed,
    )
    granted = None if grade is None else _granted(question, grade)
    if granted is not None:
        question = replace(question, free=question.free | granted)
    always = [use_of(whole, one.inputs.job, one.placement) for one in asked.kept]
    offers = Offers(question, Budget(time_limit, stop))
    found = searched(offers, always)
    budget = offers.budget if requests else None
    result = _result(asked._replace(question=question), found, always, budget)
    if granted is None:
        return result
    return replace(result, grade=_grade(question, graded(offers, found, granted)))


def _granted(question: Question, hosts: Sequence[str] | str) -> BoolArray:
    """The granted nodes; shape (N,)."""
    if len(question.jobs) != 1:
        message = f"one job is graded at a time, {len(question.jobs)} are given"
        raise InputError([Problem(message, key="grade")])
    return _mask(question.machine, hosts, (), {"hosts": "grade"})


def _grade(question: Question, found: Graded) -> dict[str, Any]:
    """What is said of granted nodes, ready for JSON."""
    from placer.allocation.grade import counts_by_domain

    objective = found.granted.solution.objective
    tier, _ = _by_domain(question.machine, found.granted.nodes)

    def told(offer: Offer) -> dict[str, Any]:
        names = question.machine.node_names
        hosts = [names[node] for node in np.flatnonzero(offer.nodes)]
        index = question.machine.tier_index(tier) if tier else 0
        return {
            "hosts": compress(hosts),
            "value": offer.solution.value,
            "domains": counts_by_domain(question, index, offer.nodes) if tier else {},
        }

    grade = {
        "objective": objective,
        "tier": tier,
        **told(found.granted),
        "best_free": told(found.free),
        "best": told(found.imaginable),
        "stranded_nodes": found.stranded,
    }
    return {**grade, "text": grade_text(grade)}


def _number_problems(given: Mapping[str, object]) -> Iterator[Problem]:
    for key in ("move_price", "tolerance"):
        number = given[key]
        if not (isinstance(number, int | float) and 0 <= number < float("inf")):
            yield Problem(f"expected a number of at least 0, got {number}", key=key)
    if given["objective"] not in (None, *OBJECTIVES):
        hint = f"known: {', '.join(OBJECTIVES)}"
        message = f'there is no objective "{given["objective"]}"'
        yield Problem(message, key="objective", hint=hint)


def _listed(jobs: JobLike | Sequence[JobLike]) -> list[JobLike]:
    is_list = isinstance(jobs, Sequence) and not isinstance(jobs, str)
    listed = list(jobs) if is_list else [jobs]  # type: ignore[arg-type]
    if not listed:
        raise InputError([Problem("no job is given", key="jobs")])
    return listed  # type: ignore[return-value]


def _tier(machine: Topology, name: str | None) -> int | None:
    if name is None:
        return None
    try:
        return machine.tier_index(name)
    except KeyError:
        known = f"known: {', '.join(tier.name for tier in machine.tiers)}"
        message = f'the topology has no tier "{name}"'
        raise InputError([Problem(message, key="apart", hint=known)]) from None


def _weighted(question: Question, weights: Mapping[str, float]) -> tuple[Wanted, ...]:
    names = [wanted.name for wanted in question.jobs]
    problems = [
        Problem(f'no job is called "{name}"', key="weights", hint=", ".join(names))
        for name in weights
        if name not in names
    ]
    problems += [
        Problem(f"{name}: expected a number above 0, got {weight}", key="weights")
        for name, weight in weights.items()
        if not 0 < weight < float("inf")
    ]
    refuse(problems)
    return tuple(
        replace(wanted, weight=float(weights.get(wanted.name, 1.0)))
        for wanted in question.jobs
    )


def _asked(
    whole: Topology,
    jobs: Sequence[JobLike],
    free: Sequence[str] | str | None,
    busy: Sequence[str] | str,
    keep: Sequence[Plan],
    move: Sequence[Plan],
    move_price: float,
    require: Mapping[str, str] | None,
    rules: Rules | None,
) -> _Asked:
    """The inputs of all jobs, and the question they make."""
    from placer.allocation.question import Question, Running, Wanted

    is_free = _free(whole, free, busy)
    kept, movers = ([_kept(whole, plan) for plan in plans] for plans in (keep, move))
    _refuse_overlaps([*kept, *movers])
    for one in kept:
        is_free &= ~one.nodes
    for one in movers:
        is_free |= one.nodes
    hosts = tuple(whole.node_names[node] for node in np.flatnonzero(is_free))
    if not hosts:
        raise InputError([Problem("no host is free", key="free")])
    inputs = [
        Inputs.given(whole, work, hosts, (), require, rules)
        for _, work in (read_inputs(whole, job) for job in jobs)
    ]
    inputs += [replace(one.inputs, hosts=hosts, exclude=()) for one in movers]
    running: list[Running | None] = [None] * len(jobs)
    running += [Running(_solution(whole, one), one.nodes, move_price) for one in movers]
    wanted = []
    names = _names([one.job.name for one in inputs])
    for name, given, now in zip(names, inputs, running, strict=True):
        job = given.ruled(given.job)
        check_memory(given.machine, job)
        wanted.append(Wanted(name, job, running=now))
    return _Asked(whole, inputs, Question(whole, is_free, tuple(wanted)), kept)


def _free(
    whole: Topology, free: Sequence[str] | str | None, busy: Sequence[str] | str
) -> BoolArray:
    """Which nodes are free; shape (N,)."""
    return _mask(whole, free, busy, {"hosts": "free", "exclude": "busy"})


def _mask(
    whole: Topology,
    hosts: Sequence[str] | str | None,
    exclude: Sequence[str] | str,
    keys: Mapping[str, str],
) -> BoolArray:
    """Which nodes are among hosts; problems name the arguments as ``keys`` says."""
    try:
        names = set(selected(whole, hosts, exclude).node_names)
    except InputError as error:
        raise InputError(
            replace(p, key=keys.get(p.key, p.key)) for p in error.problems
        ) from None
    return np.array([name in names for name in whole.node_names])


def _kept(whole: Topology, plan: Plan) -> _Kept:
    """A plan on the machine."""
    inputs = inputs_of_plan(plan, whole)
    placement = placement_of_plan(plan, whole)
    held = {*plan.nodes, *plan.rules.get("spare_nodes", ())}
    nodes = np.array([name in held for name in whole.node_names])
    return _Kept(inputs.job.name, inputs, plan, placement, nodes)


def _refuse_overlaps(running: Sequence[_Kept]) -> None:
    for i, one in enumerate(running):
        for other in running[:i]:
            both = np.flatnonzero(one.nodes & other.nodes)
            if len(both):
                host = one.inputs.topology.node_names[both[0]]
                message = f"{other.name} and {one.name} both have {host}"
                raise InputError([Problem(message, key="keep")])


def _solution(whole: Topology, running: _Kept) -> Solution:
    """The placement of a job that runs, as if a search had found it."""
    from placer.solve.problem.compiled import Problem as Compiled

    goal = Compiled.of(whole, running.inputs.job).goal
    value = float(goal.value(running.placement.gpu_of_rank))
    return Solution(
        running.placement, goal.name, value, 0.0, "none", "kept", "searched", 0.0, True
    )


def _names(names: Sequence[str]) -> list[str]:
    """The names of the jobs, numbered where several are called the same."""
    found: list[str] = []
    for name in names:
        number, own = 1, name
        while own in found:
            number += 1
            own = f"{name}-{number}"
        found.append(own)
    return found


def _result(
    asked: _Asked, found: Found, always: Sequence[Use], budget: Budget | None
) -> Allocation:
    """The plans of what was found, checked, and what is left.

    With a budget they say which request guarantees them.
    """
    from placer.allocation.shared import left_by, use_of

    question, together = asked.question, found.together
    jobs = tuple(
        _job_nodes(asked, found, index, budget) for index in range(len(question.jobs))
    )
    uses = [use_of(asked.whole, o.job, o.solution.placement) for o in together.offers]
    kept = tuple(
        _kept_nodes(one, left_by([*uses, *always[:i], *always[i + 1 :]]), asked.whole)
        for i, one in enumerate(asked.kept)
    )
    return Allocation(
        jobs,
        kept,
        left(asked.whole, question.free & ~together.used),
        together.cost,
        found.least,
        found.argument,
        "optimal" if found.is_optimal else "feasible",
    )


def _job_nodes(
    asked: _Asked, found: Found, index: int, budget: Budget | None
) -> JobNodes:
    """The row and the plan of one job."""
    question = asked.question
    offer, alone = found.together.offers[index], found.alone[index]
    names = question.machine.node_names
    hosts = tuple(names[node] for node in np.flatnonzero(offer.nodes))
    plan = _plan(asked.inputs[index], offer, alone, hosts, question.seed)
    value = found.together.values[index]
    if budget is not None:
        plan = replace(plan, request=_request(question, offer, plan, budget))
    step = plan.score["step_time_s"]
    is_time = offer.solution.objective == "time"
    ideal = StepModel(asked.whole, alone.job).step(alone.solution.placement.gpu_of_rank)
    return JobNodes(
        question.jobs[index].name,
        compress(hosts),
        plan,
        *_by_domain(asked.whole, offer.nodes),
        value if is_time else step,
        ideal.step_time_s,
        value,
        alone.solution.value,
        min(alone.solution.lower_bound, value),
        question.jobs[index].weight,
        offer.moved,
    )


def _request(
    question: Question, offer: Offer, plan: Plan, budget: Budget
) -> dict[str, Any]:
    """The nodes that are not asked for, and the least strict request, as plain data."""
    from placer.allocation.least_strict import least_strict

    machine = question.machine
    others = np.flatnonzero(question.free & ~offer.nodes)
    request = {"others": compress([machine.node_names[node] for node in others])}
    found = least_strict(question, offer, plan.bound["value"], budget)
    if found is None:
        return request
    slices, value = found
    outermost = slices.within == len(machine.tiers) - 1
    return {
        **request,
        "tier": machine.tiers[slices.tier].name,
        "slice": slices.size,
        "within": "" if outermost else machine.tiers[slices.within].name,
        "value": value,
    }


def _plan(
    inputs: Inputs, offer: Offer, alone: Offer, hosts: tuple[str, ...], seed: int
) -> Plan:
    """The plan of a job on its nodes alone, with the bound over all free nodes."""
    inputs = replace(inputs, hosts=hosts, exclude=())
    machine = inputs.machine
    node_of = {name: node for node, name in enumerate(machine.node_names)}
    whole = inputs.topology
    gpus = offer.solution.placement.gpu_of_rank
    node = whole.node_of_gpu[gpus]
    local = gpus - whole.first_gpu_of_node[node]
    own = np.array([node_of.get(name, -1) for name in whole.node_names])[node]
    placement = replace(
        offer.solution.placement, gpu_of_rank=machine.first_gpu_of_node[own] + local
    )
    solution = replace(
        offer.solution,
        placement=placement,
        lower_bound=alone.solution.lower_bound,
        argument=alone.solution.argument,
    )
    plan = checked_plan(inputs, machine, offer.job, solution, seed, {})
    return replace(plan, verdict=verdict(plan))


def _kept_nodes(one: _Kept, share: Use | None, whole: Topology) -> JobNodes:
    """A job that stays, while the others run."""
    machine = whole if share is None else replace(whole, uplink_share=share)
    job, gpus = one.inputs.job, one.placement.gpu_of_rank
    step = StepModel(machine, job).step(gpus).step_time_s
    alone = StepModel(whole, job).step(gpus).step_time_s
    hosts = compress(tuple(whole.node_names[n] for n in np.flatnonzero(one.nodes)))
    where = _by_domain(whole, one.nodes)
    return JobNodes(one.name, hosts, one.plan, *where, step, alone, step, alone, 0.0)


def _by_domain(machine: Topology, nodes: BoolArray) -> tuple[str, dict[str, int]]:
    """The tier in whose domains nodes lie, and how many each of them gives.

    It is the largest NVLink tier where that holds more than a node, else the first
    above the node; none where that is the whole machine.
    """
    tier = max(machine.scale_up_tier, 1)
    if tier >= len(machine.tiers) - 1:
        return "", {}
    counts = np.bincount(machine.domain_of_node[tier], nodes).astype(np.int64)
    names = machine.domain_names[tier]
    found = {names[d]: int(counts[d]) for d in np.flatnonzero(counts).tolist()}
    return machine.tiers[tier].name, found
