"""Placements annealed on the exact step, from the best known ones and simple starts.

Walks race: many short ones first, and each round the better half of them goes on,
longer and cooler. Expert groups of single ranks move in parts of four first. How long
walks are depends on the number of units alone, and each has its own random numbers:
threads change nothing.
"""

from __future__ import annotations

from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from placer.solve.annealing.runs import Runs
from placer.solve.annealing.starts import column_starts, cut_starts
from placer.solve.annealing.units import Units
from placer.solve.annealing.walks import PricedInFull
from placer.solve.run.workers import in_order
from placer.solve.score.kernel import is_built

if TYPE_CHECKING:
    from placer.arrays import IntArray
    from placer.solve.annealing.walks import Walks
    from placer.solve.problem.compiled import Problem
    from placer.solve.run.budget import Budget
    from placer.solve.run.incumbent import Incumbent

SCALES = (1.0, 0.3, 0.1, 0.5)  # how hot the walks of the first round are, in turn
WALKS = 8  # of the first round
COOLER, LONGER = 0.5, 4  # each round
MOVES_A_UNIT, MOST_MOVES = 100, 100_000  # of a walk of the first round, and at most
FINE_MOVES, FINE_SCALES = 10, (0.3, 0.1, 0.02)  # of single ranks after parts, longer
SMALL = 1e-4  # a gap that no model of a step can tell
ASKED = 500  # times dearer is a move whose step asks the scorer
PART = 4  # ranks of a part of an expert group
STARTS = 4  # of all that are known, the best


def annealed_step(problem: Problem, incumbent: Incumbent, budget: Budget) -> None:
    """Placements annealed on the exact step."""
    if not _is_for(problem) or not _is_worth(incumbent):
        return
    fine = Runs.of(problem) if not problem.choices else Units.of(problem)
    if fine is None:
        return
    try:
        _anneal(fine, _in_parts(problem), incumbent, budget)
    except PricedInFull:
        return  # the local search after it prices changes in full


def _anneal(
    fine: Units, coarse: Units | None, incumbent: Incumbent, budget: Budget
) -> None:
    if coarse is None:
        _race(fine, incumbent, budget)
        return
    _race(coarse, incumbent, budget.share(2))
    walks = fine.walks(fine.problem.seed)
    walks.load(incumbent.elite[0])
    for scale in FINE_SCALES:
        walks.walk(_moves(walks) * FINE_MOVES, scale, budget)
        _offer(walks, incumbent)
    incumbent.cut_short |= budget.is_over()


def _is_for(problem: Problem) -> bool:
    """Whether there is anything to move that the compiled step knows."""
    job = problem.job
    if problem.goal.name != "time" or job.roles or job.model is None:
        return False
    return is_built() and problem.model.fabric.can_leave_scale_up


def _is_worth(incumbent: Incumbent) -> bool:
    return incumbent.is_worth_searching and not incumbent.is_within(SMALL)


def _in_parts(problem: Problem) -> Units | None:
    """Parts of expert groups as units, where ranks move alone otherwise."""
    axes = problem.job.parallelism
    is_wide = axes.ep >= 4 * PART and axes.ep % PART == 0
    if problem.job.launcher != "free" or axes.tp * axes.cp > 1 or not is_wide:
        return None
    return Units.of(problem, PART)


def _race(units: Units, incumbent: Incumbent, budget: Budget) -> None:
    """Walks side by side from the best starts; the better half goes on."""
    seed = units.problem.seed * WALKS
    racing = [units.walks(seed + number) for number in range(WALKS)]
    starts = _starts(racing[0], incumbent.elite)
    moves, scales = _moves(racing[0]), {}
    for number, walks in enumerate(racing):
        scales[walks] = SCALES[number % len(SCALES)]
        walks.load_slots(starts[number // len(SCALES) % len(starts)])
    while True:
        in_order(partial(_walk, moves, scales, budget), racing, budget.workers)
        racing.sort(key=lambda walks: walks.best[0])
        _offer(racing[0], incumbent)
        if len(racing) == 1 or budget.is_over():
            break
        racing = racing[: len(racing) // 2]
        moves *= LONGER
        scales = {walks: scales[walks] * COOLER for walks in racing}
    incumbent.cut_short |= budget.is_over()


def _walk(moves: int, scales: dict[Walks, float], budget: Budget, walks: Walks) -> None:
    walks.walk(moves, scales[walks], budget)


def _starts(walks: Walks, known: list[IntArray]) -> list[IntArray]:
    """The best slots to begin with: of placements that are known, or simple."""
    slots = [walks.units.slot_of_unit(gpu_of_rank) for gpu_of_rank in known]
    if not isinstance(walks.units, Runs):
        slots += chain(cut_starts(walks), column_starts(walks))
    order = np.argsort([walks.load_slots(some) for some in slots], kind="stable")
    return [slots[number] for number in order[:STARTS]]


def _moves(walks: Walks) -> int:
    moves = min(MOST_MOVES, MOVES_A_UNIT * len(walks.evaluator.slots.ranks))
    return moves // ASKED if walks.kernel.asks else moves


def _offer(walks: Walks, incumbent: Incumbent) -> None:
    incumbent.budget.pulse.placements += walks.annealer.tried
    incumbent.offer("annealed on the step", walks.gpu_of_rank)
