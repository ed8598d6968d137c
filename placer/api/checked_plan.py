"""The plan of what a search found: scored again, compared, checked, judged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np

from placer.api.score import plain, scored
from placer.assumed import OVERSUBSCRIPTION, RATE, Assumption
from placer.base.rounding import EXACT
from placer.cost import JITTER
from placer.cost.step import StepModel
from placer.explain.difference import Saving, links_are_assumed, saving
from placer.explain.score import COSTS, costs_with, crossings
from placer.job.model import Job
from placer.placement.baselines import BASELINES, baseline, order_in_use
from placer.placement.build import build_plan, placement_of_plan
from placer.placement.check import violations
from placer.placement.inputs import Inputs
from placer.placement.placement import Placement
from placer.placement.plan import OBJECTIVES, Plan
from placer.placement.robust import needless_hosts
from placer.placement.rules import seats_of_placement
from placer.report.verdict import (
    KEEP,
    MOVE,
    name_in_use,
    reason,
    sentence,
    why_broken,
    why_kept,
)
from placer.solve.run.solution import Solution, checked_bound
from placer.topology.build import oversubscribed
from placer.topology.model import Topology
from placer.version import __version__

# Ranks up to which the baselines are priced although the user wants to leave.
PRICED_IN_HASTE = 131_072


def baseline_costs(
    machine: Topology,
    model: StepModel,
    seed: int,
    chosen: Placement,
    found: Mapping[str, Any],
    stop_reason: str,
) -> dict[str, Any]:
    """What every usual placement would cost, and which hard rules it breaks.

    One that uses more hosts to avoid than the one ``chosen`` breaks that rule. On hosts
    in order several are the same placement, often the one that was ``chosen``
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
        usual = baseline(name, machine, model.job, seed)
        entry = next((known for one, known in priced if one.same_as(usual)), None)
        if entry is None and in_haste:
            continue
        if entry is None:
            entry = plain(costs_with(model, usual))
            if broken := _broken(usual, chosen, machine, model.job):
                entry["violates"] = broken
            priced.append((usual, entry))
        entries[name] = entry
    return entries


def _broken(
    usual: Placement, chosen: Placement, machine: Topology, job: Job
) -> list[str]:
    """What forbids a usual placement, one sentence each."""
    broken = violations(usual, machine, job)
    if job.rules.avoid:
        (own, _), (best, _) = (seats_of_placement(p, machine) for p in (usual, chosen))
        broken += needless_hosts(own, best, machine, job.rules.avoid)
    return broken


_RATIOS = (2, 4)
# Ranks and members of the job's own groups above which placements are not scored again.
MOST_RANKS = 1 << 15


def what_if(
    machine: Topology, model: StepModel, chosen: Placement, usual: Placement
) -> list[dict[str, Any]]:
    """What a plan saves beside the usual placement with other values.

    ``machine``: the allocation. ``model``: of the job on it. Gives ``key`` of an
    assumption, another ``value``, and ``saved_share`` of the step. Uplinks at 2:1 and
    4:1; the rate at the ends of its interval, where these differ from the assumed one
    in whether the plan is faster by more than runs differ. A plan that is the usual
    placement has none: then the first nestings are tried at these ratios, and told
    where they save.
    """
    job = model.job
    members = sum(group.num_members for group in job.groups)
    if job.world_size + members > MOST_RANKS:
        return []
    assumed = {each.key: each for each in (*machine.assumed, *job.assumed)}
    found: list[dict[str, Any]] = []
    is_same = chosen.same_as(usual)
    if OVERSUBSCRIPTION in assumed:
        for ratio in _RATIOS:
            thinner = oversubscribed(machine, ratio)
            other = StepModel(thinner, job)
            tried = [chosen] if not is_same else _nested(thinner, job)
            entries = [
                _entry(OVERSUBSCRIPTION, ratio, _steps(other, one, usual))
                for one in tried
            ]
            best = max(entries, key=lambda entry: entry["saved_share"], default=None)
            if best is not None and (best["saved_share"] > JITTER or not is_same):
                found.append(best)
    if is_same:
        return found
    rate = assumed.get(RATE)
    if rate is not None and job.compute.tflops_per_gpu:
        found += _at_other_rates(rate, model, chosen, usual)
    return found


def _nested(machine: Topology, job: Job) -> list[Placement]:
    """The first few nestings that keep the rules."""
    # The solver takes half a second to load; who searches has it.
    from placer.solve.construct.fills import nested_fills
    from placer.solve.problem.compiled import Problem

    problem = Problem.of(machine, job)
    if not problem.choices:
        return []
    filled = islice(nested_fills(problem), problem.params.tidy_fills)
    return [Placement(gpus) for _, gpus in filled if problem.allows(gpus)]


def _at_other_rates(
    rate: Assumption, model: StepModel, chosen: Placement, usual: Placement
) -> Iterator[dict[str, Any]]:
    """The ends of the rate's interval, where they change the verdict."""
    if rate.interval is None or isinstance(rate.value, str):
        return
    ends, job = [], model.job
    for value in rate.interval:
        sustained = job.compute.tflops_per_gpu * value / rate.value
        compute = replace(job.compute, tflops_per_gpu=sustained)
        other = StepModel(model.topology, replace(job, compute=compute))
        steps = _steps(other, chosen, usual)
        ends.append((value, steps))
    verdict = _is_faster(*_steps(model, chosen, usual))
    if any(_is_faster(*steps) != verdict for _, steps in ends):
        yield from (_entry(RATE, value, steps) for value, steps in ends)


