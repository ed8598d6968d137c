"""Expert groups in the parts that a program chooses, on domains along the tree.

Shapes: U units.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from placer.arrays import IntArray
from placer.placement.placement import Placement
from placer.solve.construct.experts.graded_parts import graded
from placer.solve.construct.experts.parts_asked import Asked, Home, asked_of
from placer.solve.construct.experts.replica_levels import Replicas, replicas
from placer.solve.construct.experts.walked_parts import SHORT
from placer.solve.count.engine import Limits

if TYPE_CHECKING:
    from placer.solve.construct.experts.parts_program import Chosen, Question, Shares
    from placer.solve.problem.compiled import Problem
    from placer.solve.run.budget import Budget
    from placer.solve.run.incumbent import Candidate, Incumbent

CLOSE = 1.0002  # steps that are no longer told apart


def chosen_parts(problem: Problem, incumbent: Incumbent, budget: Budget) -> None:
    """Parts of expert groups that programs choose for the slowest replica."""
    if problem.goal.name == "time":
        for found in chosen_fills(problem, incumbent, budget):
            incumbent.offer(*found)


def coarsely_chosen_parts(
    problem: Problem, incumbent: Incumbent, budget: Budget
) -> None:
    """The same in the coarsest grain, in one of so many parts of the time.

    Walks start there; from elsewhere they do not end as well.
    """
    is_close = incumbent.is_within(problem.params.parts_walk_gap)
    if problem.goal.name == "time" and not is_close:
        part = budget.share(SHORT)
        for found in chosen_fills(problem, incumbent, part, is_short=True):
            incumbent.offer(*found)


def chosen_fills(
    problem: Problem, incumbent: Incumbent, budget: Budget, *, is_short: bool = False
) -> Iterator[Candidate]:
    """(name, GPU of every rank) in finer and finer grain, or in the coarsest alone.

    Until there are too many ways to fill a domain.
    """
    is_long = not (is_short or incumbent.is_within(problem.params.parts_walk_gap))
    left = problem.params.chosen_programs[is_long]
    for asked, grain, is_apart in _programs(problem, is_short=is_short):
        value = float(incumbent.value)
        if budget.is_over() or value <= incumbent.bound:
            return
        question = asked.question(grain, is_apart=is_apart)
        # Where walks are to start, all near the bound will do, if slower than the best.
        close = float(incumbent.bound) * (1 + problem.params.parts_gap)
        for slowest in sorted({close, max(close, value)}) if is_short else (value,):
            every, is_found = replicas(asked.parts, question.times(), slowest), False
            for answer in _ever_faster(problem, question, every, left, budget):
                left -= answer.is_open
                if answer.shares is not None:
                    is_found = True
                    found = _exchanged(problem, asked, grain, answer.shares, question)
                    yield "ep groups in chosen parts", found
            if is_found:
                break


def _ever_faster(
    problem: Problem, question: Question, every: Replicas, programs: int, budget: Budget
) -> Iterator[Chosen]:
    """What each program finds; later replicas are faster.

    Bisection over the steps. A program that ends without an answer may find one from
    another seed, so the steps that it was asked for come again, until so many programs
    have ended so. One that is refused ends it.
    """
    seed, nodes = problem.seed, problem.params.chosen_nodes
    steps = np.unique(every.seconds)
    least, best = 0, len(steps)
    while programs > 0 and least < best and not budget.is_over():
        first, last = least, best - 1
        while first <= last and programs > 0 and not budget.is_over():
            middle = (first + last) // 2
            left = budget.seconds_left
            limits = Limits(nodes, left, seed, "scip", wants_proof=False)
            answer = graded(question, every.up_to(float(steps[middle])), limits)
            programs -= answer.is_open
            if answer.shares is not None:
                best, last = middle, middle - 1
            else:
                first = middle + 1
                if answer.is_proved:
                    least = first
            yield answer
            if answer.is_refused:
                return
        if best < len(steps) and steps[best] <= CLOSE * steps[least]:
            break
        seed += 1


def _programs(problem: Problem, *, is_short: bool) -> Iterator[tuple[Asked, int, bool]]:
    """What to ask, in which grain, and whether outer domains are told apart.

    A short answer is of one program, which tells them apart where uplinks are thin.
    """
    for asked in asked_of(problem):
        grains = asked.ground.grains()
        if is_short:
            yield asked, grains[0], asked.has_thin_uplinks
            continue
        several = len(set(asked.ground.outer.tolist())) > 1
        for grain in grains:
            yield from ((asked, grain, apart) for apart in (False, True)[: 1 + several])


def _exchanged(
    problem: Problem, asked: Asked, grain: int, shares: Shares, question: Question
) -> IntArray:
    """GPU of every rank, units changing places while that makes gradients faster.

    What leaves an outer domain depends on the stages that it has units of.
    """
    rng = np.random.default_rng(problem.seed)
    laid = partial(asked.ground.node_of_rank, grain, range(len(asked.cohort)))

    def priced(homes: Sequence[Home]) -> tuple[float, IntArray]:
        placement = Placement.on_nodes(problem.machine, laid(homes))
        return float(problem.goal.value(placement.gpu_of_rank)), placement.gpu_of_rank

    starts = asked.homes(grain, shares, question)
    found = [(*priced(homes), homes) for homes in starts]
    value, best, homes = min(found, key=lambda one: one[0])
    ranks = problem.params.exchange_ranks_priced
    for _ in range(min(problem.fills_priced, ranks // problem.job.world_size)):
        changed = homes.copy()
        one, other = rng.choice(len(homes), 2)
        changed[one], changed[other] = homes[other], homes[one]
        changed_value, gpu_of_rank = priced(changed)
        if changed_value < value:
            value, best, homes = changed_value, gpu_of_rank, changed
    return best
