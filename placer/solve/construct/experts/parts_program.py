"""Parts of units that programs choose from, and those that are the cheapest together.

Good parts are scarce: a rack of 40 GPUs and one of 56 hold a group of 64 as 40 + 24 or
as 32 + 32, and what is left of either decides what others can have. The program of the
fewest hops counts how often domains are filled in each way (paths along their room) and
how often units are made up in each way, inside an outer domain or across. That of the
fastest replicas is in `graded_parts`. Shapes: P stages.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import NamedTuple

import numpy as np

from placer.arrays import FloatArray, IntArray
from placer.solve.count.engine import Limits, solve
from placer.solve.count.model import Program, Term
from placer.solve.count.paths import Arc, filled, paths
from placer.solve.count.summands import summands

MOST_WAYS = 3_000  # to make up a unit


class Made(NamedTuple):
    """A unit in parts.

    Attributes
    ----------
    sizes : tuple of int
        Of its parts, ascending.
    home : int
        The outer domain that it lies in, -1 if in several.
    seconds : float, s
        Least time of its all-to-all.
    """

    sizes: tuple[int, ...]
    home: int
    seconds: float


class Shares(NamedTuple):
    """How all domains are filled, all units made up and all replicas chosen.

    Attributes
    ----------
    fills : mapping of (int, int) to list of list of int
        By outer domain and room, for each such domain the sizes of its parts.
    units : list of Made
    levels : ndarray, shape (replicas, P)
        Level of each stage; replicas that share their units count once.
    """

    fills: Mapping[tuple[int, int], list[list[int]]]
    units: list[Made]
    levels: IntArray


class Chosen(NamedTuple):
    """What a program found.

    Attributes
    ----------
    shares : Shares, optional
    is_proved : bool
        Whether none are better, or there are none where none were found.
    is_refused : bool
        Whether there was too much to be asked.
    """

    shares: Shares | None
    is_proved: bool
    is_refused: bool = False

    @property
    def is_open(self) -> bool:
        """Whether the program ended without an answer."""
        return self.shares is None and not self.is_proved


@dataclass(frozen=True, eq=False)
class Question:
    """What is to be shared out, in whatever is counted.

    Attributes
    ----------
    rooms : mapping of (int, int) to int
        Domains by outer domain and room.
    size : int
        Of a unit.
    count, alike : int
        Units, and how many of a stage the same replicas wait for.
    near, across : mapping of int to float, s
        Time of a unit by its smallest part, inside an outer domain and across several.
    uplinks : mapping of int to float
        By outer domain, pairs of what is counted that its uplink carries in a second,
        one inside and one elsewhere; none where uplinks hold nothing back.
    latency : mapping of int to float, s
        Of an all-to-all across several outer domains, by the size of its smallest part.
    carried : float
        Pairs that the uplink of a domain carries in a second for each GPU, or what is
        counted, that it has room for; infinite where they are left out.
    waits : mapping of int to float, s
        Latency of an all-to-all for a member of a part of so many.
    """

    rooms: Mapping[tuple[int, int], int]
    size: int
    count: int
    alike: int
    near: Mapping[int, float]
    across: Mapping[int, float]
    uplinks: Mapping[int, float]
    latency: Mapping[int, float]
    carried: float = inf
    waits: Mapping[int, float] = field(default_factory=dict)

    @property
    def largest(self) -> int:
        """Size of the largest part."""
        return min(self.size, max(room for _, room in self.rooms))

    def times(self) -> FloatArray:
        """All times that units take, the longest first, s."""
        fastest = min(self.near.values())
        times = {*self.near.values(), *self.across.values()}
        return np.array(sorted((t for t in times if t >= fastest), reverse=True))

    def shared_s(self, part: int, load: float) -> float:
        """Time of a part in a domain with so many pairs for each that it has room for.

        They all share its uplink, which a whole unit leaves alone.
        """
        if part == self.size:
            return 0.0
        return load / self.carried + self.waits.get(part, 0.0)

    def ways(self) -> list[Made]:
        """All ways to make up a unit in few parts, wherever they may lie."""
        homes = sorted({home for home, _ in self.rooms})
        return [
            Made(sizes, home, seconds)
            for sizes in _few_parts(self.size, self.largest)
            for home in (*homes, -1)
            for seconds in [(self.across if home < 0 else self.near).get(sizes[0])]
            if seconds is not None and (home >= 0 or len(sizes) > 1 < len(homes))
        ]


def cheapest(
    question: Question, price: Callable[[Made], float], limits: Limits
) -> Shares | None:
    """Units of the least price together; None if none are found."""
    program = Program()
    arcs = _paths(program, question)
    made = [
        (program.column(question.count, price(way)), way) for way in question.ways()
    ]
    program.row([Term(column) for column, _ in made], question.count, question.count)
    _parts_suffice(program, question, arcs, made)
    counts = solve(program, limits).counts
    if counts is None:
        return None
    left = list(counts)
    fills = {
        key: filled(arcs[key[0]], left, key[1], n) for key, n in question.rooms.items()
    }
    units = [way for column, way in made for _ in range(counts[column])]
    return Shares(fills, units, np.empty((0, 0), dtype=np.int64))


def _few_parts(size: int, largest: int) -> list[tuple[int, ...]]:
    """Parts of a unit, as few as can be and two more at the most, or more even ones."""
    fewest = -(-size // largest)
    most = max(fewest + 2, 4)
    found: list[tuple[int, ...]] = []
    for count in range(fewest, most + 1):
        for sizes in summands(size, 1, largest, count):
            if len(found) == MOST_WAYS:
                return found
            found.append(sizes)
    even = (n for n in range(most + 1, size + 1) if size % n == 0)
    return [*found, *((size // n,) * n for n in even)]


def _paths(program: Program, question: Question) -> dict[int, dict[Arc, int]]:
    """Columns of the arcs of each outer domain: paths end at the rooms of domains."""
    found = {}
    for home in sorted({home for home, _ in question.rooms}):
        ends = {room: n for (at, room), n in question.rooms.items() if at == home}
        found[home] = paths(program, ends, 1, question.largest, home)
    return found


def _parts_suffice(
    program: Program,
    question: Question,
    arcs: Mapping[int, Mapping[Arc, int]],
    made: Sequence[tuple[int, Made]],
) -> None:
    """Domains hold the parts of units that lie at home, and of others together."""
    for size in range(1, question.largest + 1):
        lent = []
        for home, mine in arcs.items():
            held = [Term(c) for a, c in mine.items() if a.is_part and a.size == size]
            used = _used(made, size, home)
            if held or used:
                most = question.count * question.size
                lent.append(program.column(most, block=home))
                program.row([*held, *used, Term(lent[-1], -1)], 0, 0)
        used = _used(made, size, -1)
        if lent or used:
            program.row([*(Term(column) for column in lent), *used], 0, 0)


def _used(made: Sequence[tuple[int, Made]], size: int, home: int) -> list[Term]:
    return [
        Term(column, -way.sizes.count(size))
        for column, way in made
        if way.home == home and size in way.sizes
    ]
