"""Placing a job again after failures, with as few moves as the cost allows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from dataclasses import replace as changed
from functools import cached_property
from typing import Any

import numpy as np

from placer.api.checked_plan import checked_plan
from placer.api.inputs import JobLike, TopologyLike, inputs_of_plan, read_given_job
from placer.api.options import number_problems, search_seconds, seconds_of
from placer.api.result import Result
from placer.base.arguments import takes
from placer.base.errors import InfeasibleError, InputError, refuse
from placer.base.hostlist import compress
from placer.base.naming import named
from placer.base.threads import awaited, granted_cores
from placer.cost.step import StepModel
from placer.job.axes import SAME_WORK, unlike_sizes
from placer.job.model import Job
from placer.job.orders import closed
from placer.job.resize import resized
from placer.placement.build import placement_of_plan
from placer.placement.inputs import Inputs, kept_topology
from placer.placement.memory_need import check_memory
from placer.placement.plan import Plan
from placer.placement.plan_file import PlanLike, plan_of
from placer.placement.previous import (
    PreviousPlan,
    allocated,
    inputs_left,
    machine_left,
    replicas_of_block,
    smaller_jobs,
    without_replicas,
)
from placer.report.columns import PLAIN, Look
from placer.report.diff import PlanDiff, diff
from placer.report.diff_text import changes_text
from placer.report.replace_text import replace_text
from placer.report.summary import verdict_lines
from placer.solve.problem.compiled import Problem as PlacementProblem
from placer.solve.problem.compiled import objective_of
from placer.solve.problem.launch import feasible_colocations
from placer.solve.rearrange.failure import Failure
from placer.solve.replace import Replaced, Required, TooFewMovesError, replaced
from placer.solve.rules.conflict import infeasible
from placer.solve.run.budget import Budget
from placer.solve.run.solution import Progress
from placer.topology.allocation import OUTSIDE, host_names
from placer.topology.model import Topology

WITHIN = 0.001


@dataclass(frozen=True, eq=False, repr=False)
class Replacement(Result):
    """A checked plan after failures, and the one before.

    Attributes
    ----------
    old : Plan
        The plan before.
    job : Job
        The job of the plan; smaller than before where replicas were given up.
    """

    old: Plan
    job: Job

    @property
    def curve(self) -> list[dict[str, Any]]:
        """Placements of ever more moves at ever less cost: ``moves`` and ``value``."""
        return list(self.plan.previous["curve"])

    def diff(self) -> PlanDiff:
        """What changed, with the work of the restart."""
        return diff(self.old, self.plan, self.job)

    def summary(self, look: Look = PLAIN) -> str:
        """The verdict, its proof, what more moves would save, and the difference."""
        blocks = (
            "\n".join(verdict_lines(self.plan, look)),
            replace_text(self.plan, look.width),
            changes_text(self.diff(), look.width),
        )
        return "\n\n".join(filter(None, blocks)).rstrip("\n")


@dataclass(frozen=True, eq=False)
class _Task:
    """A job on what is left of its machine, and what is asked."""

    original: Topology
    left: Inputs
    machine: Topology
    job: Job
    plan: Plan
    failed: tuple[str, ...]
    added: dict[str, list[str]]

    def problem(self, seed: int = 0) -> PlacementProblem:
        """The problem, its ranks numbered as in the plan."""
        objective = self.plan.bound.get("objective")
        return PlacementProblem.of(self.machine, closed(self.job), objective, seed)

    @property
    def previous(self) -> PreviousPlan:
        """The plan on the machine that is left."""
        return PreviousPlan(self.plan, self.machine)

    @cached_property
    def cost_before(self) -> float | None:
        """What the plan costs with all its nodes; None where the machine lacks some."""
        try:
            placement = placement_of_plan(self.plan, self.original)
        except InputError:
            return None
        name = self.plan.bound.get("objective")
        goal = objective_of(self.original, self.job, name)
        return float(goal.value(placement.gpu_of_rank))


@takes()
@awaited()
def replace(
    plan: PlanLike,
    topology: TopologyLike | None = None,
    job: JobLike | None = None,
    *,
    failed: Sequence[str] | str = (),
    added: Sequence[str] | str | None = None,
    max_moves: int | None = None,
    within: float = WITHIN,
    shrink: bool = False,
    force: bool = False,
    time_limit: float | str = 60.0,
    seed: int = 0,
    progress: Progress | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> Replacement:
    """The placement after failures that moves the fewest ranks at almost no cost.

    Without a failure the plan stays as it is. `place` explains the other arguments.

    Parameters
    ----------
    plan : Plan, Result, path or dict
        Where the ranks are. Requirements and rules it was made under hold again, but
        spare nodes may be used: that is what they are for.
    topology, job : Topology, Job, or what `read_topology` and `read_job` take, optional
        Instead of those that the plan keeps; the topology may be another by now.
    failed : sequence of str, or str
        Hosts out of use, beside those of the plan that the topology no longer offers.
    added : sequence of str, or str, optional
        Hosts that may be used beside those of the allocation.
    max_moves : int, optional
        Ranks that may move at most.
    within : float
        Share by which the cost may lie above the one before the failure.
    shrink : bool
        Give up the fewest replicas when the job does not fit any more.
    force : bool
        Take ``topology`` and ``job`` although the plan names others.

    Returns
    -------
    Replacement
        A `Result` that also tells what moves, and what more moves would save.

    Raises
    ------
    InputError
        If an argument is of a wrong type, hosts are unknown or unavailable, or the plan
        is not of this job.
    InfeasibleError
        If the job does not fit any more, or not with so few moves.
    StoppedError
        If ``stop`` was true before there was any placement.

    Examples
    --------
    >>> plan = placer.predict("dgx-h100-4x8", "quickstart", "slurm")
    >>> found = placer.replace(plan, failed="n1", added="n3")
    >>> "n1" in found.plan.nodes
    False
    """
    plan = plan_of(plan)
    time_limit = seconds_of(time_limit)
    numbers = {"time_limit": time_limit, "seed": seed}
    refuse(number_problems(max_moves=max_moves, within=within, **numbers))
    task = _task(topology, job, plan, failed, added, force)
    seconds = search_seconds(time_limit, task.job)
    budget = Budget(seconds, stop, workers=granted_cores())

    def search(one: _Task) -> Replaced:
        terms = Required(within, max_moves, one.cost_before)
        left = budget.share(1)
        return replaced(one.problem(seed), one.previous, terms, left, progress)

    task, found, given_up = _found(task, search, shrink)
    new = _plan_of(task, found, given_up, within, seed)
    return Replacement(new, plan, task.left.job)


def _found(
    task: _Task, search: Callable[[_Task], Replaced], shrink: bool
) -> tuple[_Task, Replaced, list[int]]:
    """The task, smaller where it must be, its placement and the replicas given up."""
    try:
        if task.job.world_size > task.machine.num_gpus:
            raise infeasible(task.machine.by_island, task.job)
        check_memory(task.machine, task.job)
        return task, search(task), []
    except TooFewMovesError:
        raise  # the moves are in the way, not the machine
    except InfeasibleError as error:
        if task.job.roles:
            raise  # which role could do with less is not known
        if not shrink:
            raise _with_hint(error, task.machine) from None
        return _shrunk(task, search, error)


def _shrunk(
    task: _Task, search: Callable[[_Task], Replaced], error: InfeasibleError
) -> tuple[_Task, Replaced, list[int]]:
    """The task with the fewest replicas given up, its placement, and those replicas."""
    machine = task.machine
    # Where nodes differ, or hosts are several nodes, ranks need not be packed evenly.
    seen = machine.by_island
    uneven = seen.node_tier > 0 or len(np.unique(seen.gpus_of_node)) > 1
    failure = Failure(task.problem(), task.previous.seats(task.problem().job))
    for job in smaller_jobs(task.job, machine.num_gpus):
        if not uneven and not feasible_colocations(seen, job):
            continue
        axes, smaller = task.job.parallelism, job.parallelism
        block = replicas_of_block(axes, smaller)
        gone = failure.most_damaged(block, axes.dp - smaller.dp)
        kept = np.setdiff1d(np.arange(axes.dp), gone).tolist()
        plan = without_replicas(task.plan, job, kept)
        left = changed(task.left, job=resized(task.left.job, dp=smaller.dp))
        job = changed(job, sha256=left.job.sha256)
        less = changed(task, left=left, job=job, plan=plan)
        try:
            return less, search(less), gone
        except InfeasibleError:
            continue
    raise error


def _task(
    topology: TopologyLike | None,
    job: JobLike | None,
    plan: Plan,
    failed: Sequence[str] | str,
    added: Sequence[str] | str | None,
    force: bool,
) -> _Task:
    """The inputs, checked, on the machine that is left."""
    if job is not None:
        known = topology if isinstance(topology, Topology) else kept_topology(plan)
        job = read_given_job(job, known)
        sizes = (*SAME_WORK, "dp")
        if plan.axes and (unlike := unlike_sizes(plan.axes, job.parallelism, sizes)):
            message = f"the plan is of another job: {', '.join(unlike)}"
            raise InputError(message, hint="give the job that the plan places")
    before = inputs_of_plan(plan, topology, job, force=force)
    original = before.topology
    if topology is not None and plan.inputs:
        original = inputs_of_plan(plan, job=job).topology
        if {*before.topology.node_names} - {*original.node_names}:
            # A plan of every usable node owns those that there were, not newer ones.
            before = changed(before, hosts=before.hosts or original.node_names)
    gone = host_names(failed, "failed")
    more = None if added is None else host_names(added, "added")
    left = inputs_left(before, plan, gone, more)
    machine = machine_left(left, plan, gone)
    there = set(machine.node_names)
    lost = [name for name in plan.nodes if name not in there]
    failed_hosts = tuple(dict.fromkeys([*gone, *lost]))
    ruled = left.ruled
    owned = {*allocated(before, plan, is_told=more is not None)}
    newcomers = dict.fromkeys(more or ())
    asked = {
        "added": [host for host in newcomers if host not in owned],
        "had": [host for host in newcomers if host in owned],
    }
    return _Task(original, left, machine, ruled, plan, failed_hosts, asked)


def _plan_of(
    task: _Task, found: Replaced, given_up: list[int], within: float, seed: int
) -> Plan:
    """The new plan, checked, with what it has to do with the old one."""
    model = StepModel(task.machine, task.job)
    seats = task.previous.seats(task.job)
    section: dict[str, Any] = seats.summary(found.chosen.gpu_of_rank)
    section |= {
        "failed": [compress(task.failed)] if task.failed else [],
        **{key: [compress(hosts)] for key, hosts in task.added.items() if hosts},
        "lost": found.lost,
        "fewest": found.fewest.moves,
        "argument": found.fewest.argument,
        "within": within,
        "budget": found.budget,
        "reference": found.reference,
        "curve": [
            {"moves": point.moves, "value": point.value, "method": point.method}
            for point in found.points
        ],
    }
    if task.cost_before is not None:
        section["value_before"] = task.cost_before
    if given_up:
        section["given_up"] = given_up
    return checked_plan(task.left, model, found.solution, seed, {}, previous=section)


def _with_hint(error: InfeasibleError, machine: Topology) -> InfeasibleError:
    hints = [*error.hints]
    if OUTSIDE in machine.unavailable.values():
        hints.append(f"or add hosts from {OUTSIDE}: {named('added')}")
    hints.append(
        f"or let it shrink, {named('shrink', True)}: the fewest replicas are given up"
    )
    return InfeasibleError(error.reason, hints=hints, is_proved=error.is_proved)
