"""How many GPUs may hold ranks when no box of nodes holds more than it may."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from placer.base.arrays import IntArray
from placer.solve.count import Limits as EngineLimits
from placer.solve.count import Program, Term, solve

BUDGET_WORK = 1.0  # CP-SAT's deterministic seconds


def ranks_within(
    rooms: Sequence[tuple[IntArray, IntArray]], gpus_of_node: IntArray
) -> tuple[int, bool]:
    """Ranks that GPUs have room for, and whether so many really have.

    ``rooms``: box of each node, -1 for none, and the most ranks of each box; one pair
    at least. ``gpus_of_node``: shape (N,).
    """
    sorts, sort_of_node = np.unique(
        np.array([box for box, _ in rooms]), axis=1, return_inverse=True
    )
    room = np.bincount(sort_of_node.ravel(), gpus_of_node)
    program = Program()
    columns = [program.column(most=float(most), price=-1) for most in room]
    for (_, most), box in zip(rooms, sorts, strict=True):
        inside: dict[int, list[Term]] = {}
        for column, own in zip(columns, box.tolist(), strict=True):
            inside.setdefault(own, []).append(Term(column))
        for own, terms in inside.items():
            if own >= 0:
                program.row(terms, most=int(most[own]))
    answer = solve(program, EngineLimits(BUDGET_WORK))
    return round(-answer.bound), answer.is_proved
