"""Whole things made up of pieces, as paths that are counted.

A path from 0 to ``n`` in steps of ``k`` is a thing of ``n`` made up of pieces of ``k``
(Valerio de Carvalho 1999, arc flow).
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from placer.solve.count.engine import MOST
from placer.solve.count.model import Program, Term

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


def paths(
    program: Program,
    ends: Mapping[int, float | Term],
    price: Sequence[int],
    *,
    is_full: bool,
) -> dict[int, list[Term]]:
    """Columns of steps by their length, on paths from 0 to so many ends.

    Where paths need not be full, they may go on by 1 for nothing.
    """
    most, last = len(price) - 1, max(ends)
    into: dict[int, list[Term]] = defaultdict(list)
    steps: dict[int, list[Term]] = defaultdict(list)
    for begin in range(last):
        for step in range(is_full, min(most, last - begin) + 1):
            column = program.column(MOST, price[step])
            end = begin + max(step, 1)
            into[end].append(Term(column))
            into[begin].append(Term(column, -1))
            steps[step].append(Term(column))
    for place in range(1, last + 1):
        end_here = ends.get(place, 0)
        if isinstance(end_here, Term):
            program.row([*into[place], *less([end_here])], 0, 0)
        else:
            program.row(into[place], end_here, end_here)
    return steps


def less(terms: Iterable[Term]) -> list[Term]:
    """The same terms, taken away."""
    return [Term(column, -times) for column, times in terms]
