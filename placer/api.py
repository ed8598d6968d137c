"""The library calls that bring inputs, search, cost and checker together."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from time import monotonic
from typing import TYPE_CHECKING, Any

import numpy as np

from placer import __version__
from placer.cost.score import COSTS, costs_with, score_with
from placer.cost.step import StepModel
from placer.errors import InputError, Problem
from placer.job.orders import as_planned, in_order
from placer.job.rules import Rules
from placer.placement.baselines import BASELINES, baseline
from placer.placement.build import build_plan, placement_of_plan
from placer.placement.check import violations
from placer.placement.host_rules import with_rules
from placer.placement.memory_need import check_memory
from placer.placement.plan import Plan
from placer.placement.previous import previous_seats
from placer.placement.requirements import with_requirements
from placer.report.look import PLAIN, Look
from placer.report.summary import summarise
from placer.solve.solution import EXACT, Progress, Solution, incumbent_of
from placer.topology.allocation import allocate, parse_hosts

if TYPE_CHECKING:
    from placer.job.model import Job
    from placer.placement.placement import Placement
    from placer.topology.model import Topology

# Ranks up to which the baselines are priced although the user wants to leave.
PRICED_IN_HASTE = 131_072

OBJECTIVES = {"time": "step_time_s", "hop-cost": "hop_cost"}


class BrokenPromiseError(RuntimeError):
    """The search returned what it must not: a fault of placer, not of the input."""


@dataclass(frozen=True, eq=False)
class Result:
    """A checked plan and what is proved about it.

    Attributes
    ----------
    plan : Plan
    """

    plan: Plan

    @property
    def score(self) -> Mapping[str, Any]:
        """Score of the plan (docs/formats.md, "Score")."""
        return self.plan.score

    @property
    def bound(self) -> Mapping[str, Any]:
        """Objective, value, lower bound, gap, status and the argument of the proof."""
        return self.plan.bound

    @property
    def status(self) -> str:
        """``optimal`` or ``feasible``."""
        return str(self.plan.bound["status"])

    @property
    def stop_reason(self) -> str:
        """``proved``, ``searched`` (all was tried), ``time-limit``, ``interrupted``."""
        return str(self.plan.solver["stop_reason"])

    def summary(self, look: Look = PLAIN) -> str:
        """The result as text for people, plain and at most 80 columns wide."""
        return summarise(self.plan, look)


def place(
    topology: Topology,
    job: Job,
    hosts: Sequence[str] | str | None = None,
    exclude: Sequence[str] | str = (),
    objective: str | None = None,
    require: Mapping[str, str] | None = None,
    rules: Rules | None = None,
    previous: Plan | None = None,
    time_limit: float = 60.0,
    seed: int = 0,
    workers: int | None = None,
    progress: Progress | None = None,
    stop: Callable[[], bool] | None = None,
) -> Result:
    """The best placement found, checked, with its score and lower bound.

    Parameters
    ----------
    topology : Topology
    job : Job
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
    rules : Rules, optional
        Pins, hosts to avoid, replicas a domain and spares beside those of the job.
    previous : Plan, optional
        Of equally good placements, the one that leaves the most ranks where this has
        them.
    time_limit : float, s
    seed : int
    workers : int, optional
        Threads at most. The search now uses one, and its plan never depends on this.
    progress : callable, optional
        Called with an ``Incumbent`` at every better placement.
    stop : callable, optional
        Asked now and then; once it is true the best placement so far is returned. A
        step that does not end soon is left behind in a daemon thread.

    Raises
    ------
    InputError
        If hosts, rules or objective do not fit the machine or the job, or they need
        more memory than there is.
    InfeasibleError
        If no placement satisfies the hard rules.
    StoppedError
        If ``stop`` was true before there was any placement.
    """
    _check_options(objective, time_limit, seed, workers)
    machine = allocate(topology, _host_names(hosts), _host_names(exclude) or ())
    ruled_job = _ruled(job, machine, topology, require or {}, rules or Rules())
    check_memory(machine, ruled_job)
    chosen_job, solution, advice = _search(
        machine, ruled_job, objective, previous, seed, time_limit, progress, stop
    )
    plan = checked_plan(machine, chosen_job, solution, seed, require or {}, advice)
    if previous is not None:
        seats = previous_seats(previous, machine, chosen_job)
        plan = replace(plan, previous=seats.summary(solution.placement.gpu_of_rank))
    return Result(plan)


def _ruled(
    job: Job,
    machine: Topology,
    topology: Topology,
    require: Mapping[str, str],
    rules: Rules,
) -> Job:
    """The job under its own rules and those asked for besides."""
    ruled = with_requirements(job, machine, require) if require else job
    ruled = with_rules(ruled, machine, topology, rules)
    if ruled.parallelism.auto_order and ruled.names_ranks:
        message = "the order cannot be chosen: pins or groups name ranks by number"
        raise _input_error(message, "order", "give the order these numbers are of")
    return ruled


def _search(
    machine: Topology,
    job: Job,
    objective: str | None,
    previous: Plan | None,
    seed: int,
    time_limit: float,
    progress: Progress | None,
    stop: Callable[[], bool] | None,
) -> tuple[Job, Solution, Mapping[str, Any] | None]:
    """The job in its rank order, the best placement found in time, and advice."""
    # The solver takes half a second to load, which scoring and reading must not pay.
    from placer.solve.in_time import InTime, LeftBehind
    from placer.solve.launch.advice import advise
    from placer.solve.launch.orders import solve_orders

    end = monotonic() + time_limit

    def search(
        tell: Progress, over: Callable[[], bool]
    ) -> tuple[Job, Solution, Mapping[str, Any] | None]:
        chosen, solution = solve_orders(
            machine,
            job,
            objective=objective,
            previous=previous,
            seed=seed,
            time_limit=time_limit,
            progress=tell,
            stop=over,
        )
        tell(incumbent_of(solution, chosen.parallelism.order))
        advice = advise(
            machine,
            chosen,
            solution,
            seed=seed,
            over=lambda: over() or monotonic() > end,
        )
        return chosen, solution, advice

    found = InTime(search, time_limit, stop or _never, progress).run()
    if isinstance(found, LeftBehind):
        return in_order(job, found.order), found.solution, None
    return found


def score(topology: Topology, job: Job, placement: Placement | Plan) -> dict[str, Any]:
    """The score of a placement, or of a plan's, without solving.

    Raises
    ------
    InputError
        If the placement is not one of this job on this machine, or scoring it needs
        more memory than there is.
    """
    if isinstance(placement, Plan):
        job = as_planned(job, placement.job.get("order", ""))
        own = "-".join(job.parallelism.order)
        order = placement.job.get("order", own)
        if order != own:
            raise InputError(f"the plan numbers ranks by {order}, the job by {own}")
        placement = placement_of_plan(placement, topology)
    if placement.world_size != job.world_size:
        raise InputError(
            f"the placement has {placement.world_size:,} ranks, "
            f"the job {job.world_size:,}"
        )
    gpus = placement.gpu_of_rank
    if gpus.min() < 0 or gpus.max() >= topology.num_gpus:
        raise InputError(f"a rank is on none of the {topology.num_gpus:,} GPUs")
    check_memory(topology, job)
    return _scored(StepModel(topology, job), placement)


def checked_plan(
    machine: Topology,
    job: Job,
    solution: Solution,
    seed: int,
    added: Mapping[str, str],
    advice: Mapping[str, Any] | None,
) -> Plan:
    """The plan of ``solution``, scored again and checked independently."""
    model = StepModel(machine, job)
    found = _scored(model, solution.placement)
    plan = build_plan(
        machine,
        job,
        solution.placement,
        score=found,
        baselines=_baselines(
            model, seed, solution.placement, found, solution.stop_reason
        ),
        bound=_bound(solution, found) | ({"require": dict(added)} if added else {}),
        advice=_plain(advice or {}),
        solver=_plain(
            {
                "version": __version__,
                "seed": seed,
                "wall_s": solution.wall_s,
                "stop_reason": solution.stop_reason,
                # Without a limit there would have been advice.
                "deterministic": solution.deterministic and advice is not None,
                "method": solution.method,
            }
        ),
    )
    if broken := violations(plan, machine, job):
        raise BrokenPromiseError(f"the plan fails its check: {broken[0]}")
    return plan


def _bound(solution: Solution, found: Mapping[str, Any]) -> dict[str, Any]:
    """What is proved, about the value as scored again."""
    value = found[OBJECTIVES[solution.objective]]
    slack = EXACT * max(abs(value), abs(solution.value))
    if abs(value - solution.value) > slack:
        raise BrokenPromiseError(
            f"the search gives {solution.value!r} where the score is {value!r}"
        )
    if solution.lower_bound > value + slack:
        raise BrokenPromiseError(
            f"the lower bound {solution.lower_bound!r} is above the value {value!r}"
        )
    lower_bound = min(float(solution.lower_bound), value)
    gap = (value - lower_bound) / value if value > 0 else 0.0
    return {
        "objective": solution.objective,
        "value": value,
        "lower_bound": lower_bound,
        "gap": gap,
        "argument": solution.argument,
        "status": "optimal" if gap <= EXACT else "feasible",
    }


def _baselines(
    model: StepModel,
    seed: int,
    chosen: Placement,
    found: Mapping[str, Any],
    stop_reason: str,
) -> dict[str, Any]:
    """What every usual placement would cost, and which hard rules it breaks.

    On hosts in order several are the same placement, often the one that was ``chosen``
    and has the score ``found``; none is priced twice. After a request to stop those
    that would keep the user waiting are left out.
    """
    in_haste = stop_reason == "interrupted" and model.job.world_size > PRICED_IN_HASTE
    entries: dict[str, Any] = {}
    own = {key: found[key] for key in COSTS if key in found}
    priced: list[tuple[Placement, dict[str, Any]]] = [(chosen, own)]
    for name in BASELINES:
        if name == "random":
            continue
        usual = baseline(name, model.topology, model.job, seed)
        entry = next((known for one, known in priced if one.same_as(usual)), None)
        if entry is None and in_haste:
            continue
        if entry is None:
            entry = _plain(costs_with(model, usual))
            if broken := violations(usual, model.topology, model.job):
                entry["violates"] = broken
            priced.append((usual, entry))
        entries[name] = entry
    return entries


def _scored(model: StepModel, placement: Placement) -> dict[str, Any]:
    plain: dict[str, Any] = _plain(score_with(model, placement))
    return plain


def _plain(value: Any) -> Any:
    """``value`` in Python's own numbers, lists and dicts."""
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value.tolist() if isinstance(value, np.generic | np.ndarray) else value


def _check_options(
    objective: str | None, time_limit: float, seed: int, workers: int | None
) -> None:
    if objective not in (None, *OBJECTIVES):
        known = f"known: {', '.join(OBJECTIVES)}"
        raise _input_error(f'there is no objective "{objective}"', "objective", known)
    if not 0 <= time_limit < math.inf:
        message = f"expected seconds, at least 0, got {time_limit}"
        raise _input_error(message, "time_limit")
    if not 0 <= seed < 2**31:
        raise _input_error(f"expected 0 to 2^31 - 1, got {seed}", "seed")
    if workers is not None and workers < 1:
        raise _input_error(f"expected at least 1, got {workers}", "workers")


def _host_names(hosts: Sequence[str] | str | None) -> Sequence[str] | None:
    return parse_hosts(hosts) if isinstance(hosts, str) else hosts


def _input_error(message: str, key: str, hint: str = "") -> InputError:
    return InputError([Problem(message, key=key, hint=hint)])


def _never() -> bool:
    return False
