"""An attack on certificates: tiny cases of every sort against all their placements.

``python -m tests.solve.attack FIRST LAST`` draws a machine, a job and an objective for
each number, twice: islands, rails, thin uplinks, lost nodes and uneven racks; experts,
long pipelines, groups and traffic of the user's own, requirements, rules and both
launchers; then what is rarer: links, speeds, workloads, equal parts, budgets.
Every placement that keeps the rules is priced by plain loops. A bound above the least
cost is false, and so is "optimal" for anything dearer.
"""

import sys
from collections import Counter
from dataclasses import dataclass, replace
from functools import partial
from math import inf
from random import Random
from unittest.mock import patch

import numpy as np

from placer.base.errors import InfeasibleError, InputError
from placer.cost.least_cases import CaseClaim, priced_step
from placer.job.even import is_even
from placer.job.rules import Rules
from placer.placement.check import violations
from placer.placement.hop_bound import priced_hop_cost
from placer.placement.placement import Placement
from placer.solve import search
from placer.solve.bounds import certificate
from placer.solve.bounds.certificate import lower_bound
from placer.solve.bounds.hop_prices import hop_prices
from placer.solve.problem.compiled import Objective, Problem
from placer.solve.problem.launch import launched
from placer.solve.problem.rules import Limits
from placer.solve.rules import conflict, even
from placer.solve.rules.seats import seat
from placer.solve.run.budget import ENDLESS, Budget
from tests.cost.reference import Reference
from tests.solve.attacked_cases import CHANGES, changed, drawn, unusual
from tests.solve.every_placement import Sorts, every_legal
from tests.solve.oracle import hop_costs

ROUNDING = 1e-9
MOST_PRICED = {"time": 150, "hop-cost": 2_500}


def prices(case, placements):
    """Cost of placements, by plain loops; shape (P,)."""
    if not len(placements):
        return np.zeros(0)
    topology, job = case.topology.by_island, case.job
    if case.objective == "hop-cost":
        return hop_costs(topology, job, topology.node_of_gpu[placements])
    whole = Reference(topology, job)
    found = np.array([whole.seconds(gpus) for gpus in placements.tolist()])
    if not job.roles:
        return found
    # A cycle is its slowest role, and the transfers that it waits for.
    seconds = np.zeros(len(placements))
    for role in job.roles:
        alone = Reference(topology, role.job)
        for first in role.offsets:
            own = placements[:, first : first + role.job.world_size].tolist()
            steps = np.array([alone.seconds(gpus) for gpus in own])
            seconds = np.maximum(seconds, role.steps * steps)
    hides = job.traffic is not None and job.traffic.overlap
    return np.maximum(found, seconds) if hides else found + seconds


@dataclass(frozen=True, eq=False)
class Known(Objective):
    """Steps that are known from plain loops; the scorer prices others."""

    sorts: Sorts
    known: dict[bytes, float]

    def value(self, gpu_of_rank):
        """Step time of a placement, s."""
        cost = self.known.get(self.sorts.key(gpu_of_rank))
        return super().value(gpu_of_rank) if cost is None else cost

    def traffic_s(self, gpu_of_rank):  # noqa: ARG002
        """Of placements that cost the same any will do."""
        return 0.0


def faults(case, counts, most=inf):
    """What is false about a case of at most so many placements to price."""
    topology, job = case.topology, case.job
    try:
        problem = Problem.of(topology, job, case.objective)
    except InputError:
        counts["refused"] += 1
        return
    sorts = Sorts(topology)
    placements = sorts.one_of_each(every_legal(topology, job))
    if len(placements) > most:
        counts["too many"] += 1
        return
    yield from false_seats(case, placements)
    keys, costs = map(sorts.key, placements), prices(case, placements)
    known = dict(zip(keys, costs.tolist(), strict=True))
    try:
        found = _solved(problem, sorts, known)
    except InfeasibleError:
        counts["infeasible"] += 1
        if known:
            yield "said infeasible, is not"
        return
    yield from violations(found.placement, topology, job)
    own = found.placement.gpu_of_rank
    priced = known.get(sorts.key(own))
    if priced is None:
        yield "placed against the rules"
        return
    least = min(known.values())
    _count(case, found, least, counts)
    for value in (found.value, problem.goal.value(own)):
        if abs(value - priced) > ROUNDING * priced:
            yield f"value {value} of what costs {priced}"
    yield from _false_values(found, least)
    yield from _false_bounds(problem, least)


def false_seats(case, placements):
    """What is wrong about seats of ranks under rules, or that there are none."""
    machine, job = case.topology.by_island, case.job
    if job.rules and job.world_size <= machine.num_gpus:
        limits = Limits(machine, job)
        seating = seat(limits)
        seats = seating.node_of_rank
        if not seating.proved:
            yield "nothing is proved of seats"
        elif (seats is None) == bool(len(placements)):
            yield f"seats {seats} of {len(placements)} placements"
        elif seats is not None:
            placed = Placement(launched(machine, job, seats))
            yield from violations(placed, case.topology, job)
            least = limits.avoided_used(machine.node_of_gpu[placements[0]])
            # Of equal parts the search asks for each size on its own.
            used = limits.avoided_used(seats)
            if used > least or (used < least and not any(map(is_even, job.require))):
                yield f"seats on {used} hosts to avoid, {least} would do"


