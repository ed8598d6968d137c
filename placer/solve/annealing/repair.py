"""Placements that break rules, walked to where none is broken.

What a placement breaks is counted: the tiers between each pinned unit and its nearest
host, sets that are torn, and in each box the replicas, ranks or hosts that are too many
(`fence.hpp`). A walk makes changes that break no more than was broken, now and then one
more, and late on its way any that mends, whatever it costs; its best is what breaks
least, and the cheapest of that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, zip_longest
from math import inf
from typing import TYPE_CHECKING

from placer.solve.annealing.annealed_step import seeds, spaces
from placer.solve.annealing.mend_in_full import MendsInFull, RunMendsInFull
from placer.solve.annealing.runs import Runs
from placer.solve.annealing.walks import PricedInFull, Walk

if TYPE_CHECKING:
    from placer.base.arrays import IntArray
    from placer.solve.annealing.walks import Walks
    from placer.solve.problem.compiled import Problem
    from placer.solve.run.budget import Budget
    from placer.solve.run.incumbent import Incumbent

MOVES_A_UNIT, MOST_MOVES = 100, 25_000  # of a walk; another follows one that mends
HEAT = 0.3  # of walks
STARTS = 2  # of placements that are known, and as many simple ones
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
            if isinstance(units, Runs):
                walks = RunMendsInFull(units)
            else:
                walks = MendsInFull(units)
        moves = min(MOST_MOVES, MOVES_A_UNIT * len(walks.units.slots.ranks))
        seed = seeds(problem)
        for slots in _starts(walks, near, budget):
            walk, before = Walk(next(seed), HEAT, slots), inf
            while not budget.is_over():
                walk = walks.walk(walk._replace(seed=next(seed)), moves, budget)
                if not 0 < walk.broken < before:
                    break
                before = walk.broken
            incumbent.offer(REPAIRED, walks.units.gpu_of_rank(walk.slots))


def _starts(
    walks: Walks | MendsInFull, near: list[IntArray], budget: Budget
) -> Iterator[IntArray]:
    """Slots to begin with, those first that break least, the cheapest of them."""
    units = walks.units

    def best(some: Iterable[IntArray]) -> list[IntArray]:
        priced = []
        for number, slots in enumerate(some):
            if budget.is_over():
                break
            cost = walks.load(slots)
            priced.append((walks.broken, cost, number, slots))
        return [slots for *_, slots in sorted(priced)[:STARTS]]

    known = best(map(units.slot_of_unit, near))
    pairs = zip_longest(known, best(units.simple_starts()))
    return (slots for slots in chain(*pairs) if slots is not None)
