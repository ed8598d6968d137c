"""Expert groups in parts that are annealed, from the best placements known.

A walk prices all that parts send with each change, uplinks that they share included.
The rings of gradients are arranged once parts lie still.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import inf
from typing import TYPE_CHECKING

import numpy as np

from placer.arrays import IntArray
from placer.solve.construct.experts.parts_asked import Asked, asked_of
from placer.solve.construct.experts.parts_order import (
    OrderSteps,
    RingOrder,
    along_the_tree,
)
from placer.solve.construct.experts.parts_pace import Pace
from placer.solve.construct.experts.parts_walk import PartsWalk

if TYPE_CHECKING:
    from placer.solve.problem.compiled import Problem
    from placer.solve.run.budget import Budget
    from placer.solve.run.incumbent import Candidate, Incumbent

SLOWER = 1.1  # times the slowest all-to-all with a NIC to itself: paths looked at
SHORT = 8  # what precedes the bound's programs gets one in so many parts of the time


def walked_parts(problem: Problem, incumbent: Incumbent, budget: Budget) -> None:
    """Parts of expert groups of the elite pool, annealed for the step time."""
    if _is_for(problem):
        incumbent.offer_all(walked_fills(problem, incumbent, budget))


def _is_for(problem: Problem) -> bool:
    if problem.goal.name != "time":
        return False
    # Deduplicated tokens do not add up over pairs of pieces.
    is_summed = not problem.job.expert_copies
    return is_summed and problem.job.world_size <= problem.params.exchange_ranks


def shortly_walked_parts(
    problem: Problem, incumbent: Incumbent, budget: Budget
) -> None:
    """The first walks where the bound's programs have blocks, and may take all time."""
    legs, part = problem.params.parts_walks[:1], budget.share(SHORT)
    for asked in asked_of(problem) if _is_for(problem) else ():
        if len(asked.parts.all_counts()[-1][0].uplinks) > 1:
            incumbent.offer_all(_walked(problem, asked, incumbent, part, legs))


def walked_fills(
    problem: Problem, incumbent: Incumbent, budget: Budget
) -> Iterator[Candidate]:
    """(name, GPU of every rank) of what walks end with.

    Short walks from each placement at first, long ones from the best of their ends.
    """
    legs = problem.params.parts_walks
    for asked in asked_of(problem):
        if _has_ended(problem, incumbent, budget):
            return
        yield from _walked(problem, asked, incumbent, budget, legs)


def first_walked(
    problem: Problem, asked: Asked, incumbent: Incumbent, budget: Budget
) -> Iterator[Candidate]:
    """The same of one walk, from the best placement, in little time."""
    if _is_for(problem) and not _has_ended(problem, incumbent, budget):
        _, rounds = problem.params.parts_walks[0]
        part = budget.share(SHORT)
        yield from _walked(problem, asked, incumbent, part, ((1, rounds),))


def _walked(
    problem: Problem,
    asked: Asked,
    incumbent: Incumbent,
    budget: Budget,
    legs: tuple[tuple[int, int], ...],
) -> Iterator[Candidate]:
    """Leg after leg: so many walks, the best of the last leg, so many batches each."""
    params = problem.params
    walks = list(_walks(problem, asked, incumbent))
    batches = params.parts_walk_rounds * len(asked.cohort)
    for most, rounds in legs:
        walks = sorted(walks, key=_step_s)[:most]
        before = sorted(map(_step_s, walks))
        for walk, _ in walks:
            if not _has_ended(problem, incumbent, budget):
                walk.go(min(rounds, batches), budget)
        walks.sort(key=_step_s)
        for walk, _ in walks[:1]:
            yield "ep groups in annealed parts", arranged(problem, asked, walk, budget)
        if _has_ended(problem, incumbent, budget):
            return
        is_close = incumbent.is_within(params.parts_gap)
        if is_close and before == sorted(map(_step_s, walks)):
            break


def _has_ended(problem: Problem, incumbent: Incumbent, budget: Budget) -> bool:
    """Whether no more is walked."""
    return budget.is_over() or incumbent.is_within(problem.params.parts_walk_gap)


def _step_s(walk: tuple[PartsWalk, float]) -> float:
    """Step of the best placement that a walk has met, and what comes on top, s."""
    return walk[0].best.step_s + walk[1]


def _walks(
    problem: Problem, asked: Asked, incumbent: Incumbent
) -> Iterator[tuple[PartsWalk, float]]:
    """From each placement of the elite pool in which no piece is divided.

    Also what a step takes besides: exposed gradients and pipelines across uplinks.
    """
    links, slot, pace = asked.links(), asked.slot(), pace_of(asked)
    for number, gpu_of_rank in enumerate(incumbent.elite):
        held = asked.ground.held(gpu_of_rank)
        if held is not None:
            rng = np.random.default_rng([problem.seed, number])
            step = problem.model.step(gpu_of_rank)
            walk = PartsWalk(links, pace, slot, held, rng)
            yield walk, step.step_time_s - walk.step_s


def pace_of(asked: Asked) -> Pace:
    """Paths through pipelines whose all-to-alls may be as slow as parts make them."""
    near = asked.parts.seconds(asked.ground.floor.tier + 1).values()
    return Pace.of(asked.parts, min(near), SLOWER * max(near))


def arranged(
    problem: Problem, asked: Asked, walk: PartsWalk, budget: Budget
) -> IntArray:
    """GPU of every rank, replicas in an order that keeps gradients and pipelines near.

    At first by what rings load, then by the step itself. Only who stops the search ends
    this, not the clock: walks take all of their part of the time.
    """
    _, held, slot = walk.best
    rng, tries = np.random.default_rng(problem.seed), problem.params.parts_order_tries
    seconds = walk.seconds_of(held)
    order = RingOrder(walk.links, walk.pace, held, seconds, rng, walk.kept)
    steps = OrderSteps(problem, asked, order, held)
    starts = [slot, along_the_tree(slot, held)]
    stopped = budget.anew(inf)
    starts += [order.improved(one, tries, stopped) for one in starts]
    best = min((steps.of(one) for one in starts), key=lambda one: one.seconds)
    ranks = problem.params.exchange_ranks_priced
    left = min(problem.fills_priced, ranks // problem.job.world_size)
    return steps.improved(best, left, stopped).gpu_of_rank
