"""Paths that count how rooms are filled and how things are made up (arc flow).

Source: Valerio de Carvalho 1999. A path steps from 0 to its end; columns count how many
paths take each step, so any whole numbers of them can be told apart into paths again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from placer.solve.count.model import Program, Term

# Terms by size of what they count.
Sizes = dict[int, list[Term]]


def fillings(
    program: Program,
    rooms: Mapping[int, int],
    first: Sequence[float],
    price: Sequence[float],
) -> Sizes:
    """Columns of parts that fill rooms, the largest part first.

    A layer of the paths for each largest size that may still come.

    Parameters
    ----------
    rooms : mapping of int to int
        How many there are of each size.
    first : sequence of float
        Price of a largest part of 0, 1 .. in a room, besides that of the part.
    price : sequence of float
        Of each part of 0, 1 ..
    """
    last, number = max(rooms), sum(rooms.values())
    sizes = range(1, min(len(price) - 1, last) + 1)
    into: dict[tuple[int, int], list[Term]] = defaultdict(list)
    parts: Sizes = defaultdict(list)

    def step(begin: tuple[int, int] | None, end: tuple[int, int], paid: float) -> Term:
        term = Term(program.column(number, paid))
        into[end].append(term)
        if begin:
            into[begin] += less([term])
        return term

    begun = [step(None, (0, 0), first[0])]
    for size in sizes:
        term = step(None, (size, size), first[size] + price[size])
        begun.append(term)
        parts[size].append(term)
        for at in range(size, last + 1):
            if at + size <= last:
                parts[size].append(step((at, size), (at + size, size), price[size]))
            step((at, size), (at, size - 1), 0)
    for at in range(last):
        step((at, 0), (at + 1, 0), 0)
    program.row(begun, number, number)
    for (at, size), terms in into.items():
        ends = 0 if size else rooms.get(at, 0)
        program.row(terms, ends, ends)
    return parts


def partitions(
    program: Program,
    ends: Mapping[int, float | Term],
    most: int,
) -> Sizes:
    """Columns of steps by their size, of paths to so many ends of each size.

    Parameters
    ----------
    most : int
        The largest step.
    """
    last = max(ends)
    into: Sizes = defaultdict(list)
    steps: Sizes = defaultdict(list)
    for at in range(last):
        for size in range(1, min(most, last - at) + 1):
            term = Term(program.column())
            into[at + size].append(term)
            into[at] += less([term])
            steps[size].append(term)
    for place in range(1, last + 1):
        end = ends.get(place, 0)
        if isinstance(end, Term):
            program.row([*into[place], *less([end])], 0, 0)
        else:
            program.row(into[place], end, end)
    return steps


def less(terms: Iterable[Term]) -> list[Term]:
    """The same terms, taken away."""
    return [Term(column, -times) for column, times in terms]
