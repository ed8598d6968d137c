"""The inputs of an allocation: machine and free nodes, jobs, and plans in use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import inf
from typing import Any, NamedTuple

import numpy as np

from placer.allocate.question import Question, Running, Wanted
from placer.api.inputs import JobLike, inputs_of_plan, read_inputs
from placer.api.options import ObjectiveName
from placer.base.arrays import BoolArray, IntArray
from placer.base.errors import InputError, Problem, refuse
from placer.base.naming import numbered
from placer.documents import files
from placer.job.rules import Rules
from placer.placement.build import placement_of_plan
from placer.placement.inputs import Inputs
from placer.placement.memory_need import check_memory
from placer.placement.placement import Placement
from placer.placement.plan import Plan
from placer.solve.problem.compiled import Problem as Compiled
from placer.solve.run.solution import Solution
from placer.topology.allocation import allocate as selected
from placer.topology.model import Topology

# In front of a file with an answer of Slurm's sinfo.
SINFO = "sinfo:"


class Kept(NamedTuple):
    """A plan that is in use: its inputs on the machine, and where it lies."""

    name: str
    inputs: Inputs
    plan: Plan
    placement: Placement
    nodes: BoolArray

    @property
    def seats(self) -> IntArray:
        """Node of every rank; shape (R,)."""
        machine = self.inputs.topology
        seats: IntArray = machine.node_of_gpu[self.placement.gpu_of_rank]
        return seats


class Asked(NamedTuple):
    """All inputs, read."""

    whole: Topology
    inputs: list[Inputs]
    question: Question
    kept: list[Kept]


def read_question(
    whole: Topology,
    jobs: Sequence[tuple[JobLike, float]],
    weights: Mapping[str, float],
    free: Sequence[str] | str | None,
    busy: Sequence[str] | str,
    keep: Sequence[Plan],
    move: Sequence[Plan],
    move_price: float,
    require: Mapping[str, str] | None,
    rules: Rules | None,
    **terms: Any,
) -> Asked:
    """The inputs of all jobs, and the question they make.

    ``jobs``: each with what it counts, unless ``weights`` say otherwise by its name.
    ``**terms``: of the question besides.
    """
    if isinstance(free, str) and free.startswith(SINFO):
        free = _idle(whole, free.removeprefix(SINFO))
    is_free = mask_of(whole, free, busy, {"hosts": "free", "exclude": "busy"})
    kept, movers = ([_kept(whole, plan) for plan in plans] for plans in (keep, move))
    _refuse_overlaps([*kept, *movers])
    for one in kept:
        is_free &= ~one.nodes
    for one in movers:
        is_free |= one.nodes
    hosts = tuple(whole.node_names[node] for node in np.flatnonzero(is_free))
    if not hosts:
        raise InputError("no host is free", key="free")
    inputs = [
        Inputs.given(whole, work, hosts, (), require, rules)
        for _, work in (read_inputs(whole, job) for job, _ in jobs)
    ]
    inputs += [replace(one.inputs, hosts=hosts, exclude=()) for one in movers]
    running: list[Running | None] = [None] * len(jobs)
    running += [
        Running(_solution(whole, one, terms["objective"]), one.nodes, move_price)
        for one in movers
    ]
    counts = [*(own for _, own in jobs), *[1.0] * len(movers)]
    wanted = []
    all_names = [*(one.job.name for one in inputs), *(one.name for one in kept)]
    names = numbered(all_names)
    own = names[: len(inputs)]
    for name, given, now, count in zip(own, inputs, running, counts, strict=True):
        job = given.ruled
        check_memory(given.machine, job)
        wanted.append(Wanted(name, job, float(weights.get(name, count)), now))
    refuse(_weight_problems(weights, own))
    kept = [
        one._replace(name=name)
        for one, name in zip(kept, names[len(inputs) :], strict=True)
    ]
    question = Question(whole, is_free, tuple(wanted), **terms)
    if kept:
        staying = np.any([one.nodes for one in kept], axis=0)
        question = replace(question, staying=staying)
    return Asked(whole, inputs, question, kept)


def _weight_problems(
    weights: Mapping[str, float], names: Sequence[str]
) -> Iterator[Problem]:
    for name in weights:
        if name not in names:
            hint = f"known: {', '.join(names)}"
            yield Problem(f'no job is called "{name}"', key="weights", hint=hint)
    for name, weight in weights.items():
        if not 0 < weight < inf:
            message = f"{name}: expected a number above 0, got {weight}"
            yield Problem(message, key="weights")


def _idle(whole: Topology, path: str) -> list[str]:
    """The machine's nodes that an answer of sinfo says are idle.

    Raises `InputError` if the file cannot be read or is no such answer, or none of them
    is idle.
    """
    from placer.formats.machines.slurm_nodes import idle_nodes

    source = files.shown_name(path)
    idle = idle_nodes(files.read_text(path), source)
    known = {*whole.node_names}
    found = [node for node in idle if node in known]
    if not found:
        message = f"none of the {len(idle)} idle nodes is of {whole.name}"
        message = message if idle else "no node that is listed is idle"
        raise InputError(message, source, key="free")
    return found


def mask_of(
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


def _kept(whole: Topology, plan: Plan) -> Kept:
    """A plan on the machine."""
    try:
        inputs = inputs_of_plan(plan, whole)
        placement = placement_of_plan(plan, whole)
    except InputError as error:
        key = f"plan of {plan.job['name']}"
        problems = [replace(problem, key=key) for problem in error.problems]
        raise InputError(dict.fromkeys(problems)) from None
    held = {*plan.nodes, *plan.rules.get("spare_nodes", ())}
    nodes = np.array([name in held for name in whole.node_names])
    return Kept(inputs.job.name, inputs, plan, placement, nodes)


def _refuse_overlaps(running: Sequence[Kept]) -> None:
    for i, one in enumerate(running):
        for other in running[:i]:
            both = np.flatnonzero(one.nodes & other.nodes)
            if len(both):
                host = one.inputs.topology.node_names[both[0]]
                message = f"{other.name} and {one.name} both have {host}"
                raise InputError(message, key="keep")


def _solution(
    whole: Topology, running: Kept, objective: ObjectiveName | None
) -> Solution:
    """The placement of a job that runs, as if a search had found it."""
    goal = Compiled.of(whole, running.inputs.job, objective).goal
    value = float(goal.value(running.placement.gpu_of_rank))
    return Solution(
        running.placement, goal.name, value, 0.0, "none", "kept", "searched", 0.0, True
    )
