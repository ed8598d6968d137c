"""What domains hold, and how groups are made up of it, in whole numbers.

A *part* is what a domain holds of a group. Paths count domains by their *pattern*, the
parts they hold, the largest first, and groups by their *way*, the parts they are made
up of: as many parts of each size in all ways as in all patterns (Gilmore and Gomory
1961, cutting stock; Valerio de Carvalho 1999, arc flow). A path steps from 0 to its
end; columns count how many paths take each step, so any whole numbers of them can be
split into paths again.

Domains may lie in outer ones, which hold *shares* of groups, made up of their parts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import floor
from typing import NamedTuple

from placer.solve.count import EngineLimits, Program, Term, solve

# Terms by size of what they count.
Sizes = dict[int, list[Term]]

# HiGHS meets rows and bounds to this. Prices are rounded down to this share of the
# dearest, so that it is as little of all.
TOLERANCE = 1e-6


class Costs(NamedTuple):
    """What a domain costs."""

    # For a part of 0, 1 .. members that it holds.
    part: Sequence[float]
    largest: Sequence[float]  # besides, for the largest of them
    # Besides, for 0, 1 .. members that it holds in all.
    total: Sequence[float]


@dataclass(frozen=True, eq=False)
class Contents:
    """Groups of one size, and the domains that hold their parts."""

    # size and number: members of a group, and groups.
    size: int
    number: int
    rooms: list[dict[int, int]]  # domains by room, in members, for each outer domain
    costs: Costs  # of an inner domain
    # What a share of 0, 1 .. members costs in each outer domain; empty where outer
    # domains cost nothing.
    share: list[Sequence[float]]

    @property
    def columns(self) -> int:
        """Of the program, about."""
        ways = self.size**2 // 2
        found = ways
        for rooms in self.rooms:
            steps = any(self.costs.largest) + 1
            found += steps * min(self.size, max(rooms)) * max(rooms)
            found += ways if self.share else 0
        return found

    def least(self) -> float:
        """What all domains cost at the least, as far as cuts at the root tell.

        Parts of groups are counted in whole numbers.
        """
        program, parts = Program(), defaultdict[int, list[Term]](list)
        for outer, rooms in enumerate(self.rooms):
            placed = fillings(program, rooms, self.costs)
            if self.share:
                placed = self._shares(program, rooms, placed, self.share[outer])
            for size, terms in placed.items():
                parts[size] += terms
        made = partitions(program, {self.size: self.number}, self.size)
        _balance(program, parts, made)
        unit = TOLERANCE * max(map(abs, program.price)) or 1.0
        program.price = [floor(price / unit) for price in program.price]
        bound = solve(program, EngineLimits(work=1, engine="highs")).bound
        return unit * (bound - TOLERANCE * abs(bound))

    def _shares(
        self,
        program: Program,
        rooms: Mapping[int, int],
        placed: Sizes,
        price: Sequence[float],
    ) -> Sizes:
        """Shares of groups in an outer domain, of parts that fit its rooms."""
        total = sum(room * count for room, count in rooms.items())
        made = {
            share: Term(program.column(min(self.number, total // share), price[share]))
            for share in range(1, min(self.size, total) + 1)
        }
        _balance(program, placed, partitions(program, made, min(self.size, max(rooms))))
        return {share: [term] for share, term in made.items()}


def fillings(program: Program, rooms: Mapping[int, int], costs: Costs) -> Sizes:
    """Columns of parts that fill rooms, the largest part first.

    A layer of the paths for each largest size that may still come, where that counts.

    ``rooms``: how many there are of each size.
    """
    part, largest, total = costs
    last, number, in_layers = max(rooms), sum(rooms.values()), any(largest)
    into: dict[tuple[int, int], list[Term]] = defaultdict(list)
    parts: Sizes = defaultdict(list)

    def step(begin: tuple[int, int] | None, end: tuple[int, int], paid: float) -> Term:
        term = Term(program.column(number, paid))
        into[end].append(term)
        if begin:
            into[begin] += _less([term])
        return term

    begun = [step(None, (0, 0), 0)]
    for size in range(1, min(len(part) - 1, last) + 1):
        layer = size if in_layers else 0
        if in_layers:
            begun.append(step(None, (size, size), largest[size] + part[size]))
            parts[size].append(begun[-1])
        for at in range(layer, last + 1 - size):
            parts[size].append(step((at, layer), (at + size, layer), part[size]))
        for at in range(size, last + 1) if in_layers else ():
            step((at, size), (at, size - 1), 0)
    program.row(begun, number, number)
    ends = [Term(program.column(number, total[at])) for at in range(last + 1)]
    for (at, size), terms in into.items():
        program.row(terms if size else [*terms, *_less([ends[at]])], 0, 0)
    # Larger rooms can take what fits smaller ones, so counts from above suffice.
    for room in sorted(rooms)[:-1]:
        larger = sum(count for other, count in rooms.items() if other > room)
        program.row(ends[room + 1 :], most=larger)
    return parts


def partitions(program: Program, ends: Mapping[int, float | Term], most: int) -> Sizes:
    """Columns of steps by their size, of paths to so many ends of each size.

    ``most``: the largest step.
    """
    last = max(ends)
    into: Sizes = defaultdict(list)
    steps: Sizes = defaultdict(list)
    for at in range(last):
        for size in range(1, min(most, last - at) + 1):
            term = Term(program.column())
            into[at + size].append(term)
            into[at] += _less([term])
            steps[size].append(term)
    for place in range(1, last + 1):
        end = ends.get(place, 0)
        if isinstance(end, Term):
            program.row([*into[place], *_less([end])], 0, 0)
        else:
            program.row(into[place], end, end)
    return steps


def _balance(program: Program, placed: Sizes, used: Sizes) -> None:
    """As many parts of each size are placed as are used."""
    for size in sorted({*placed, *used}):
        program.row([*placed.get(size, ()), *_less(used.get(size, ()))], 0, 0)


def _less(terms: Iterable[Term]) -> list[Term]:
    """Terms with the other sign."""
    return [Term(column, -times) for column, times in terms]
