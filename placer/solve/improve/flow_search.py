"""Local search on what ranks send each other, for jobs with groups of their own.

Annealing makes the sum of bytes over rates small, but the slowest communicator of each
kind sets the step. So rounds of annealing alternate with a look at who is slow, whose
bytes count more from then on (multiplicative weights; Arora, Hazan and Kale 2012,
Theory of Computing 8).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from placer.arrays import FloatArray, IntArray
from placer.solve.improve.anneal import anneal
from placer.solve.improve.hop_search import HopSearch, Links
from placer.solve.improve.region import flow_region
from placer.solve.problem.flows import bundled, flows_of
from placer.solve.tree.base import paced

if TYPE_CHECKING:
    from placer.solve.improve.region import MoveRegion
    from placer.solve.problem.compiled import Problem
    from placer.solve.problem.flows import Flows
    from placer.solve.run.budget import Budget
    from placer.solve.run.incumbent import Incumbent

REBALANCED = "rebalanced"
# What the slowest gains in a round, and how much less others do that are faster.
STEP, SHARPNESS = 1.0, 8
# Share of the edges that count as heavy: units that they join also move together.
HEAVY = 0.25


def rebalanced(problem: Problem, incumbent: Incumbent, budget: Budget) -> None:
    """Anneal the flows between ranks, those of slow communicators ever heavier."""
    if incumbent.gpu_of_rank is None:
        return
    if problem.goal.name != "time" or not problem.job.names_ranks:
        return
    machine = paced(problem.machine)
    region = flow_region(problem, machine)
    if region is None or region.units == 1:
        return
    params = problem.params
    params = replace(params, anneal_work=params.rebalance_work)
    latest, emphasis = incumbent.best, _even(problem, incumbent.best)
    for number in range(params.rebalance_rounds):
        flows = flows_of(problem, latest, emphasis)
        links = _links(flows, region)
        if not _fits(links, region, params.rebalance_entries):
            return
        own = replace(problem, seed=problem.seed + number, params=params)
        elite = [latest, incumbent.best]
        if not region.homes(elite[:1]):
            return
        search = HopSearch(own, region, links, elite)
        for state in search.walks():
            anneal(state, budget, incumbent.moves)
            search.take(state)
        if search.best is not None:
            latest = region.gpu_of_rank(search.best)
            incumbent.offer(_named(incumbent.method), latest)
        if incumbent.ends():
            return
        emphasis = _emphasised(problem, latest, emphasis)


def _named(method: str) -> str:
    """What a placement found here is called, from what it began with."""
    is_own = method.startswith(REBALANCED)
    return method if is_own else f"{REBALANCED}, from {method}"


def _links(flows: Flows, region: MoveRegion) -> Links:
    """The flows between the units of a region."""
    units = bundled(region.label[flows.edges], flows.weight, region.units)
    weight = units.weight / units.weight.max(initial=1e-300)
    order = np.sort(weight)
    heavy = weight >= order[int((1 - HEAVY) * len(order))] if len(order) else weight
    return Links(units.edges, weight, np.where(heavy, 2.0, 1.0))


def _fits(links: Links, region: MoveRegion, most: int) -> bool:
    """Whether there is something to gain, and every unit's neighbours have room."""
    if not len(links.edges):
        return False
    degree = np.bincount(links.edges.ravel(), minlength=region.units)
    return int(degree.max()) * region.units <= most


def _even(problem: Problem, gpu_of_rank: IntArray) -> dict[str, FloatArray]:
    times = problem.model.step(gpu_of_rank).custom
    return {name: np.ones(len(time.group_seconds)) for name, time in times.items()}


def _emphasised(
    problem: Problem, gpu_of_rank: IntArray, emphasis: dict[str, FloatArray]
) -> dict[str, FloatArray]:
    """Factors after the slow of each kind have gained most."""
    found = {}
    for name, time in problem.model.step(gpu_of_rank).custom.items():
        slowness = time.group_seconds / max(time.group_seconds.max(), 1e-300)
        found[name] = emphasis[name] * (1 + STEP * slowness**SHARPNESS)
        found[name] /= found[name].mean()
    return found
