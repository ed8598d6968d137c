"""Expert groups in the parts that the bound on the step time counts, laid out.

The bound asks whether any parts make all replicas faster than a step. Where some do,
what it counts says how each rack is filled, and which parts make up each group: that is
a placement. Its blocks are asked one by one (`count.blocks`), so on hundreds of racks
this ends where a program of all of them does not. Shapes: U units, D domains, C sets of
replicas, P stages.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np

from placer.arrays import FloatArray, IntArray
from placer.solve.bounds.experts.part_steps import PartSteps
from placer.solve.construct.experts.parts_asked import Asked, asked_of
from placer.solve.construct.experts.parts_walk import PartsWalk
from placer.solve.construct.experts.walked_parts import arranged, first_walked, pace_of
from placer.solve.count.blocks import solved_in_blocks
from placer.solve.count.engine import Limits
from placer.solve.count.paths import filled

if TYPE_CHECKING:
    from placer.solve.bounds.experts.part_counts import Stated
    from placer.solve.problem.compiled import Problem
    from placer.solve.run.budget import Budget
    from placer.solve.run.incumbent import Candidate, Incumbent

Parts = list[tuple[int, int]]  # of a unit: domains and sizes

ROUNDING = 1e-9


def block_parts(problem: Problem, incumbent: Incumbent, budget: Budget) -> None:
    """Parts of expert groups by blocks with thin uplinks, as the bound counts them.

    Half of the time that is left is for walks, which need no program to have ended.
    """
    if problem.goal.name == "time":
        incumbent.offer_all(_walked_before(problem, incumbent, budget))
        incumbent.offer_all(block_fills(problem, incumbent, budget.share(2)))


def _walked_before(
    problem: Problem, incumbent: Incumbent, budget: Budget
) -> Iterator[Candidate]:
    """(name, GPU of every rank) of a short walk where there are blocks.

    Their programs may take all of the time, and a walk may leave nothing to them.
    """
    for asked in asked_of(problem):
        by_step = PartSteps.finest(asked.parts, problem.params)
        steps = _open_steps(by_step, incumbent)
        if len(steps) and _stated(by_step, steps[0]) is not None:
            yield from first_walked(problem, asked, incumbent, budget)


def block_fills(
    problem: Problem, incumbent: Incumbent, budget: Budget
) -> Iterator[Candidate]:
    """(name, GPU of every rank) of the first steps from the bound on that are found."""
    params = problem.params
    work = params.parts_work_in_all
    for asked in asked_of(problem):
        by_step = PartSteps.finest(asked.parts, params)
        steps = _open_steps(by_step, incumbent)
        tried = 0
        while tried < len(steps) and work > 0:
            if budget.is_over() or incumbent.is_within(params.parts_walk_gap):
                return
            most = min(work, params.parts_program_work)
            limits = Limits(most, budget.seconds_left, problem.seed)
            stated = _stated(by_step, steps[tried])
            if stated is None:
                break
            answer = solved_in_blocks(stated.program, limits)
            work -= answer.work
            if answer.counts is not None:
                for gpu_of_rank in _laid(problem, asked, stated, answer.counts, budget):
                    yield "ep groups in parts by blocks", gpu_of_rank
                break
            tried = 2 * tried + 1


def _open_steps(by_step: PartSteps, incumbent: Incumbent) -> FloatArray:
    """Steps between the bound and the best placement, ascending, s.

    Without a bound all but the least, which no replica stays below.
    """
    steps = by_step.steps
    is_open = steps > max(incumbent.bound * (1 + ROUNDING), float(steps[0]))
    found: FloatArray = steps[is_open & (steps < incumbent.value)]
    return found


def _stated(by_step: PartSteps, step_s: float) -> Stated | None:
    """What parts below a step must add up to, if that is in several blocks."""
    stated = by_step.stated(float(step_s))
    return stated if stated and len(stated.arcs) > 1 else None


def _laid(
    problem: Problem, asked: Asked, stated: Stated, counts: list[int], budget: Budget
) -> Iterator[IntArray]:
    """GPU of every rank where parts lie as counted, units given to replicas so.

    Those of the same replicas, or of the same stage, lie side by side.
    """
    held = held_as_counted(asked, stated, counts)
    slot = asked.slot()
    rng = np.random.default_rng(problem.seed)
    walk = PartsWalk(asked.links(), pace_of(asked), slot, held, rng)
    order = np.argsort(walk.seconds, kind="stable")
    cohort, stage, _ = np.unravel_index(np.arange(slot.size), slot.shape)
    levels = np.repeat(stated.levels, [counts[c] for c in stated.taken], axis=0)
    level = np.zeros(slot.size, dtype=np.int64)
    if levels.shape == slot.shape[:2]:
        level = levels[cohort, stage]
    for first, second in ((cohort, stage), (stage, cohort)):
        given = np.empty_like(slot)
        given.ravel()[np.lexsort((second, first, -level))] = order
        walk = PartsWalk(asked.links(), pace_of(asked), given, held, rng)
        yield arranged(problem, asked, walk, budget)


def held_as_counted(asked: Asked, stated: Stated, counts: list[int]) -> IntArray:
    """Pieces of each unit in each domain; shape (U, D)."""
    ground = asked.ground
    rows = list(_units(stated, counts, _lying(asked, stated, counts)))
    held = np.zeros((len(rows), len(ground.room)), dtype=np.int64)
    for unit, row in enumerate(rows):
        for place, part in row:
            held[unit, place] += part
    return held


def _lying(
    asked: Asked, stated: Stated, counts: list[int]
) -> dict[tuple[int, int], list[int]]:
    """Domains that hold parts, by outer domain and size."""
    left = list(counts)
    found: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
    ground = asked.ground
    for place, room in enumerate(ground.room.tolist()):
        home = int(ground.outer[place])
        for part in filled(stated.arcs[home], left, room, 1)[0] if room else ():
            found[home, part].append(place)
    return found


def _units(
    stated: Stated, counts: list[int], lying: Mapping[tuple[int, int], list[int]]
) -> Iterator[Parts]:
    """Parts of each unit, as domains and sizes.

    Shares of no smaller parts than a unit asks for are enough, and those that ask for
    the largest come first.
    """
    shares: defaultdict[tuple[float, int], list[tuple[int, Parts]]] = defaultdict(list)
    several = []
    for column, way in stated.ways:
        for _ in range(counts[column]):
            if way.home < 0:
                several.append(way)
                continue
            parts = [(lying[way.home, part].pop(), part) for part in way.sizes]
            shares[way.limit, sum(way.sizes)].append((way.low, parts))
    for found in shares.values():
        found.sort(key=lambda share: share[0])
    for way in sorted(several, key=lambda way: -way.low):
        taken = [shares[way.limit, pieces].pop()[1] for pieces in way.sizes]
        yield [part for share in taken for part in share]
    size = stated.size
    for (_, pieces), found in shares.items():
        if pieces == size:
            yield from (parts for _, parts in found)
