"""Programs in blocks that meet in few rows, by what each block can do as a whole.

A relaxation counts a fraction of a block's fills with a fraction of its uplink. Here
blocks are in one of their *patterns*, whole solutions of their own rows (Dantzig and
Wolfe 1960). A linear program mixes patterns and prices the rows that blocks share; at
these prices each block, solved as an integer program, says which pattern it would add.

A proof: let ``y >= 0`` be prices of shared rows ``a x >= b``. Every solution has ``y (a
x - b) >= 0``. So where the best of all blocks together at these prices, and of the
columns of none, stays below ``y b``, there is no solution. Prices are whole numbers,
hence so is the comparison.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import ceil, floor, inf
from time import monotonic
from typing import NamedTuple

import numpy as np

from placer.solve.count.columns import ColumnProgram, Optimum
from placer.solve.count.engine import Answer, Limits, solve
from placer.solve.count.model import COMMON, Program, Row, Term

SCALE = 1_000_000  # whole prices to one of the linear program
ROUNDS = 60
# Work of a block, and more and more of it where a proof is near.
LADDER = (0.01, 0.08, 0.64, inf)
HEAVY = 1e4  # what a block without a pattern costs, where a shared row lacks one
ROUNDING = 1e-6
NONE = Answer(None, -inf, 0.0, False, False)


class _Link:
    """A row that blocks share, as a sum of at least so much."""

    def __init__(self, times: Mapping[int, float], least: float) -> None:
        self.times, self.least = times, ceil(least)


@dataclass(eq=False)
class _Kind:
    """Blocks that are alike, column by column.

    Attributes
    ----------
    columns : list of list of int
        Of each block.
    program : Program
        Rows of one of them, by its own numbers of columns.
    links : list of dict of int to int
        How often each column enters shared rows.
    patterns : list of list of int
        Counts of the columns of one block.
    """

    columns: list[list[int]]
    program: Program
    links: list[dict[int, int]]
    patterns: list[list[int]] = field(default_factory=list)

    def worth(self, prices: Sequence[int]) -> list[int]:
        """What each column adds at such prices of shared rows."""
        return [sum(prices[i] * n for i, n in link.items()) for link in self.links]

    def take(self, taken: Sequence[int], counts: list[int]) -> None:
        """Set the counts of columns, each pattern being that of so many blocks."""
        number = np.repeat(np.arange(len(taken)), taken).tolist()
        for columns, at in zip(self.columns, number, strict=True):
            for column, count in zip(columns, self.patterns[at], strict=True):
                counts[column] = count

    def shared(self, pattern: Sequence[int]) -> dict[int, int]:
        """What a pattern adds to shared rows."""
        found: defaultdict[int, int] = defaultdict(int)
        for count, link in zip(pattern, self.links, strict=True):
            if count:
                for row, times in link.items():
                    found[row] += count * times
        return {row: total for row, total in found.items() if total}


class _Best(NamedTuple):
    """A pattern of a kind, what its blocks are worth in it, and at most in any."""

    counts: list[int] | None
    worth: float
    most: float


class Parted:
    """A program as its blocks and the rows that they share; prices are left out."""

    def __init__(self, program: Program) -> None:
        self.program = program
        block = program.block
        own: defaultdict[int, list[Row]] = defaultdict(list)
        self.links: list[_Link] = []
        for row in program.rows:
            homes = {block[column] for column in row.times}
            if len(homes) == 1 and COMMON not in homes:
                own[homes.pop()].append(row)
            else:
                self.links += _links(row)
        entries: list[dict[int, int]] = [{} for _ in block]
        for number, link in enumerate(self.links):
            for column, times in link.times.items():
                entries[column][number] = int(times)
        self.common = {c: entries[c] for c, home in enumerate(block) if home == COMMON}
        self.own = [row for rows in own.values() for row in rows]
        self.kinds = _kinds(program, own, entries)
        self.work, self.most, self.end = 0.0, 0.0, inf

    @property
    def blocks(self) -> int:
        """How many there are."""
        return sum(len(kind.columns) for kind in self.kinds)

    def answer(self, limits: Limits) -> Answer:
        """A solution, a proof that there is none, or neither."""
        self.most, self.end = limits.work, monotonic() + limits.seconds
        master = self._master()
        if self._priced(master, self._relaxed_prices())[0]:
            return Answer(None, inf, self.work, True, False)
        for _ in range(ROUNDS):
            found = master.solve()
            left = limits.work - self.work
            if found is None or left <= 0 or monotonic() > self.end:
                break
            if found.total < ROUNDING:
                seconds = self.end - monotonic()
                counts = self._mixed(Limits(left, seconds, limits.seed))
                if counts is not None:
                    return Answer(counts, 0.0, self.work, True, False)
                break
            is_refuted, added = self._priced(master, self._whole(found))
            if is_refuted:
                return Answer(None, inf, self.work, True, False)
            if not added:
                break
        return NONE._replace(work=self.work)

    def _whole(self, found: Optimum) -> list[int]:
        """Prices of shared rows, a linear program's first rows, as whole numbers."""
        rows = found.prices[: len(self.links)].tolist()
        return [max(0, round(SCALE * price)) for price in rows]

    def _relaxed_prices(self) -> list[int]:
        """Prices where blocks keep their own rows, but no column need be whole.

        If that alone speaks against the program, the first of all prices refute it.
        """
        bounds = [link for row in self.own for link in _links(row)]
        scaled = [(1.0, link) for link in self.links]
        scaled += [(HEAVY, link) for link in bounds]
        relaxed = ColumnProgram([scale * link.least for scale, link in scaled], 1.0)
        entries: list[dict[int, float]] = [{} for _ in self.program.most]
        for row, (scale, link) in enumerate(scaled):
            relaxed.add(0.0, {row: -scale})
            for column, times in link.times.items():
                entries[column][row] = scale * times
        for mine, most in zip(entries, self.program.most, strict=True):
            relaxed.add(0.0, mine, most)
        found = relaxed.solve()
        return [0] * len(self.links) if found is None else self._whole(found)

    def _master(self) -> ColumnProgram:
        """Shared rows, and as many patterns of each kind as it has blocks."""
        sums: list[float] = [link.least for link in self.links]
        sums += [HEAVY * len(kind.columns) for kind in self.kinds]
        master = ColumnProgram(sums, 1.0)
        for row in range(len(self.links)):
            master.add(0.0, {row: -1.0})
        for entries in self.common.values():
            master.add(0.0, {row: float(n) for row, n in entries.items()})
        return master

    def _priced(self, master: ColumnProgram, prices: list[int]) -> tuple[bool, int]:
        """Whether such prices refute the program, and how many patterns are new."""
        total = -float(
            sum(p * link.least for p, link in zip(prices, self.links, strict=True))
        )
        for column, entries in self.common.items():
            worth = sum(prices[row] * n for row, n in entries.items())
            if worth > 0:
                total += worth * self.program.most[column]
        found = [_Best(None, 0.0, inf)] * len(self.kinds)
        for work in LADDER:
            # As long as what is known does not speak against a proof.
            found = [
                self._best(kind, prices, work) if one.worth < one.most else one
                for kind, one in zip(self.kinds, found, strict=True)
            ]
            if total + sum(one.most for one in found) < 0:
                return True, 0
            is_known = all(one.counts is not None for one in found)
            if is_known and total + sum(one.worth for one in found) >= 0:
                break
        added = 0
        for number, (kind, one) in enumerate(zip(self.kinds, found, strict=True)):
            if one.counts is not None and one.counts not in kind.patterns:
                kind.patterns.append(one.counts)
                added += 1
                row = len(self.links) + number
                shared = {r: float(n) for r, n in kind.shared(one.counts).items()}
                master.add(0.0, {**shared, row: HEAVY})
        return False, added

    def _best(self, kind: _Kind, prices: list[int], work: float) -> _Best:
        """The pattern that is worth the most at such prices of shared rows."""
        worth = kind.worth(prices)
        kind.program.price = [-one for one in worth]
        left = max(min(work, self.most - self.work), 0.0)
        seconds = self.end - monotonic()
        answer = solve(kind.program, Limits(left, seconds, probes=False))
        self.work += answer.work
        blocks = len(kind.columns)
        if answer.counts is None:
            return _Best(None, 0.0, -inf if answer.is_proved else inf)
        total = sum(n * one for n, one in zip(answer.counts, worth, strict=True))
        most = total if answer.is_proved else floor(1 - answer.bound)
        return _Best(answer.counts, total * blocks, most * blocks)

    def _mixed(self, limits: Limits) -> list[int] | None:
        """Counts of all columns where each block is in one of the patterns found."""
        program = Program()
        terms: list[list[Term]] = [[] for _ in self.links]
        chosen: list[list[int]] = []
        for kind in self.kinds:
            blocks = len(kind.columns)
            chosen.append([program.column(blocks) for _ in kind.patterns])
            program.row([Term(c) for c in chosen[-1]], blocks, blocks)
            for column, pattern in zip(chosen[-1], kind.patterns, strict=True):
                for row, n in kind.shared(pattern).items():
                    terms[row].append(Term(column, n))
        common = {c: program.column(self.program.most[c]) for c in self.common}
        for column, entries in self.common.items():
            for row, n in entries.items():
                terms[row].append(Term(common[column], n))
        for link, sums in zip(self.links, terms, strict=True):
            program.row(sums, link.least)
        answer = solve(program, limits)
        self.work += answer.work
        if answer.counts is None:
            return None
        counts = [0] * len(self.program.most)
        for column, own in common.items():
            counts[column] = answer.counts[own]
        for kind, columns in zip(self.kinds, chosen, strict=True):
            kind.take([answer.counts[column] for column in columns], counts)
        return counts


