"""Placements annealed on the exact cost, from the best known ones and simple starts.

Units move, and runs where nodes may hold other numbers of ranks. Expert groups of
single ranks move in parts of four first, and on the hop cost what the best placement
keeps whole.

Then again from other seeds, as long as the effort says. Every generation searches
several times from the same elite pool. What they find is offered in their order, so it
does not matter how many of them run side by side. Where a generation finds nothing, the
next one works twice as long.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial

import numpy as np

from placer.base.arrays import IntArray, row_of_number
from placer.base.threads import in_order
from placer.solve.annealing.race import ANNEALED, SMALL, Race
from placer.solve.annealing.runs import Runs, may_hold_runs
from placer.solve.annealing.starts import best_starts
from placer.solve.annealing.units import Units, cell_of_gpu
from placer.solve.annealing.walks import PricedInFull
from placer.solve.problem.colocation import join
from placer.solve.problem.compiled import Problem
from placer.solve.run.budget import Budget
from placer.solve.run.incumbent import Incumbent, Kept, MoveCounts
from placer.solve.score import is_built
from placer.solve.score.slots import cell_tier

BEGUN = "cells filled with copies of runs"
PART = 4  # ranks of a part of an expert group
SEARCHES = 4  # of a generation


def annealed(problem: Problem, incumbent: Incumbent, budget: Budget) -> None:
    """Placements annealed on the exact cost, or what walks would begin with.

    The latter where constructions alone are wanted.
    """
    if not is_for(problem) or incumbent.is_within(SMALL):
        return
    if budget.is_over():
        incumbent.cut_short = True
        return
    if not is_built():
        annealed_in_full(problem, incumbent, budget)
        return
    moving = spaces(problem, incumbent)
    try:
        if incumbent.is_worth_searching:
            _anneal(moving, incumbent, budget)
        else:
            for fine in moving:
                _begin(fine, incumbent)
    except PricedInFull:
        annealed_in_full(problem, incumbent, budget)


def annealed_in_full(problem: Problem, incumbent: Incumbent, budget: Budget) -> None:
    """Placements near the best, each priced by the scorer."""
    if incumbent.is_worth_searching and incumbent.elite:
        for units in spaces(problem, incumbent):
            units.in_full().anneal(incumbent, budget)


def _begin(units: Units, incumbent: Incumbent) -> None:
    """Offer the best of the simple starts."""
    walks = units.walks()
    for slots in best_starts(walks, [], incumbent.budget):
        incumbent.offer(BEGUN, walks.units.gpu_of_rank(slots))


def _anneal(moving: list[Units], incumbent: Incumbent, budget: Budget) -> None:
    """Races of whatever moves, the best first."""
    begun = _begun(moving, incumbent)
    incumbent.prove_closer()
    begun.sort(key=lambda one: one[0].cost)
    for number, (race, then) in enumerate(begun):
        part = budget.share(len(begun) - number)
        race.run(part.share(2) if then else part)
        if then:
            Race.of_best(then, incumbent).run(part)


def _begun(
    moving: list[Units], incumbent: Incumbent
) -> list[tuple[Race, Units | None]]:
    """A race of whatever moves, and what moves on after it where that is of parts."""
    begun = list[tuple[Race, Units | None]]()
    for fine in moving:
        coarse = _coarse(fine, incumbent.elite)
        race = Race.begun(coarse or fine, incumbent)
        begun.append((race, fine if coarse else None))
    return begun


def walked_briefly(problem: Problem, incumbent: Incumbent, _budget: Budget) -> None:
    """A first walk of expert groups that are cut: constructions leave most to gain."""
    axes, tier = problem.job.parallelism, cell_tier(problem)
    if not incumbent.elite or not (is_for(problem) and is_built()):
        return
    cell = cell_of_gpu(problem.machine, tier)
    cells = cell[incumbent.elite[0][axes.ranks_of_group["ep"]]]
    if incumbent.is_worth_searching and (cells != cells[:, :1]).any():
        with suppress(PricedInFull):
            _begun(spaces(problem, incumbent), incumbent)


def is_for(problem: Problem) -> bool:
    """Whether there is anything to move, and it is worth its time."""
    if problem.params.asks_enough:
        return False
    if problem.goal.name != "time":
        return bool(problem.hops.axes)
    if problem.job.model is None and not problem.has_own_traffic:
        return False
    return problem.model.fabric.has_network


def spaces(problem: Problem, incumbent: Incumbent) -> list[Units]:
    """What moves: units, then runs where nodes may hold other numbers of ranks.

    Rules see nodes that the cost does not: slots are where the best placement has them.
    """
    seats = incumbent.gpu_of_rank if problem.job.rules else None
    keeps = seats is not None
    units = Units.of(problem, seats, keeps=keeps) if problem.choices else None
    runs = Runs.on_nodes(problem) if may_hold_runs(problem) else None
    if runs is not None and problem.has_own_traffic:
        return [runs]
    return [space for space in (units, runs) if space is not None]


def _coarse(fine: Units, known: list[IntArray]) -> Units | None:
    """Units of several: parts of expert groups, or what a placement keeps whole."""
    problem = fine.problem
    axes = problem.job.parallelism
    if isinstance(fine, Runs):
        return None
    if axes.tp * axes.cp == 1 and axes.ep >= 4 * PART and axes.ep % PART == 0:
        return fine.joined(row_of_number(axes.ranks_of_group["ep"].reshape(-1, PART)))
    if problem.goal.name == "time" or not known:
        return None
    whole = np.arange(axes.world_size)
    for axis in sorted(problem.hops.axes, key=lambda axis: -axis.weight):
        groups = axes.ranks_of_group[axis.axis]
        cells = fine.cell_of_gpu[known[0][groups]]
        if (cells != cells[:, :1]).any():
            break
        whole = join(whole, groups)
    return fine.joined(whole)


def again(problem: Problem, incumbent: Incumbent, budget: Budget) -> None:
    """Search again until the effort is made, or nothing more can be done.

    A generation that must be worth its time is begun only where local search found the
    best placement so far.
    """
    if incumbent.gpu_of_rank is None:
        return
    params = problem.params
    if params.generation_gain and not incumbent.method.startswith(ANNEALED):
        return
    races, most = 1, SEARCHES * params.races
    for generation in range(params.generations):
        if incumbent.ends():
            return
        budget.pulse.phase = f"again, generation {generation + 1}"
        before = incumbent.value
        first = problem.seed + 1 + generation * SEARCHES
        variants = [
            problem.searched_anew(seed, races=races)
            for seed in range(first, first + SEARCHES)
        ]
        found = in_order(partial(_found, incumbent, budget), variants, budget.workers)
        for kept in found:
            incumbent.join(kept)
        gain = before - incumbent.value
        is_idle = not any(kept.moves.tried for kept in found)
        if gain < params.generation_gain * before or (is_idle and races == most):
            return
        races = 1 if gain > 0 else min(2 * races, most)


def _found(incumbent: Incumbent, budget: Budget, variant: Problem) -> Kept:
    """What one search finds from what the incumbent holds."""
    kept = incumbent.kept._replace(moves=MoveCounts())
    own = Incumbent.holding(variant, budget, kept, incumbent.terms)
    if not own.ends():
        annealed(variant, own, own.budget)
    return own.kept