def _steps(
    model: StepModel, chosen: Placement, usual: Placement
) -> tuple[float, float]:
    """The step of both placements, s."""
    own, other = (model.step(one.gpu_of_rank) for one in (chosen, usual))
    return float(own.step_time_s), float(other.step_time_s)


def _entry(key: str, value: float, steps: tuple[float, float]) -> dict[str, Any]:
    own, other = steps
    saved = (other - own) / other if other else 0.0
    return {"key": key, "value": value, "saved_share": saved}


def _is_faster(own: float, other: float) -> bool:
    """Whether the plan is, by more than runs differ."""
    return other - own > JITTER * other


class BrokenPromiseError(RuntimeError):
    """The search returned what it must not: a fault of placer, not of the input."""


def checked_plan(
    inputs: Inputs,
    model: StepModel,
    solution: Solution,
    seed: int,
    advice: Mapping[str, Any] | None,
    best: Placement | None = None,
    previous: Mapping[str, Any] | None = None,
    saved: Saving | None = None,
) -> Plan:
    """The plan of ``solution``, scored again, checked independently, with its verdict.

    ``inputs``: what the plan is made of. ``model``: of the job under all rules, in the
    order of the placement, on the allocation. ``advice``: what another launch would
    save; None when no time was left to look. ``best``: the best that was found, where
    the one in use is kept instead. ``previous``: what a repair has to do with the plan
    before, which it is compared with instead of the order in use. ``saved``: as
    `judged` takes it.

    Raises `BrokenPromiseError` if it breaks a rule.
    """
    machine, job = inputs.machine, model.job
    found = scored(model, solution.placement)
    plan = build_plan(
        machine,
        job,
        solution.placement,
        score=found,
        baselines=baseline_costs(
            machine, model, seed, solution.placement, found, solution.stop_reason
        ),
        bound=_bound(solution, found)
        | ({"require": dict(inputs.require)} if inputs.require else {}),
        advice=plain(advice or {}),
        inputs=inputs.to_document(),
        solver=plain(
            {
                "version": __version__,
                "seed": seed,
                "wall_s": solution.wall_s,
                "stop_reason": solution.stop_reason,
                # Without a limit there would have been advice.
                "deterministic": solution.deterministic and advice is not None,
                "method": solution.method,
            }
            | ({"moves": solution.moves} if solution.moves else {})
        ),
    )
    if previous is not None:
        plan = replace(plan, previous=previous)
    elif solution.objective == "time" and job.assumed + machine.assumed:
        usual = baseline(order_in_use(job), machine, job, seed)
        tried = what_if(machine, model, best or solution.placement, usual)
        plan = replace(plan, what_if=plain(tried))
    if broken := violations(plan, machine, job):
        raise BrokenPromiseError(f"the plan fails its check: {broken[0]}")
    return judged(plan, machine, model, saved)


def _bound(solution: Solution, found: Mapping[str, Any]) -> dict[str, Any]:
    """What is proved, about the value as scored again."""
    value = found[OBJECTIVES[solution.objective]]
    lower_bound, argument = checked_bound(
        value, solution.lower_bound, solution.argument
    )
    gap = (value - lower_bound) / value if value > 0 else 0.0
    return {
        "objective": solution.objective,
        "value": value,
        "lower_bound": lower_bound,
        "gap": gap,
        "argument": argument,
        "status": "optimal" if gap <= EXACT else "feasible",
    }


def judged(
    plan: Plan, machine: Topology, model: StepModel, saved: Saving | None = None
) -> Plan:
    """The plan with its verdict.

    ``machine``: its allocation. ``model``: of the job under all rules, in the order of
    the plan, on the machine. ``saved``: what the best that was found saves of a step of
    the order in use, where that is known: of the plan, or where the order was kept of
    another.
    """
    facts = _facts(plan, machine, model, saved)
    text = sentence(plan, facts)
    return replace(plan, verdict={**facts, "text": text} if text else {})


def _facts(
    plan: Plan, machine: Topology, model: StepModel, saved: Saving | None
) -> dict[str, Any]:
    """What the sentence is made of."""
    if "fewest" in plan.previous:
        advice = MOVE if plan.previous["moved"] else KEEP
        return {"advice": advice, "against": "previous plan"}
    order = order_in_use(model.job)
    usual = plan.baselines.get(order, {})
    objective = plan.bound.get("objective", "time")
    if OBJECTIVES[objective] not in usual:
        return {}
    mine = placement_of_plan(plan, machine).gpu_of_rank
    theirs = baseline(order, machine, model.job).gpu_of_rank
    own, other = plan.bound["value"], usual[OBJECTIVES[objective]]
    found: dict[str, Any] = {"saved_share": (other - own) / other if other else 0.0}
    is_better, why = other > own, ""
    if objective == "time":
        seed, thin = int(plan.solver.get("seed", 0)), links_are_assumed(machine)
        saved = saved or saving(model, theirs, mine, seed, thin=thin)
        found = saved.to_dict()
        is_better = saved.is_measurable
    if objective == "time" and is_better:
        lie = crossings(model.fabric, model.job, theirs)
        told = {"exposed_s": usual["exposed_s"], "crossings": plain(lie)}
        why = reason(plan, told)
    broken = why_broken(usual.get("violates", ()))
    moved = int(np.count_nonzero(mine != theirs))
    if not (is_better or broken):
        why = "nothing measurable to win"
        if not moved:
            why = why_kept(plan.bound, found, plan.period)
    return {
        "advice": MOVE if is_better or broken else KEEP,
        "against": name_in_use(plan),
        **found,
        "ranks_moved": moved,
        "reason": why or broken,
    }
