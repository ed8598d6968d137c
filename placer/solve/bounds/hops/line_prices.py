"""Prices of the parts of lines where nothing but the lines themselves has a cost.

A *line* is a ring or clique of one axis, a *part* what a rack holds of it (`parts`). A
linear program over paths: parts fill domains along their room, and add up to lines
along their length (Valerio de Carvalho 1999, arc flow). Its prices of parts are where
`parts` begins: a better start than none on machines with rooms of many sizes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from placer.arrays import FloatArray
from placer.solve.count.columns import ColumnProgram

if TYPE_CHECKING:
    from collections.abc import Sequence

    from placer.solve.bounds.hops.lagrange import SizeClass

# What a part too many or too few costs, in those of the dearest part.
MISSING = 100.0


def line_prices(
    costs: FloatArray, size: int, lines: int, classes: Sequence[SizeClass]
) -> FloatArray:
    """What a domain pays for a part of 0, 1 .. K members; shape (K + 1,).

    Parameters
    ----------
    costs : ndarray, shape (K + 1,)
        Of a part of 0, 1 .. K members.
    size, lines : int
        Members of a line, and lines.
    classes : sequence of SizeClass
        Domains, the largest last.
    """
    largest, scale = len(costs) - 1, float(costs.max())
    room = classes[-1].high
    sums = np.zeros(largest + room + size)
    for domains in classes:
        sums[largest + domains.high - 1] += domains.count
    sums[-1] = lines
    program = ColumnProgram(sums.tolist(), MISSING)
    for begin in range(room):
        _add_arcs(program, largest, begin, [(1, 0.0, {})])
        parts = range(1, min(largest, room - begin) + 1)
        _add_arcs(program, largest, begin, [(k, 0.0, {k - 1: 1.0}) for k in parts])
    for begin in range(size):
        parts = range(1, min(largest, size - begin) + 1)
        steps = [(k, float(costs[k]) / scale, {k - 1: -1.0}) for k in parts]
        _add_arcs(program, largest + room, begin, steps)
    optimum = program.solve()
    if optimum is None:
        return np.zeros(largest + 1)
    return np.append(0.0, -optimum.prices[:largest]) * scale


def _add_arcs(
    program: ColumnProgram,
    first: int,
    begin: int,
    steps: Sequence[tuple[int, float, dict[int, float]]],
) -> None:
    """Ways to go on from one place, whose row is the one before ``first + begin``."""
    leaves = {first + begin - 1: -1.0} if begin else {}
    for step, cost, parts in steps:
        program.add(cost, {first + begin + step - 1: 1.0} | leaves | parts)
