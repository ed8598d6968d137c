"""Parts of units on domains whose uplinks they share, as fast as replicas ask.

Not all parts of one size are as good: beside a small part, which sends the most over
the uplink of a rack, a larger one waits too. So a fill of a domain has a level for each
of its parts, and a unit is as slow as the slowest. Uplinks of outer domains carry what
parts of units in several of them send. Shapes: C choices, P stages, L levels.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from placer.arrays import FloatArray
from placer.solve.bounds.experts.level_boxes import least_asked, replicas_taken
from placer.solve.construct.experts.parts_program import Chosen, Made, Question, Shares
from placer.solve.count.engine import Limits, solve
from placer.solve.count.model import Program, Term
from placer.solve.count.summands import fitting

if TYPE_CHECKING:
    from placer.solve.construct.experts.replica_levels import Replicas

ROUNDING = 1e-9
MOST_FILLS = 20_000  # ways to fill domains


class Column(NamedTuple):
    """How often units of a level are made up in a way."""

    number: int
    level: int
    made: Made


class Fill(NamedTuple):
    """How often domains of a room are filled with parts, and the level of each size."""

    number: int
    key: tuple[int, int]
    parts: tuple[int, ...]
    levels: dict[int, int]


class Lent(NamedTuple):
    """How often an outer domain lends a part to units of a level in several."""

    number: int
    home: int
    size: int
    level: int


def graded(question: Question, choices: Replicas, limits: Limits) -> Chosen:
    """Replicas among these choices."""
    chosen, asked = least_asked(choices.levels, len(choices.times))
    order = np.lexsort(asked.T[::-1])
    rows, asked = choices.levels[chosen][order], asked[order]
    first = int(rows.min())
    times = choices.times * (1 + ROUNDING)
    program = Program()
    units = _units(program, question, times, first)
    least = min((unit.made.sizes[0] for unit in units), default=1)
    fills = _fills(program, question, times, first, least)
    if not units or fills is None:
        return Chosen(None, fills is not None, fills is None)
    program.row([Term(u.number) for u in units], question.count, question.count)
    replicas = question.count // (rows.shape[1] * question.alike)
    levels = range(first, len(times))
    good = [[Term(u.number) for u in units if u.level >= level] for level in levels]
    needed = question.alike * asked[:, first:]
    taken = replicas_taken(program, replicas, needed, good)
    lent = _parts_suffice(program, units, fills, first)
    _uplinks_suffice(program, question, times, lent, question.latency.get(least, 0.0))
    answer = solve(program, limits)
    if answer.counts is None:
        return Chosen(None, answer.is_proved)
    counts = answer.counts
    filled: dict[tuple[int, int], list[list[int]]] = defaultdict(list)
    for fill in fills:
        filled[fill.key] += [list(fill.parts) for _ in range(counts[fill.number])]
    made = [
        u.made._replace(seconds=float(choices.times[u.level]))
        for u in units
        for _ in range(counts[u.number])
    ]
    found = np.repeat(rows, [counts[column] for column in taken], axis=0)
    return Chosen(Shares(filled, made, found), answer.is_proved)


def _units(
    program: Program, question: Question, times: FloatArray, first: int
) -> list[Column]:
    """Units of every level, the slowest first, no faster than their parts."""
    found = []
    for made in question.ways():
        fastest = int(np.count_nonzero(made.seconds <= times))
        found += [
            Column(program.column(question.count), level, made)
            for level in range(first, fastest)
        ]
    return found


def _fills(
    program: Program, question: Question, times: FloatArray, first: int, least: int
) -> list[Fill] | None:
    """Ways to fill the domains with parts; None if there are too many."""
    found: list[Fill] = []
    for key, domains in question.rooms.items():
        room, columns = key[1], []
        for parts in fitting(room, least, question.largest):
            load = sum(part * (question.size - part) for part in parts) / room
            levels = {
                part: int(np.count_nonzero(question.shared_s(part, load) <= times)) - 1
                for part in parts
            }
            if min(levels.values(), default=first) < first:
                continue
            if len(found) == MOST_FILLS:
                return None
            columns.append(program.column(domains))
            found.append(Fill(columns[-1], key, parts, levels))
        program.row([Term(column) for column in columns], domains, domains)
    return found


def _parts_suffice(
    program: Program, units: Sequence[Column], fills: Sequence[Fill], first: int
) -> list[Lent]:
    """Domains hold parts of each level for units at home, and for others together."""
    used: dict[tuple[int, int], list[tuple[Column, int]]] = defaultdict(list)
    for unit in units:
        for size, times in Counter(unit.made.sizes).items():
            used[unit.made.home, size].append((unit, times))
    held: dict[tuple[int, int], list[tuple[Fill, int]]] = defaultdict(list)
    for fill in fills:
        for size, times in Counter(fill.parts).items():
            held[fill.key[0], size].append((fill, times))
    across = {
        (size, u.level) for (home, size), of in used.items() if home < 0 for u, _ in of
    }
    lent = [
        Lent(program.column(), home, size, level)
        for home, size in held
        for level in sorted(level for part, level in across if part == size)
    ]
    top = max(unit.level for unit in units)
    for home, size in {**held, **{key: [] for key in used if key[0] >= 0}}:
        for level in range(first, top + 1):
            had = [
                Term(f.number, n)
                for f, n in held[home, size]
                if f.levels[size] >= level
            ]
            own = [Term(u.number, -n) for u, n in used[home, size] if u.level >= level]
            more = [
                Term(one.number, -1)
                for one in lent
                if (one.home, one.size) == (home, size) and one.level >= level
            ]
            if own or more:
                program.row([*had, *own, *more], 0)
    for size, level in sorted(across):
        had = [Term(o.number) for o in lent if (o.size, o.level) == (size, level)]
        own = [Term(u.number, -n) for u, n in used[-1, size] if u.level == level]
        program.row([*had, *own], 0)
    return lent


def _uplinks_suffice(
    program: Program,
    question: Question,
    times: FloatArray,
    lent: Sequence[Lent],
    latency: float,
) -> None:
    """Units in several outer domains are no faster than what their uplinks carry.

    Each part leaves its outer domain as if it were alone there.
    """
    for home, pairs in question.uplinks.items():
        mine = [one for one in lent if one.home == home]
        leaving = [
            Term(one.number, one.size * (question.size - one.size)) for one in mine
        ]
        for level in sorted({one.level for one in mine}):
            carried = int(max(0.0, float(times[level]) - latency) * pairs)
            most = question.count * question.size**2
            is_used = program.column(1)
            program.row([*leaving, Term(is_used, most)], most=carried + most)
            parts = [Term(one.number) for one in mine if one.level == level]
            program.row(
                [Term(is_used, -question.count * question.size), *parts], most=0
            )
