"""Expert groups in the parts that a program chooses, on domains along the tree."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from placer.placement.placement import Placement
from placer.solve.bounds.time import stage_parts
from placer.solve.construct.parts_program import PartsProgram, Shares
from placer.solve.construct.units import Floor, Units, floors, units_of
from placer.solve.count.engine import Limits
from placer.solve.tree.fill import tree_order

if TYPE_CHECKING:
    from placer.solve.problem.compiled import Problem
    from placer.solve.run.budget import Budget
    from placer.solve.run.incumbent import Candidate, Incumbent

IntArray = npt.NDArray[np.int64]

# Steps that a program looks for, in those of the bound.
NEAR = (1.02, 1.1, np.inf)


def chosen_parts(problem: Problem, incumbent: Incumbent, budget: Budget) -> None:
    """Parts of expert groups that make the slowest replica as fast as can be."""
    if problem.goal.name == "time":
        value, bound = float(incumbent.value), incumbent.bound
        for name, gpu_of_rank in chosen_parts_fills(problem, value, bound, budget):
            incumbent.offer(name, gpu_of_rank)


def chosen_parts_fills(
    problem: Problem, value: float, bound: float, budget: Budget
) -> Iterator[Candidate]:
    """(name, GPU of every rank) of the program's choice."""
    for floor in floors(problem):
        for units in units_of(problem.job, floor):
            program = _program(problem, floor, units)
            if program is None:
                continue
            shares = _shares(program, problem, value, bound, budget)
            if shares is not None:
                node_of_rank = _laid(floor, units, program, shares)
                placement = Placement.on_nodes(problem.machine, node_of_rank)
                yield "ep groups in chosen parts", placement.gpu_of_rank


def _program(problem: Problem, floor: Floor, units: Units) -> PartsProgram | None:
    """The program for such units, None if it has other ones."""
    if floor.tier != problem.model.fabric.scale_up_tier:
        return None
    parts = stage_parts(problem.model, floor.colocation, floor.capacity)
    if parts is None or parts.packing.work > problem.params.expert_part_work:
        return None
    size = parts.units.pieces * parts.units.ranks
    if floor.grain != parts.units.ranks or units.ranks.shape != (parts.units.count, size):
        return None
    if len(parts.seconds) < 2:
        return None
    places = np.unique(_cohort(units) * (units.stage.max() + 1) + units.stage, return_counts=True)[1]
    if (places != places[0]).any():
        return None
    return PartsProgram(parts, int(places[0]))


def _cohort(units: Units) -> IntArray:
    return units.coordinate.get("edp", np.zeros(len(units.ranks), dtype=np.int64))


def _shares(
    program: PartsProgram, problem: Problem, value: float, bound: float, budget: Budget
) -> Shares | None:
    choices = program.choices(value)
    work = problem.params.parts_program_work
    before = 0
    for near in NEAR:
        count = int(np.searchsorted(choices.seconds, bound * near))
        if count == before or budget.is_over():
            continue
        before = count
        some = choices._replace(levels=choices.levels[:count], seconds=choices.seconds[:count])
        limits = Limits(work, budget.seconds_left, problem.seed)
        shares = program.solved(some, limits)
        if shares is not None:
            return shares
    return None


def _laid(floor: Floor, units: Units, program: PartsProgram, shares: Shares) -> IntArray:
    """Node of every rank; shape (R,)."""
    grain = floor.grain
    domains = floor.machine.domain_of_node[floor.tier][tree_order(floor.machine)]
    along = domains[np.sort(np.unique(domains, return_index=True)[1])]
    room = np.bincount(floor.machine.domain_of_node[floor.tier], floor.capacity)
    fills = {size: list(found) for size, found in shares.fills.items()}
    free: dict[int, list[int]] = {}
    for place, domain in enumerate(along.tolist()):
        mine = fills.get(int(room[domain]) // grain)
        for part in mine.pop() if mine else []:
            free.setdefault(part, []).append(place)
    outer = floor.machine.domain_of_node[floor.tier + 1][tree_order(floor.machine)]
    outer = outer[np.sort(np.unique(domains, return_index=True)[1])]
    placed = [_near(unit, free, outer) for unit in shares.units]
    # The best units to the stages that ask for the most.
    cohort, stage = _cohort(units), units.stage
    asked = shares.levels[cohort, stage]
    least = np.array([min(unit) for unit in shares.units])
    main = np.array([min(place for place, _ in unit) for unit in placed])
    order = np.lexsort((main, -least))
    wanted = np.lexsort((stage, cohort, -asked))
    domain_of_rank = np.empty(units.ranks.size, dtype=np.int64)
    for index, unit in zip(wanted.tolist(), order.tolist(), strict=True):
        places, sizes = zip(*placed[unit], strict=True)
        held = np.repeat(along[list(places)], np.array(sizes) * grain)
        domain_of_rank[units.ranks[index]] = held
    return floor.node_of_rank(domain_of_rank, units)


def _near(unit: list[int], free: dict[int, list[int]], outer: IntArray) -> list[tuple[int, int]]:
    """Places and sizes of the parts of a unit, side by side if they can be."""
    found: list[tuple[int, int]] = []
    for part in sorted(unit, key=lambda size: len(free[size])):
        places = free[part]
        if not found:
            best = places[0]
        else:
            home = found[0][0]
            best = min(places, key=lambda p: (p == home, outer[p] != outer[home], abs(p - home)))
        places.remove(best)
        found.append((best, part))
    return found
