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
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from math import floor, inf
from typing import NamedTuple

import numpy as np

from placer.placement.hop_parts import Cases, Count, Prices, What
from placer.solve.count import EngineLimits, Program, Row, Term, relaxed, solve

# Terms by size of what they count.
Sizes = dict[int, list[Term]]

# HiGHS meets rows and bounds to this. Prices are rounded down to this share of the
# dearest, so that it is as little of all.
TOLERANCE = 1e-6
# Whole numbers cost so much more than the relaxation, at the most: far more is rare.
WHOLE = 1.1


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

    def least(self, known: float) -> float:
        """What all domains cost at the least, as far as cuts at the root tell.

        Parts of groups are counted in whole numbers. 0 where that is not looked for: it
        would hardly be more than is ``known``.
        """
        program, _, _, unit = self._stated()
        if unit * relaxed(program).value * WHOLE < known:
            return 0.0
        bound = solve(program, EngineLimits(work=1, engine="highs")).bound
        return unit * (bound - TOLERANCE * abs(bound))

    def cases(self, needed: float, stop: Callable[[], bool]) -> Cases | Prices | None:
        """Cases and prices that prove that all domains cost ``needed`` or more.

        None where none are found before it is to stop.
        """
        stated = self._stated(is_packed=True)
        return _cases(stated, needed / stated.unit, (), stop)

    def _stated(self, is_packed: bool = False) -> _Stated:
        """The program; if packed, outer domains hold their shares in whole numbers."""
        program, parts = Program(), defaultdict[int, list[Term]](list)
        counts, linked = dict[Count, list[Term]](), dict[tuple[int | None, int], int]()
        for outer, rooms in enumerate(self.rooms):
            filled = fillings(program, rooms, self.costs)
            placed = filled["part"]
            if self.share:
                made = self._shares(program, rooms, self.share[outer], is_packed)
                filled["share"] = made
                used = partitions(program, made, min(self.size, max(rooms)))
                linked |= _balance(program, outer, placed, used)
                placed = made
            for size, terms in placed.items():
                parts[size] += terms
            counts |= {
                Count(what, size, outer): terms
                for what, columns in filled.items()
                for size, terms in columns.items()
            }
        used = partitions(program, {self.size: self.number}, self.size)
        linked |= _balance(program, None, parts, used)
        unit = TOLERANCE * max(map(abs, program.price)) or 1.0
        program.price = [floor(price / unit) for price in program.price]
        return _Stated(program, counts, linked, unit)

    def _shares(
        self,
        program: Program,
        rooms: Mapping[int, int],
        price: Sequence[float],
        is_packed: bool,
    ) -> Sizes:
        """Shares of groups in an outer domain."""
        total = sum(room * count for room, count in rooms.items())
        price = price[: min(self.size, total) + 1]
        if is_packed:
            none = [0.0] * (total + 1)
            return fillings(program, {total: 1}, Costs(price, none, none))["part"]
        most = [min(self.number, total // share) for share in range(1, len(price))]
        return {
            share: [Term(program.column(most[share - 1], price[share]))]
            for share in range(1, len(price))
        }


class _Stated(NamedTuple):
    """A program on contents, and what its columns and rows are."""

    program: Program
    counts: dict[Count, list[Term]]
    linked: dict[tuple[int | None, int], int]  # rows by outer domain and size of parts
    unit: float  # of its prices

    def priced(self, rows: Sequence[float]) -> Prices:
        """Prices of parts, shares and bounds, by those of rows."""
        inner = len({outer for outer, _ in self.linked}) - 1
        price = np.zeros((inner + 1, 1 + max(size for _, size in self.linked)))
        for (outer, size), row in self.linked.items():
            price[-1 if outer is None else outer, size] = self.unit * rows[row]
        bounds = [self.unit * row for row in rows[len(self.program.rows) :]]
        return Prices(price[:-1] if inner else price, price[-1], bounds)


def _cases(
    stated: _Stated, needed: float, bounds: tuple[Row, ...], stop: Callable[[], bool]
) -> Cases | Prices | None:
    """Cases within bounds that prove what is needed; None if there are no more."""
    own, counts = stated.program, stated.counts
    if stop() or len(bounds) > len(counts):
        return None
    program = Program([*own.most], [*own.price], [*own.rows])
    for times, least, most in bounds:
        # Broken at a price, so that there always are prices.
        broken = {program.column(price=max(1.0, needed)): 1.0 if least > 0 else -1.0}
        program.rows.append(Row(times | broken, least, most))
    value, shares, prices = relaxed(program)
    if value >= needed:
        return stated.priced(prices)
    taken = {
        one: sum(shares[term.column] for term in terms) for one, terms in counts.items()
    }
    far = {one: abs(number - round(number)) for one, number in taken.items()}
    # The largest shares, then parts, of which a tenth or more is too much.
    order = {one: (one.what == "share", one.what != "total") for one in far}
    one = max(far, key=lambda c: (far[c] > TOLERANCE, *order[c], far[c] > 0.1, c.size))
    if far[one] <= TOLERANCE:
        return None
    times, most = {term.column: 1.0 for term in counts[one]}, floor(taken[one])
    fewer = _cases(stated, needed, (*bounds, Row(times, -inf, most)), stop)
    more = fewer and _cases(stated, needed, (*bounds, Row(times, most + 1, inf)), stop)
    return Cases(one, most, fewer, more) if fewer and more else None


def fillings(
    program: Program, rooms: Mapping[int, int], costs: Costs
) -> dict[What, Sizes]:
    """Columns of parts that fill rooms, the largest part first.

    Those of parts, of domains by their largest part and by all that they hold.

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

    begun = {0: [step(None, (0, 0), 0)]}
    for size in range(1, min(len(part) - 1, last) + 1):
        layer = size if in_layers else 0
        if in_layers:
            begun[size] = [step(None, (size, size), largest[size] + part[size])]
            parts[size] += begun[size]
        for at in range(layer, last + 1 - size):
            parts[size].append(step((at, layer), (at + size, layer), part[size]))
        for at in range(size, last + 1) if in_layers else ():
            step((at, size), (at, size - 1), 0)
    program.row(chain(*begun.values()), number, number)
    ends = [Term(program.column(number, total[at])) for at in range(last + 1)]
    for (at, size), terms in into.items():
        program.row(terms if size else [*terms, *_less([ends[at]])], 0, 0)
    # Larger rooms can take what fits smaller ones, so counts from above suffice.
    for room in sorted(rooms)[:-1]:
        larger = sum(count for other, count in rooms.items() if other > room)
        program.row(ends[room + 1 :], most=larger)
    total_of = {at: [end] for at, end in enumerate(ends)}
    return {"part": parts, "largest": begun, "total": total_of}


def partitions(
    program: Program, ends: Mapping[int, float | list[Term]], most: int
) -> Sizes:
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
        if isinstance(end, list):
            program.row([*into[place], *_less(end)], 0, 0)
        else:
            program.row(into[place], end, end)
    return steps


def _balance(
    program: Program, outer: int | None, placed: Sizes, used: Sizes
) -> dict[tuple[int | None, int], int]:
    """As many parts of each size are placed as are used; the rows that say so."""
    rows = {}
    for size in sorted({*placed, *used}):
        rows[outer, size] = len(program.rows)
        program.row([*placed.get(size, ()), *_less(used.get(size, ()))], 0, 0)
    return rows


def _less(terms: Iterable[Term]) -> list[Term]:
    """Terms with the other sign."""
    return [Term(column, -times) for column, times in terms]
