"""The verdict of a plan: whether its ranks should move, what that saves, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from placer.api.score import plain
from placer.base.arrays import IntArray
from placer.cost.step import StepModel
from placer.explain.difference import Saving, saving
from placer.explain.score import crossings
from placer.explain.uncertain import links_are_assumed
from placer.placement.baselines import baseline
from placer.placement.build import placement_of_plan
from placer.placement.plan import Plan
from placer.placement.plan_keys import OBJECTIVES
from placer.placement.started import order_in_use
from placer.report.verdict import (
    KEEP,
    MOVE,
    name_in_use,
    reason,
    sentence,
    why_broken,
    why_kept,
)
from placer.topology.model import Topology


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
        why = reason(plan, _exposed(model, theirs, usual)) if is_better else ""
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


def _exposed(
    model: StepModel, gpu_of_rank: IntArray, usual: Mapping[str, Any]
) -> dict[str, Any]:
    """Where another placement waits, and where its groups lie."""
    lie = crossings(model.fabric, model.job, gpu_of_rank)
    return {"exposed_s": usual["exposed_s"], "crossings": plain(lie)}
