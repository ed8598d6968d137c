"""Parts of units that a program chooses, to make the slowest replica fast.

Good parts are scarce: a rack of 40 GPUs and one of 56 hold a group of 64 as 40 + 24 or
as 32 + 32, and what is left of either decides what others can have. The program counts
how often domains are filled in each way (paths along their room), how often units are
made up in each way, inside an outer domain or across, and how often replicas have
stages of each level. Shapes: C choices, P stages, L levels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import inf
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from placer.solve.count.engine import Limits, solve
from placer.solve.count.model import Program, Term
from placer.solve.count.paths import Arc, filled, paths
from placer.solve.count.summands import summands

if TYPE_CHECKING:
    from placer.solve.construct.experts.replica_levels import Replicas

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]

MOST_WAYS = 3_000  # to make up a unit
TICK = 1e-6  # s, in which steps are compared


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
    work : float
        Spent, in the unit of the limit.
    is_proved : bool
        Whether none are better, or there are none where none were found.
    """

    shares: Shares | None
    work: float
    is_proved: bool

    @property
    def is_refused(self) -> bool:
        """Whether there was too much to be asked."""
        return self.shares is None and not self.work and not self.is_proved


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

    def sent(self, made: Made) -> int:
        """What leaves the domains of a unit, once more if it leaves outer ones."""
        leaving = sum(size * (self.size - size) for size in made.sizes)
        return leaving * (1 + (made.home < 0))

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


def shared(question: Question, choices: Replicas, limits: Limits) -> Chosen:
    """The fastest slowest replica among these choices."""
    program = Program()
    arcs = _paths(program, question)
    slowest = float(choices.times[choices.levels.min()])
    ways = [
        # What shares an uplink counts as slow as its load may make it.
        way._replace(seconds=slowest) if way.home < 0 and question.uplinks else way
        for way in question.ways()
        if way.seconds <= slowest * (1 + 1e-9)
    ]
    made = [
        program.column(question.count, question.sent(way), block=way.home)
        for way in ways
    ]
    program.row([Term(column) for column in made], question.count, question.count)
    units = list(zip(made, ways, strict=True))
    least = min((way.sizes[0] for way in ways if way.home < 0), default=question.size)
    sending = slowest - question.latency.get(least, 0.0)
    _parts_suffice(program, question, arcs, units, sending)
    replicas = question.count // (choices.levels.shape[1] * question.alike)
    taken = [program.column(replicas) for _ in choices.seconds]
    program.row([Term(column) for column in taken], replicas, replicas)
    for level, seconds in enumerate(choices.times.tolist()):
        asked = question.alike * (choices.levels >= level).sum(axis=1)
        good = [
            Term(column) for column, way in units if way.seconds <= seconds * (1 + 1e-9)
        ]
        needed = [
            Term(column, -int(count))
            for column, count in zip(taken, asked, strict=True)
            if count
        ]
        program.row([*good, *needed], 0)
    dearest = max(question.sent(way) for way in ways) * question.count
    _slowest(program, taken, replicas, choices.seconds, dearest + 1)
    answer = solve(program, limits)
    counts = answer.counts
    if counts is None:
        return Chosen(None, answer.work, answer.is_proved)
    levels = np.repeat(choices.levels, [counts[column] for column in taken], axis=0)
    shares = _shares(question, arcs, units, counts)
    found = shares._replace(levels=levels)
    return Chosen(found, answer.work, answer.is_proved)


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
    _parts_suffice(program, question, arcs, made, inf)
    counts = solve(program, limits).counts
    return None if counts is None else _shares(question, arcs, made, counts)


def _shares(
    question: Question,
    arcs: Mapping[int, Mapping[Arc, int]],
    made: Sequence[tuple[int, Made]],
    counts: Sequence[int],
) -> Shares:
    """What so many of each column make, without replicas."""
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
    sending: float,
) -> None:
    """Domains hold the parts of units that lie at home, and of others together.

    Parts of the others leave their outer domain as if each were alone there, no more of
    them than its uplink carries in the time of ``sending``, s.
    """
    leaving: dict[int, list[Term]] = {home: [] for home in question.uplinks}
    for size in range(1, question.largest + 1):
        lent = []
        for home, mine in arcs.items():
            held = [Term(c) for a, c in mine.items() if a.is_part and a.size == size]
            used = _used(made, size, home)
            if held or used:
                most = question.count * question.size
                lent.append(program.column(most, block=home))
                program.row([*held, *used, Term(lent[-1], -1)], 0, 0)
                if home in leaving:
                    pairs = size * (question.size - size)
                    leaving[home].append(Term(lent[-1], pairs))
        used = _used(made, size, -1)
        if lent or used:
            program.row([*(Term(column) for column in lent), *used], 0, 0)
    for home, terms in leaving.items():
        program.row(terms, most=int(sending * question.uplinks[home]))


def _used(made: Sequence[tuple[int, Made]], size: int, home: int) -> list[Term]:
    return [
        Term(column, -way.sizes.count(size))
        for column, way in made
        if way.home == home and size in way.sizes
    ]


def _slowest(
    program: Program, taken: list[int], replicas: int, seconds: FloatArray, price: int
) -> None:
    """A tick of the slowest choice that is taken has a price."""
    tick = np.round((seconds - seconds[0]) / TICK).astype(np.int64)
    ticks = np.unique(tick).tolist()
    above = [program.column(1, price * (slow - fast)) for fast, slow in pairwise(ticks)]
    for fast, slow in pairwise(above):
        program.row([Term(fast), Term(slow, -1)], 0)
    for column, own in zip(above, ticks[1:], strict=True):
        slower = np.flatnonzero(tick == own).tolist()
        used = [Term(taken[choice], -1) for choice in slower]
        program.row([Term(column, replicas), *used], 0)
