"""Expert groups in parts of half nodes, on nodes that groups share.

In a launch by nodes the last ranks of one unit and the first of the next may lie on one
node. Parts are counted in halves of nodes, and chosen by the program of the bound.
Those of an odd size share nodes, or leave half of one free. See docs/method.md, "Half
nodes".

Shapes: U units, D domains along the tree, C sets of replicas, P stages.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from placer.arrays import IntArray
from placer.solve.bounds.case import Case
from placer.solve.bounds.experts.expert_parts import StageParts
from placer.solve.bounds.experts.part_steps import PartSteps
from placer.solve.construct.experts.parts_asked import Asked, asked_of
from placer.solve.construct.experts.parts_walk import PartsWalk
from placer.solve.construct.experts.unit_rows import UnitRows
from placer.solve.construct.experts.walked_parts import pace_of
from placer.solve.count.engine import Limits, solve
from placer.solve.problem.colocation import colocation_of, join
from placer.solve.tree.in_runs import fill_in_runs

if TYPE_CHECKING:
    from placer.solve.problem.compiled import Problem
    from placer.solve.run.budget import Budget
    from placer.solve.run.incumbent import Candidate, Incumbent

WHOLE = 2  # halves of a node


def shared_nodes(problem: Problem, incumbent: Incumbent, budget: Budget) -> None:
    """Parts of half nodes where a launch by nodes has some to spare."""
    if problem.goal.name == "time" and not problem.forced_block:
        incumbent.offer_all(shared_fills(problem, incumbent, budget))


def shared_fills(
    problem: Problem, incumbent: Incumbent, budget: Budget
) -> Iterator[Candidate]:
    """(name, GPU of every rank) of the first steps from the bound on that are found."""
    for asked in asked_of(problem):
        halves = _in_halves(problem, asked)
        rows = halves and _rows(problem, halves, incumbent, budget)
        if halves and rows:
            walk = PartsWalk(
                halves.links(),
                pace_of(halves),
                rows.slot,
                rows.held,
                np.random.default_rng(problem.seed),
                rows.kept,
                WHOLE,
            )
            if not rows.kept.all():
                walk.go(problem.params.parts_walks[-1][1], budget)
            _, held, slot = walk.best
            gpu_of_rank = _laid(problem, halves, rows, held, slot)
            if gpu_of_rank is not None:
                yield "ep groups on shared nodes", gpu_of_rank


def _in_halves(problem: Problem, asked: Asked) -> Asked | None:
    """The same in halves of nodes; None where units are not runs of equal nodes."""
    ground, sizes = asked.ground, np.unique(problem.machine.gpus_of_node)
    node = ground.pieces.ranks
    is_run = (np.diff(ground.units.ranks, axis=1) == 1).all()
    if len(sizes) > 1 or node != sizes[0] or node % WHOLE:
        return None
    if asked.alike > 1 or not is_run:
        return None
    together = colocation_of(problem.machine, problem.job, 1)
    each = np.arange(problem.job.world_size).reshape(-1, node // WHOLE)
    label = np.array([join(row, each) for row in together.label])
    parts = StageParts.of(Case.of(problem.model, together, label=label))
    if parts is None or parts.units.ranks != node // WHOLE:
        return None
    return replace(asked, parts=parts, ground=replace(ground, room=WHOLE * ground.room))


def _rows(
    problem: Problem, asked: Asked, incumbent: Incumbent, budget: Budget
) -> UnitRows | None:
    """Units of the first step from the bound on that is found, None without any."""
    params = problem.params
    by_step = PartSteps(
        asked.parts, asked.parts.all_counts()[0][0], params.expert_choices
    )
    work, tried = params.parts_work_in_all, 0
    least = max(float(incumbent.bound), float(by_step.steps[0]))
    steps = by_step.steps[by_step.steps > least]
    steps = steps[steps < incumbent.value]
    while tried < len(steps) and work > 0:
        if budget.is_over() or incumbent.is_within(params.parts_walk_gap):
            return None
        stated = by_step.stated(float(steps[tried]))
        if stated is None or len(stated.arcs) > 1:
            return None
        most = min(work, params.parts_program_work)
        limits = Limits(most, budget.seconds_left, problem.seed)
        answer = solve(stated.program, limits)
        work -= answer.work
        if answer.counts is not None:
            rows = UnitRows.of(asked, by_step.counts, stated, answer.counts)
            if rows is not None:
                return rows
        tried = 2 * tried + 1
    return None


def _laid(
    problem: Problem, asked: Asked, rows: UnitRows, held: IntArray, slot: IntArray
) -> IntArray | None:
    """GPU of every rank; None where nodes do not hold such runs.

    Parameters
    ----------
    problem, asked, rows
    held : ndarray, shape (U, D), halves of nodes
    slot : ndarray, shape (C, P, 1)
    """
    ground, machine = asked.ground, problem.machine
    domain_of_rank = np.empty(ground.units.ranks.size, dtype=np.int64)
    for number, unit in zip(asked.slot().ravel(), slot.ravel(), strict=True):
        domains = rows.in_order(int(unit), np.flatnonzero(held[unit]))
        ranks = held[unit, domains] * asked.parts.units.ranks
        domain_of_rank[ground.units.ranks[number]] = np.repeat(
            ground.domain[domains], ranks
        )
    domain_of_node = machine.domain_of_node[ground.floor.tier]
    node = fill_in_runs(domain_of_node, machine.gpus_of_node, domain_of_rank)
    return None if node is None else machine.gpus_on(node)