def _count(case, found, least, counts):
    job = case.job
    counts[f"{case.sort} {case.objective}"] += 1
    counts[f"status {found.status}"] += 1
    counts["not the least"] += found.value > least * (1 + ROUNDING)
    counts["with rules"] += job.rules != Rules()
    counts["with traffic or groups"] += bool(job.groups or job.traffic)
    counts[job.launcher] += 1


def _solved(problem, sorts, costs):
    """What the search finds without races of walks, which prove nothing."""
    goal, tried = problem.goal, problem.with_params(races=0)
    if goal.name == "time":
        tried = replace(tried, goal=Known(goal.cost, goal.weights, sorts, costs))
    return search.solve(tried, Budget(5.0))


def _bounds_once():
    """What bounds prove of a problem, asked once, as if no placement were known."""
    prove = certificate._proofs
    known = {}

    def proofs(problem, block, _value, _budget, bounds):
        of = id(problem.machine), id(problem.job)
        key = *of, block, problem.params.expert_rounds, len(bounds)
        if key not in known:
            known[key] = problem, [*prove(problem, block, inf, ENDLESS, bounds)]
        return known[key][1]

    return proofs


def _false_values(found, least):
    """What a solution says that the least cost of all placements does not bear out."""
    if found.value < least * (1 - ROUNDING):
        yield f"value {found.value} below the least of all, {least}"
    if found.status == "optimal" and found.value > least * (1 + ROUNDING):
        yield f"optimal {found.value}, there is {least}"
    if found.lower_bound > least * (1 + ROUNDING):
        yield f"bound {found.lower_bound}, there is {least}: {found.argument}"


def _false_bounds(problem, least):
    """Bounds above the least cost, asked for as `tune` and `allocate` do."""
    # For steps, what is said of larger blocks includes what is said of every launch.
    blocks = {problem.forced_block}
    if problem.goal.name != "time" or not problem.forced_block:
        blocks.add(1)
    for block in blocks:
        bound, argument, cases = lower_bound(problem, block)
        if bound > least * (1 + ROUNDING):
            yield f"bound {bound} for blocks of {block}, there is {least}: {argument}"
        hop_cost, price, given = problem.goal.name == "hop-cost", priced_step, cases
        if hop_cost:
            price, given = priced_hop_cost, hop_prices(problem, bound, ENDLESS)
        if given:
            priced = price(problem.machine, problem.job, given)
            if not bound * (1 - ROUNDING) <= priced <= least * (1 + ROUNDING):
                yield f"{given} prove {priced} of {bound}, there is {least}"
    if problem.goal.name == "time":
        rng = Random(str(least))
        made_up = [[*any_cases(rng, problem.job)] for _ in range(3)]
        of_more = [one._replace(seconds=1.1 * one.seconds) for one in cases]
        for cases in (*made_up, of_more):
            priced = priced_step(problem.machine, problem.job, cases)
            if priced > least * (1 + ROUNDING):
                yield f"{cases} prove {priced}, there is {least}"


def any_cases(rng, job):
    """Cases of any sort, most of them wrong: all that they prove holds."""
    axes = job.parallelism
    size = axes.ranks_of_group["dp_cp"].shape[1]
    for leaves in (*rng.sample(("tp", "cp", "ep", "pp"), rng.randint(0, 4)), ""):
        rows = np.array(rng.choices(range(1, size + 1), k=axes.pp * rng.randint(0, 3)))
        counts = rows.reshape(-1, axes.pp)
        yield CaseClaim(0.0, leaves, tuple(map(tuple, counts.tolist())))


DRAWS = {"": drawn, "unusual ": unusual}
DRAWS |= {what: partial(changed, what) for what in CHANGES}


def attack(first, last, draw=""):
    """Counts of the cases ``first`` to ``last - 1``, and what is false about them."""
    counts = Counter()
    false = []
    # Why nothing fits is no proof, and is slow to say.
    why = partial(InfeasibleError, "nothing fits")
    with (
        patch.object(conflict, "broken_rules", lambda *_: why()),
        patch.object(conflict, "infeasible", lambda *_: why()),
        patch.object(even, "no_equal_parts", lambda *_: why()),
    ):
        for seed in range(first, last):
            with patch.object(certificate, "_proofs", _bounds_once()):
                case = DRAWS[draw](seed)
                found = [*faults(case, counts, MOST_PRICED[case.objective])]
            false += [f"{draw}{seed}: {fault}" for fault in found]
    return counts, false


if __name__ == "__main__":
    begin, end = (int(text) for text in sys.argv[1:])
    for start in range(begin, end, 100):
        for name in ("", "unusual "):
            totals, wrong = attack(start, min(start + 100, end), name)
            told = dict(sorted(totals.items()))
            print(f"{name}{start}", *wrong, told, sep="\n  ", flush=True)
