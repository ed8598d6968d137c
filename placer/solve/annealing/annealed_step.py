"""Placements annealed on the exact step, from the best known ones and simple starts.

Some walks of their own first, from the best starts; the best of them goes on, cooler.
Expert groups of single ranks move in parts of four first. How long walks are depends on
the number of units alone, and each has its own random numbers: threads change nothing.
"""

from __future__ import annotations

from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

from placer.solve.annealing.starts import column_starts, cut_starts
from placer.solve.annealing.units import Units
from placer.solve.annealing.walks import Walks
from placer.solve.run.workers import in_order
from placer.solve.score.kernel import is_built

if TYPE_CHECKING:
    from placer.arrays import IntArray
    from placer.solve.problem.compiled import Problem
    from placer.solve.run.budget import Budget
    from placer.solve.run.incumbent import Incumbent

SCALES = (1.0, 0.5, 2.0, 1.0)  # how hot the first walks are, in turn
FEWEST, MOST = 4, 12  # walks at first, as few units have several basins too
MOVES_AT_FIRST = 3_000_000  # of all of them, about
THEN = (0.5, 0.02)  # and the best of them
FINE_THEN = (0.3, 0.1, 0.02)  # and single ranks, after parts
# Moves of a walk, times units, and at most.
MOVES_A_UNIT, MOST_MOVES = 1_000, 2_000_000
PART = 4  # ranks of a part of an expert group
STARTS = 6  # of the placements known that are tried


def annealed_step(problem: Problem, incumbent: Incumbent, budget: Budget) -> None:
    """Placements annealed on the exact step."""
    if not _is_for(problem):
        return
    fine, coarse = Units.of(problem), _in_parts(problem)
    if fine is None:
        return
    if coarse is None:
        _search(fine, incumbent, budget)
        return
    _search(coarse, incumbent, budget)
    walks = _begun(fine, problem.seed, incumbent.elite[:1])
    _cool(walks, incumbent, budget, FINE_THEN)


def _is_for(problem: Problem) -> bool:
    """Whether there is anything to move that the compiled step knows."""
    job = problem.job
    if problem.goal.name != "time" or job.roles or job.model is None:
        return False
    return is_built() and problem.model.fabric.can_leave_scale_up


def _in_parts(problem: Problem) -> Units | None:
    """Parts of expert groups as units, where ranks move alone otherwise."""
    axes = problem.job.parallelism
    is_wide = axes.ep >= 4 * PART and axes.ep % PART == 0
    if problem.job.launcher != "free" or axes.tp * axes.cp > 1 or not is_wide:
        return None
    return Units.of(problem, PART)


def _search(units: Units, incumbent: Incumbent, budget: Budget) -> None:
    """Walks side by side from the best start; the best goes on, cooler."""
    seed = units.problem.seed * MOST
    first = _begun(units, seed, incumbent.elite)
    start = first.best[1]

    def walk(number: int) -> Walks:
        walks = first if number == 0 else Walks(units, seed + number)
        walks.load_slots(start)
        walks.walk(_moves(walks), SCALES[number % len(SCALES)], budget)
        return walks

    count = min(max(MOVES_AT_FIRST // _moves(first), FEWEST), MOST)
    ended = in_order(walk, range(count), budget.workers)
    best = min(ended, key=lambda walks: walks.best[0])
    _offer(best, incumbent)
    _cool(best, incumbent, budget, THEN)


def _begun(units: Units, seed: int, known: list[IntArray]) -> Walks:
    """A walk at its best start: of placements that are known, or simple."""
    walks = Walks(units, seed)
    begin = [partial(walks.load, gpu_of_rank) for gpu_of_rank in known[:STARTS]]
    simple = chain(cut_starts(walks), column_starts(walks))
    begin += [partial(walks.load_slots, slots) for slots in simple]
    found = [(start(), number) for number, start in enumerate(begin)]
    begin[min(found)[1]]()
    return walks


def _cool(
    walks: Walks, incumbent: Incumbent, budget: Budget, scales: tuple[float, ...]
) -> None:
    """Walk on from the best so far, cooler and cooler."""
    for scale in scales:
        walks.walk(_moves(walks), scale, budget)
        _offer(walks, incumbent)
    incumbent.cut_short |= budget.is_over()


def _moves(walks: Walks) -> int:
    return min(MOST_MOVES, MOVES_A_UNIT * len(walks.evaluator.slots.ranks))


def _offer(walks: Walks, incumbent: Incumbent) -> None:
    incumbent.budget.pulse.placements += walks.annealer.tried
    incumbent.offer("annealed on the step", walks.gpu_of_rank)
