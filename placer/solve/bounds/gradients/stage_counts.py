"""Whether scale-up domains can hold all stages, and none of a stage too few ranks.

Racks of 9, 8, 9 and 2 GPUs cannot hold two stages of 14 ranks with three of a stage
wherever there is one: the rack of two must be used. A program counts the ranks of each
stage in each domain, none or enough. Where it has no solution there is no placement.

Shapes: D domains, P stages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from placer.arrays import IntArray
from placer.solve.count.engine import Limits, solve
from placer.solve.count.model import Program, Term

if TYPE_CHECKING:
    from placer.solve.bounds.gradients.crossings import Need
    from placer.solve.problem.params import Params


def may_hold(
    rooms: IntArray, size: int, grain: int, need: Need, params: Params
) -> bool:
    """Whether the domains may hold stages as they are needed; False is certain.

    Parameters
    ----------
    rooms : ndarray, shape (D,)
        Ranks that each domain may hold, together no fewer than there are.
    size, grain : int
        Ranks of a stage, and of the parts of it that no domain divides.
    params : Params
        How large a program is solved, and the work on it.
    """
    need = need._replace(ranks=need.ranks // grain)
    rooms, size, stages = rooms // grain, size // grain, len(need.ranks)
    rooms = np.sort(rooms[rooms >= need.ranks.min()])[::-1]
    if rooms.sum() < size * stages:
        return False
    if _holds_in_line(rooms, size, need) or rooms.size * stages > params.stage_counts:
        return True
    answer = solve(_program(rooms, size, need), Limits(params.stage_count_work))
    return answer.counts is not None or not answer.is_proved


def _holds_in_line(rooms: IntArray, size: int, need: Need) -> bool:
    """Whether one stage after the other can be laid along the domains."""
    stages = len(need.ranks)
    filled, laid = np.cumsum(rooms), size * np.arange(1, stages + 1)
    ends = np.union1d(filled[filled < laid[-1]], laid)
    stage, domain = np.searchsorted(laid, ends), np.searchsorted(filled, ends)
    is_enough = np.diff(ends, prepend=0) >= need.ranks[stage]
    is_alone = np.bincount(domain)[domain] <= need.longest[stage]
    return bool((is_enough & is_alone).all())


def _program(rooms: IntArray, size: int, need: Need) -> Program:
    """Ranks of each stage in each domain, and whether there are any."""
    program = Program()
    held = [[program.column(size) for _ in need.ranks] for _ in rooms]
    there = [[program.column(1) for _ in need.ranks] for _ in rooms]
    stages = len(need.ranks)
    for room, ranks, known in zip(rooms.tolist(), held, there, strict=True):
        program.row(map(Term, ranks), most=room)
        wants = zip(ranks, known, need.ranks.tolist(), need.longest, strict=True)
        for count, is_there, least, longest in wants:
            program.row([Term(count), Term(is_there, -least)], least=0)
            program.row([Term(count), Term(is_there, -room)], most=0)
            if longest < stages:
                others = [*map(Term, known), Term(is_there, stages - int(longest))]
                program.row(others, most=stages)
    for of_stage in zip(*held, strict=True):
        program.row(map(Term, of_stage), least=size, most=size)
    return program
