"""A bound on the hop cost: parts of lines in two tiers at once, in whole numbers.

A *line* is a ring or clique of ``n`` members, one for each of the ``L`` vertices
across. What an outer domain holds of it is a *share*, made up of the *parts* that its
inner domains hold. At either tier, with prices of its own,

``cut  >=  sum over parts of c(k)  +  1/2 sum over domains and x of b(m_x)  -  P``

* ``c(k)`` is what a part of k members costs its line;
* ``m_x`` counts the parts of a domain with x members or more;
* ``b`` is the least boundary of a set across lines with its prices, and ``P`` what all
  ranks pay in prices: half the ranks of a stage times each price.

Times their rises both sums are bounded for one placement. Patterns of inner domains are
listed; parts make up shares, and shares lines, on paths (Valerio de Carvalho 1999, arc
flow). Any placement gives whole numbers for all this, of at most its own cost, so what
a solver proves of the least, less the constants, is a bound. Prices are rounded down;
one that all choices have in common is taken out, so that none is negative. See
docs/method.md, "Two tiers at once".
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import islice
from math import ceil, floor
from typing import TYPE_CHECKING

from placer.arrays import FloatArray, IntArray
from placer.solve.bounds.hops.graphs import common_divisor
from placer.solve.bounds.hops.parted_groups import CLOSE, FINE
from placer.solve.bounds.hops.parts import part_costs
from placer.solve.bounds.hops.tier_cut import ROUNDING
from placer.solve.count.engine import Limits, solve
from placer.solve.count.filling import less, partitions
from placer.solve.count.model import Program, Term

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from placer.solve.bounds.hops.tier_cut import TierCut

# Parts of a domain: how many of each size, the largest first.
Sizes = tuple[tuple[int, int], ...]
Pattern = tuple[Sizes, float]


@dataclass(frozen=True, eq=False)
class PartedLines:
    """Lines of one axis, and the domains of two tiers that hold them.

    Attributes
    ----------
    size, lines : int
        Members of a line, and lines.
    costs : ndarray, shape (N + 1,)
        What a part of 0, 1 .. members costs its line.
    across : (ndarray, ndarray), shapes (M + 1,)
        Half the least boundary of a set across lines and its prices, by its size, at
        either tier.
    priced : float
        What prices add to both cuts, each times its rise.
    rises : (float, float)
        Of the distance at either tier.
    quantum : Fraction
        Both cuts, each times its rise, are a multiple of it.
    domains : mapping of (int, int) to int
        Domains of the inner tier by outer domain and room.
    """

    size: int
    lines: int
    costs: FloatArray
    across: tuple[FloatArray, FloatArray]
    priced: float
    rises: tuple[float, float]
    quantum: Fraction
    domains: Mapping[tuple[int, int], int]

    @classmethod
    def of(
        cls, cuts: tuple[TierCut, TierCut], home: IntArray, rises: tuple[float, float]
    ) -> Iterator[PartedLines]:
        """One for each axis with lines; none where cuts are of several products.

        Parameters
        ----------
        cuts : (TierCut, TierCut)
            Of the inner and the outer tier, with the same vertices.
        home : ndarray, shape (D,)
            Outer domain of each inner one.
        rises : (float, float)
            Of the distance at either tier.
        """
        inner, outer = cuts
        if len(inner.split) > 1:
            return
        found = Counter(zip(home.tolist(), inner.rooms.tolist(), strict=True))
        domains = {key: count for key, count in found.items() if key[1]}
        priced = rises[0] * inner.priced + rises[1] * outer.priced
        quantum = inner.quantum * common_divisor(rises)
        for (line, near), (_, far) in zip(inner.lines, outer.lines, strict=True):
            yield cls(
                line.size,
                inner.world // line.size,
                part_costs(line, line.size),
                (near / 2, far / 2),
                priced,
                rises,
                quantum,
                domains,
            )

    def least(self, limits: Limits, most_columns: int) -> float:
        """The least of both cuts, each times the rise at its tier; 0 if too large.

        Parameters
        ----------
        limits : Limits
            Of CP-SAT, whose bound counts whether it ends or not.
        most_columns : int
            Of the program.
        """
        patterns = self.patterns(most_columns)
        if patterns is None:
            return 0.0
        model = _Model(self, patterns)
        found = model.unit * max(0.0, solve(model.program, limits).bound)
        paid = found + model.given - ROUNDING * (found + abs(model.given))
        quanta = ceil(Fraction(paid - self.priced) / self.quantum - CLOSE)
        return float(max(0, quanta) * self.quantum)

    def fits(self, most_columns: int) -> bool:
        """Whether the program has no more columns."""
        return self.patterns(most_columns) is not None

    @cached_property
    def rooms(self) -> dict[int, int]:
        """Of the outer domains."""
        rooms: dict[int, int] = defaultdict(int)
        for (home, room), count in self.domains.items():
            rooms[home] += room * count
        return dict(rooms)

    def most(self, home: int) -> list[int]:
        """Most shares of an outer domain with 0, 1 .. members or more."""
        room, sets = self.rooms[home], len(self.across[1]) - 1
        sizes = range(1, min(self.size, room) + 1)
        return [0, *(min(room // size, sets) for size in sizes)]

    def patterns(self, most_columns: int) -> dict[int, list[Pattern]] | None:
        """What domains of each room may hold; None with too many columns in all."""
        part = min(self.size, max(room for _, room in self.domains))
        left = most_columns - self.size * min(self.size, max(self.rooms.values()))
        if left < 0:
            return None
        left -= sum(sum(self.most(home)) + self.size * part for home in self.rooms)
        rooms = Counter(room for _, room in self.domains)
        patterns = {}
        for room, times in rooms.items():
            if left < min(room, self.size * self.lines):  # as many patterns or more
                return None
            found = _patterns(room, min(self.size, room), self.across[0], self.costs)
            patterns[room] = [
                (sizes, self.rises[0] * cost)
                for sizes, cost in islice(found, left // times + 1)
            ]
            left -= times * len(patterns[room])
        return patterns if left >= 0 else None


class _Model:
    """The program, in units of price.

    Attributes
    ----------
    unit : float
        What a price of 1 is worth.
    given : float
        What is paid whatever is chosen.
    """

    def __init__(
        self, parted: PartedLines, patterns: Mapping[int, list[Pattern]]
    ) -> None:
        self.parted, self.program, self.given = parted, Program(), 0.0
        costs = [cost for found in patterns.values() for _, cost in found]
        across = parted.rises[1] * parted.across[1]
        ranges = max(costs) - min(costs), float(across.max() - across.min())
        self.unit = FINE * max(*ranges, parted.rises[1] * float(parted.costs.max()))
        self.unit = self.unit or 1.0
        parts: dict[tuple[int, int], list[Term]] = defaultdict(list)
        for (home, room), count in parted.domains.items():
            found = patterns[room]
            columns = self._choice([cost for _, cost in found], count)
            for column, (sizes, _) in zip(columns, found, strict=True):
                for size, number in sizes:
                    parts[home, size].append(Term(column, number))
        shares: dict[int, list[Term]] = defaultdict(list)
        for home in parted.rooms:
            for size, share in self._shares(home, parts).items():
                shares[size].append(share)
        ends = {parted.size: parted.lines}
        self._join(shares, ends, max(shares))

    def _choice(self, costs: Sequence[float], count: int) -> list[int]:
        """Columns of what so many domains choose among."""
        least = min(costs)
        self.given += count * least
        columns = [self._column(count, cost - least) for cost in costs]
        self.program.row(map(Term, columns), count, count)
        return columns

    def _column(self, most: float, cost: float) -> int:
        return self.program.column(most, floor(cost / self.unit))

    def _shares(
        self, home: int, parts: Mapping[tuple[int, int], list[Term]]
    ) -> dict[int, Term]:
        """Shares of lines that parts in an outer domain make up, by size."""
        parted, rise = self.parted, self.parted.rises[1]
        most = parted.most(home)
        shares = {
            size: Term(self._column(most[size], rise * float(parted.costs[size])))
            for size in range(1, len(most))
        }
        held = {size: parts[home, size] for size in shares if (home, size) in parts}
        self._join(held, shares, max(held))
        for size in shares:
            costs = rise * parted.across[1][: most[size] + 1]
            columns = self._choice(costs.tolist(), 1)
            terms = [Term(column, sets) for sets, column in enumerate(columns)]
            larger = [share for other, share in shares.items() if other >= size]
            self.program.row([*terms, *less(larger)], 0, 0)
        return shares

    def _join(
        self,
        pieces: Mapping[int, list[Term]],
        ends: Mapping[int, float | Term],
        largest: int,
    ) -> None:
        """Pieces make up what is to be, one after the other."""
        used = partitions(self.program, ends, largest)
        for size in range(1, largest + 1):
            self.program.row([*pieces.get(size, []), *less(used[size])], 0, 0)


def _patterns(
    room: int, size: int, across: FloatArray, costs: FloatArray, parts: int = 0
) -> Iterator[Pattern]:
    """Parts that fit a room, of so many members at most, beside so many larger ones."""
    yield (), float(size * across[parts])
    for part in range(min(size, room), 0, -1):
        above = float((size - part) * across[parts])
        for number in range(1, min(room // part, len(across) - 1 - parts) + 1):
            rest = room - number * part
            level = float(across[parts + number])
            for sizes, cost in _patterns(rest, part - 1, across, costs, parts + number):
                own = above + level + number * float(costs[part])
                yield ((part, number), *sizes), cost + own