def _links(row: Row) -> Iterator[_Link]:
    if row.least > -inf:
        yield _Link(row.times, row.least)
    if row.most < inf:
        yield _Link({c: -n for c, n in row.times.items()}, -row.most)


def _kinds(
    program: Program,
    own: Mapping[int, Sequence[Row]],
    entries: Sequence[dict[int, int]],
) -> list[_Kind]:
    """Blocks, those that are alike together."""
    columns: defaultdict[int, list[int]] = defaultdict(list)
    for column, home in enumerate(program.block):
        if home != COMMON:
            columns[home].append(column)
    found: dict[object, _Kind] = {}
    for home, mine in sorted(columns.items()):
        number = {column: n for n, column in enumerate(mine)}
        part = Program()
        for column in mine:
            part.column(program.most[column])
        for times, least, most in own[home]:
            terms = [Term(number[column], n) for column, n in times.items()]
            part.row(terms, least, most)
        links = [entries[column] for column in mine]
        rows = tuple((tuple(sorted(r.times.items())), r[1:]) for r in part.rows)
        shared = tuple(tuple(sorted(link.items())) for link in links)
        key = tuple(part.most), rows, shared
        found.setdefault(key, _Kind([], part, links)).columns.append(mine)
    return list(found.values())


def solved_in_blocks(program: Program, limits: Limits) -> Answer:
    """A solution, a proof that there is none, or neither; prices are left out.

    The program as a whole is asked where its blocks leave it open, or it has but one.
    With little work also before them: what follows from its rows together may refute in
    no time what patterns do not.
    """
    parted = Parted(program)
    if parted.blocks == 1:
        return solve(program, limits)
    brief = replace(limits, work=min(LADDER[1], limits.work), probes=False)
    answer = solve(program, brief)
    if answer.is_proved and answer.counts is None:
        return answer
    for ask in (parted.answer, partial(solve, program)):
        left = limits.work - answer.work
        if left <= 0:
            break
        more = ask(replace(limits, work=left))
        answer = more._replace(work=answer.work + more.work)
        if answer.is_proved:
            break
    return answer
