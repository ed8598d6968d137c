"""Placements that break rules, walked to where none is broken.

What a placement breaks is counted: the tiers between each pinned unit and its nearest
host, sets that are torn, and in each box the replicas, ranks or hosts that are too many
(`fence.hpp`). A walk makes changes that break no more than was broken, now and then one
more, and late on its way any that mends, whatever it costs; its best is what breaks
least, and the cheapest of that.
"""

from __future__ import annotations

from math import inf

from placer.base.arrays import IntArray
from placer.solve.annealing.annealed import seeds, spaces
from placer.solve.annealing.mend_in_full import MendsInFull
from placer.solve.annealing.starts import best_starts
from placer.solve.annealing.walks import PricedInFull, Walk, Walks
from placer.solve.problem.compiled import Problem
from placer.solve.run.budget import Budget
from placer.solve.run.incumbent import Incumbent

MOVES_A_UNIT, MOST_MOVES = 100, 25_000  # of a walk; another follows one that mends
HEAT = 0.3  # of walks
REPAIRED = "repaired"  # what placements found here are called


def repair(
    problem: Problem, near: list[IntArray], incumbent: Incumbent, budget: Budget
) -> None:
    """Offer what walks make of placements (R,) that break rules, and of simple starts.

    Where the annealer was not built, or does not know the job, slowly.
    """
    for units in spaces(problem, incumbent):
        walks: Walks | MendsInFull
        try:
            walks = units.walks()
        except PricedInFull:
            walks = units.mends()
        moves = min(MOST_MOVES, MOVES_A_UNIT * len(walks.units.slots.ranks))
        seed = seeds(problem)
        for slots in best_starts(walks, near, budget, may_break=True):
            walk, before = Walk(next(seed), HEAT, slots), inf
            while not budget.is_over():
                walk = walks.walk(walk._replace(seed=next(seed)), moves, budget)
                if not 0 < walk.broken < before:
                    break
                before = walk.broken
            incumbent.offer(REPAIRED, walks.units.gpu_of_rank(walk.slots))
