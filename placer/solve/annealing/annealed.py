"""Placements annealed on the exact cost, from the best known ones and simple starts.

Walks race: many short ones first, and each round the best quarter of them goes on,
longer and cooler. Expert groups of single ranks move in parts of four first, and on the
hop cost what the best placement keeps whole. How long walks are depends on the number
of units alone, and each has its own random numbers: threads change nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import chain, count
from operator import attrgetter

import numpy as np

from placer.base.arrays import IntArray, row_of_number
from placer.base.threads import in_order
from placer.solve.annealing.in_full import annealed_in_full
from placer.solve.annealing.runs import Runs, may_hold_runs
from placer.solve.annealing.starts import best_starts
from placer.solve.annealing.units import Units
from placer.solve.annealing.walks import PricedInFull, Walk, Walks, walk_in_pool
from placer.solve.problem.colocation import join
from placer.solve.problem.compiled import Problem
from placer.solve.run.budget import Budget
from placer.solve.run.incumbent import Incumbent
from placer.solve.run.later import has_own_traffic
from placer.solve.score import is_built

# How hot the walks of the first round are, in turn: a sum has no plateaus.
SCALES = {
    "time": (0.3, 0.1, 1.0, 2.0),
    "hop-cost": (0.01, 1.0, 0.001, 0.1),
    "flows": (1.0, 0.1, 0.3, 0.03),  # of the user's own groups, too
}
WALKS = 8  # of the first round of a race
FEW_WALKS = 4  # where a large job goes on, and of flows, whose races become longer
COOLER, LONGER = 0.5, 4  # each round, as many fewer walks
MOVES_A_UNIT, MOST_MOVES = 100, 100_000  # of a walk of the first round, and at most
# Of the first walk of all, for who waits, which is cooler where it moves units seldom.
BRIEF_MOVES_A_UNIT, MOST_BRIEF_MOVES, SELDOM = 200, 50_000, 50
BRIEF_SCALES, COOL = {"time": 1.0, "hop-cost": 0.01, "flows": 0.3}, 0.3
MOVES_A_UNIT_OF_FLOWS = 400  # most leave a maximum of many ports alone
FINE_MOVES, FINE_SCALES = 10, (0.3, 0.1, 0.02)  # of single ranks after parts, longer
SMALL = 1e-4  # a gap that no model of a step can tell
BY_SCORER = 500  # times dearer is a move whose step the scorer prices
ANNEALED = "annealed"  # what placements found here are called
BEGUN = "cells filled with copies of runs"
PART = 4  # ranks of a part of an expert group


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
    moving, is_searched = spaces(problem, incumbent), incumbent.is_worth_searching
    try:
        for number, fine in enumerate(moving):
            part = budget.share(len(moving) - number)
            if is_searched:
                _anneal(fine, _coarse(fine, incumbent.elite), incumbent, part)
            else:
                _begin(fine, incumbent)
    except PricedInFull:
        annealed_in_full(problem, incumbent, budget)


def _begin(units: Units, incumbent: Incumbent) -> None:
    """Offer the best of the simple starts."""
    walks = units.walks()
    for slots in best_starts(walks, [], incumbent.budget):
        incumbent.offer(BEGUN, walks.units.gpu_of_rank(slots))


def _anneal(
    fine: Units, coarse: Units | None, incumbent: Incumbent, budget: Budget
) -> None:
    if coarse is None:
        _race(fine, incumbent, budget)
        return
    _race(coarse, incumbent, budget.share(2))
    if not incumbent.elite:  # under rules nothing may be known yet
        return
    walks = fine.walks()
    slots = walks.units.slot_of_unit(incumbent.elite[0])
    for seed, scale in zip(seeds(fine.problem), FINE_SCALES, strict=False):
        walk = Walk(seed, scale, slots)
        slots = walks.walk(walk, _moves(walks) * FINE_MOVES, budget).slots
        _count([walks], incumbent)
        _offer(walks, slots, incumbent)
    incumbent.cut_short |= budget.is_over()


def is_for(problem: Problem) -> bool:
    """Whether there is anything to move, and it is worth its time."""
    if problem.params.asks_enough:
        return False
    if problem.goal.name != "time":
        return bool(problem.hops.axes)
    if problem.job.model is None and not has_own_traffic(problem):
        return False
    return problem.model.fabric.has_network


def _is_worth(incumbent: Incumbent) -> bool:
    return incumbent.is_worth_searching and not incumbent.is_within(SMALL)


def spaces(problem: Problem, incumbent: Incumbent) -> list[Units]:
    """What moves: units, then runs where nodes may hold other numbers of ranks.

    Rules see nodes that the cost does not: slots are where the best placement has them.
    """
    seats = incumbent.gpu_of_rank if problem.job.rules else None
    keeps = seats is not None
    units = Units.of(problem, seats, keeps=keeps) if problem.choices else None
    runs = Runs.on_nodes(problem) if may_hold_runs(problem) else None
    if runs is not None and has_own_traffic(problem):
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


def _race(units: Units, incumbent: Incumbent, budget: Budget) -> None:
    """Races of walks from starts of different sorts."""
    pool = [units.walks()]
    units, allows = pool[0].units, pool[0].units.problem.allows
    of_flows, moves = units.partners is not None, _moves(pool[0])
    starts = best_starts(pool[0], incumbent.elite, incumbent.budget)
    if starts:
        numbers, cost = seeds(units.problem), pool[0].load(starts[0])
        brief = _brief(pool[0], next(numbers), starts[0], incumbent.budget)
        _offer(pool[0], brief.slots, incumbent)
        incumbent.prove_closer()
        # Walks of few moves for each unit are far from their ends: go on.
        gained = brief.cost < cost * (1 - SMALL)
        if moves == MOST_MOVES and gained and not of_flows:
            starts = [brief.slots]
        most = FEW_WALKS if of_flows else WALKS
        pool += [units.walks() for _ in range(1, min(budget.workers, most))]
        for race in range(units.problem.params.races):
            if not starts or not _is_worth(incumbent):  # none where time is up
                break
            _one_race(pool, numbers, starts, moves, incumbent, budget)
            starts = starts[2:] + starts[:2]
            if of_flows:  # from the best, or the next best, and longer
                moves *= LONGER // 2
                starts = best_starts(pool[0], incumbent.elite, budget)
                starts = starts[race % 2 :] or starts
                continue
            if not incumbent.elite:  # under rules nothing may be known yet
                continue
            best = units.slot_of_unit(incumbent.elite[0])
            if moves == MOST_MOVES and allows(units.gpu_of_rank(best)):
                starts = [best]
    incumbent.cut_short |= budget.is_over()


def _brief(walks: Walks, seed: int, slots: IntArray, budget: Budget) -> Walk:
    """The first walk of all: as long as one or two of a race, less for many units."""
    moves = _moves(walks, BRIEF_MOVES_A_UNIT, MOST_BRIEF_MOVES)
    scale = BRIEF_SCALES[_sort(walks.units)]
    if moves < SELDOM * len(slots):
        scale = min(COOL, scale)
    return walks.walk(Walk(seed, scale, slots), moves, budget)


def _one_race(
    pool: list[Walks],
    numbers: Iterator[int],
    starts: list[IntArray],
    moves: int,
    incumbent: Incumbent,
    budget: Budget,
) -> None:
    """Walk from starts at several heats; the best walks go on, longer."""
    units = pool[0].units
    of_flows = units.partners is not None
    heat = SCALES[_sort(units)]
    goes_on = moves == MOST_MOVES and len(starts) == 1
    walks = FEW_WALKS if of_flows or goes_on else WALKS
    racing = [
        Walk(
            next(numbers),
            heat[number % len(heat)],
            starts[number // len(heat) % len(starts)],
        )
        for number in range(walks)
    ]
    while not budget.is_over():
        walker = partial(walk_in_pool, pool, moves, budget)
        racing = in_order(walker, racing, budget.workers)
        _count(pool, incumbent)
        racing.sort(key=attrgetter("cost"))
        _offer(pool[0], racing[0].slots, incumbent)
        if len(racing) == 1:
            break
        moves *= LONGER
        racing = [
            walk._replace(seed=next(numbers), scale=walk.scale * COOLER)
            for walk in racing[: max(len(racing) // LONGER, 1)]
        ]


def _sort(units: Units) -> str:
    """What is priced, by which walks are more or less hot."""
    return "flows" if units.partners is not None else units.problem.goal.name


def seeds(problem: Problem) -> Iterator[int]:
    """Seeds of walks, of which no two searches have the same."""
    return count(problem.seed << 32)


def _moves(walks: Walks, each: int = MOVES_A_UNIT, most: int = MOST_MOVES) -> int:
    if walks.units.partners is not None:
        each = MOVES_A_UNIT_OF_FLOWS
    moves = min(most, each * len(walks.evaluator.slots.ranks))
    calls_scorer = getattr(walks.evaluator.kernel, "calls_scorer", False)
    return moves // BY_SCORER if calls_scorer else moves


def _offer(walks: Walks, slots: IntArray, incumbent: Incumbent) -> None:
    name = annealed_from(incumbent.method)
    incumbent.offer(name, walks.units.gpu_of_rank(slots))


def annealed_from(method: str) -> str:
    """What a placement is called that was annealed from one of a method."""
    return method if method.startswith(ANNEALED) else f"{ANNEALED}, from {method}"


def _count(pool: list[Walks], incumbent: Incumbent) -> None:
    for move, helped, tried in chain.from_iterable(one.counted() for one in pool):
        incumbent.moves.count(move, helped, tried)
