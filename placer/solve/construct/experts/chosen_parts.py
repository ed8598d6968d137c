"""Expert groups in the parts that a program chooses, on domains along the tree.

Shapes: U units.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from placer.placement.placement import Placement
from placer.solve.construct.experts.graded_parts import graded
from placer.solve.construct.experts.parts_asked import Asked, Home, asked_of
from placer.solve.construct.experts.replica_levels import Replicas, replicas
from placer.solve.count.engine import Limits

if TYPE_CHECKING:
    from placer.solve.construct.experts.parts_program import Chosen, Question, Shares
    from placer.solve.problem.compiled import Problem
    from placer.solve.run.budget import Budget
    from placer.solve.run.incumbent import Candidate, Incumbent

IntArray = npt.NDArray[np.int64]

CLOSE = 1.0002  # steps that are no longer told apart


def chosen_parts(problem: Problem, incumbent: Incumbent, budget: Budget) -> None:
    """Parts of expert groups that programs choose for the slowest replica."""
    if problem.goal.name == "time":
        for found in chosen_fills(problem, incumbent, budget):
            incumbent.offer(*found)


def chosen_fills(
    problem: Problem, incumbent: Incumbent, budget: Budget
) -> Iterator[Candidate]:
    """(name, GPU of every rank) in finer and finer grain.

    Until there are too many ways to fill a domain.
    """
    is_wide = not incumbent.is_within(problem.params.parts_walk_gap)
    most = problem.params.chosen_program_work[is_wide]
    work = problem.params.chosen_parts_work[is_wide]
    for asked, grain, is_apart in _programs(problem):
        value = float(incumbent.value)
        if budget.is_over() or value <= incumbent.bound:
            return
        question = asked.question(grain, is_apart=is_apart)
        # Also slower ones than the incumbent's where little is left: walks start there.
        close = float(incumbent.bound) * (1 + problem.params.parts_gap)
        every = replicas(asked.parts, question.times(), max(value, close))
        for answer in _ever_faster(problem, question, every, (most, work), budget):
            work -= answer.work
            if answer.shares is not None:
                found = _exchanged(problem, asked, grain, answer.shares, question)
                yield "ep groups in chosen parts", found


def _ever_faster(
    problem: Problem,
    question: Question,
    every: Replicas,
    works: tuple[float, float],
    budget: Budget,
) -> Iterator[Chosen]:
    """What each program finds, of so much work, and all; later replicas are faster.

    Bisection over the steps. A program that ends without an answer may find one from
    another seed, so the steps that it was asked for come again while there is work. One
    that is refused ends it.
    """
    seed, (most, work) = problem.seed, works
    steps = np.unique(every.seconds)
    least, best = 0, len(steps)
    while work > 0 and least < best and not budget.is_over():
        first, last = least, best - 1
        while first <= last and work > 0 and not budget.is_over():
            middle = (first + last) // 2
            limits = Limits(min(most, work), budget.seconds_left, seed)
            answer = graded(question, every.up_to(float(steps[middle])), limits)
            work -= answer.work
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


def _programs(problem: Problem) -> Iterator[tuple[Asked, int, bool]]:
    """What to ask, in which grain, and whether outer domains are told apart."""
    for asked in asked_of(problem):
        several = len(set(asked.ground.outer.tolist())) > 1
        for grain in asked.ground.grains():
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
