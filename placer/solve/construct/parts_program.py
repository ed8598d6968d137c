"""Parts of expert groups that a program chooses, by how slow they make each replica.

Good parts are scarce: a rack of 40 GPUs and one of 56 hold a group of 64 as 40 + 24 or
as 32 + 32, and what is left of either decides what others can have. A program counts
how often domains are filled in each way (paths along their room), how often units are
made up in each way, and how often replicas have stages of each quality, so that the
slowest replica is as fast as can be. Shapes: C choices, P stages, L levels.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from math import gcd
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from placer.solve.count.engine import Limits, solve
from placer.solve.count.model import Program, Term

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from placer.solve.bounds.expert_parts import StageParts

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]

MOST_LEVELS = 10
MOST_CHOICES = 300  # of as many slow stages
MOST_WAYS = 3_000  # to make up a unit
MORE_PARTS = 2  # than a unit has at the least
TICK = 1e-6  # s, in which steps are compared


class Choices(NamedTuple):
    """Replicas that may be had.

    Attributes
    ----------
    levels : ndarray, shape (C, P)
        Level of each stage.
    seconds : ndarray, shape (C,), s
        Least step with such a replica, ascending.
    """

    levels: IntArray
    seconds: FloatArray


class Shares(NamedTuple):
    """How all domains are filled, all units made up and all replicas chosen.

    Attributes
    ----------
    fills : mapping of int to list of list of int
        By the room of a domain, for each of them the pieces of its parts.
    units : list of list of int
        Pieces of the parts of each unit, the unit with the largest least part first.
    levels : ndarray, shape (replicas, P)
        Level of each stage, those of replicas that share their units once.
    """

    fills: Mapping[int, list[list[int]]]
    units: list[list[int]]
    levels: IntArray


@dataclass(frozen=True, eq=False)
class PartsProgram:
    """The program for one job and machine.

    Attributes
    ----------
    parts : StageParts
    alike : int
        Units of a stage that the same replicas wait for.
    """

    parts: StageParts
    alike: int

    @property
    def step(self) -> int:
        """Pieces in which rooms and units are counted."""
        packing = self.parts.packing
        return gcd(packing.size, *packing.rooms.tolist())

    def levels(self) -> list[int]:
        """Pieces of the least part of a unit, of each level."""
        known = [size for size in self.parts.seconds if size % self.step == 0]
        if len(known) > MOST_LEVELS:
            chosen = np.linspace(0, len(known) - 1, MOST_LEVELS).round()
            known = [known[int(i)] for i in chosen]
        return known

    def choices(self, value: float) -> Choices:
        """Replicas with a step below ``value``, s, slow stages where they cost least.

        Stages slow down one after the other, the slowest first.
        """
        times = np.array([self.parts.seconds[size] for size in self.levels()])
        stages = self.parts.step.model.job.parallelism.pp
        top = len(times) - 1
        rows = np.full((1, stages), top)
        found, seconds = [rows], [self.parts.step_times(times[rows])]
        for slow in range(stages):
            last = rows.min(axis=1) if slow == 0 else np.where(rows < top, rows, -1).max(1)
            last = np.zeros(len(rows), dtype=np.int64) if slow == 0 else last
            next_rows, next_seconds = [], []
            for level in range(top):
                begun = rows[last <= level]
                if not len(begun):
                    continue
                tried = np.repeat(begun, stages, axis=0)
                place = np.tile(np.arange(stages), len(begun))
                is_free = tried[np.arange(len(tried)), place] == top
                tried[np.arange(len(tried)), place] = level
                step_s = np.where(is_free, self.parts.step_times(times[tried]), np.inf)
                best = step_s.reshape(-1, stages).argmin(axis=1)
                chosen = np.arange(len(begun)) * stages + best
                next_rows.append(tried[chosen])
                next_seconds.append(step_s[chosen])
            if not next_rows:
                break
            rows, step_s = np.concatenate(next_rows), np.concatenate(next_seconds)
            order = np.argsort(step_s, kind="stable")[:MOST_CHOICES]
            order = order[step_s[order] < value]
            rows = rows[order]
            if not len(rows):
                break
            found.append(rows)
            seconds.append(step_s[order])
        rows, step_s = np.concatenate(found), np.concatenate(seconds)
        order = np.argsort(step_s, kind="stable")
        return Choices(rows[order], step_s[order])

    def solved(self, choices: Choices, limits: Limits) -> Shares | None:
        """The fastest slowest replica among these choices; None if none is found."""
        packing, step, levels = self.parts.packing, self.step, self.levels()
        rooms = (packing.rooms // step).tolist()
        size, largest = packing.size // step, packing.largest // step
        program = Program()
        arcs = _paths(program, rooms, packing.domains.tolist(), largest)
        lowest = levels[int(choices.levels.min())] // step
        ways = list(self._ways(size, largest, lowest))
        made = [program.column(self.parts.units.count) for _ in ways]
        for part in range(1, largest + 1):
            used = [Term(arcs[arc], 1) for arc in arcs if arc[1] - arc[0] == part and arc[2]]
            needed = [
                Term(column, -way.count(part))
                for column, way in zip(made, ways, strict=True)
                if part in way
            ]
            program.row([*used, *needed], 0, 0)
        stages = choices.levels.shape[1]
        replicas = self.parts.units.count // (stages * self.alike)
        taken = [program.column(replicas) for _ in choices.seconds]
        program.row([Term(column) for column in taken], replicas, replicas)
        for level, pieces in enumerate(levels):
            good = [
                Term(column)
                for column, way in zip(made, ways, strict=True)
                if min(way) * step >= pieces
            ]
            asked = self.alike * (choices.levels >= level).sum(axis=1)
            needed = [
                Term(column, -int(count))
                for column, count in zip(taken, asked, strict=True)
                if count
            ]
            if needed:
                program.row([*good, *needed], 0)
        _slowest(program, taken, replicas, choices.seconds)
        answer = solve(program, limits)
        if answer.counts is None:
            return None
        counts = answer.counts
        units = [
            [part * step for part in way]
            for column, way in zip(made, ways, strict=True)
            for _ in range(counts[column])
        ]
        rows = np.repeat(choices.levels, [counts[column] for column in taken], axis=0)
        fills = _filled(arcs, counts, rooms, packing.domains.tolist())
        return Shares(
            {room * step: [[p * step for p in one] for one in found] for room, found in fills.items()},
            sorted(units, key=lambda unit: -min(unit)),
            rows,
        )

    def _ways(self, size: int, largest: int, least: int) -> Iterator[list[int]]:
        """Ways to make up a unit of parts, those of few parts first."""
        fewest = -(-size // largest)
        found = 0
        for count in range(fewest, fewest + MORE_PARTS + 1 + (fewest == 1)):
            for way in _sums(size, count, least, largest):
                found += 1
                if found > MOST_WAYS:
                    return
                yield way


def _sums(total: int, count: int, least: int, most: int) -> Iterator[list[int]]:
    """Ascending summands from ``least`` to ``most``, as many as asked for."""
    if count == 1:
        if least <= total <= most:
            yield [total]
        return
    for first in range(least, min(most, total // count) + 1):
        for rest in _sums(total - first, count - 1, first, most):
            yield [first, *rest]


Arc = tuple[int, int, bool]


def _paths(
    program: Program, rooms: list[int], domains: list[int], largest: int
) -> dict[Arc, int]:
    """Columns of (begin, end, whether a part lies there) of paths along all rooms."""
    everywhere = sum(domains)
    arcs: dict[Arc, int] = {}
    for begin in range(rooms[-1]):
        arcs[begin, begin + 1, False] = program.column(everywhere)
        for end in range(begin + 1, min(begin + largest, rooms[-1]) + 1):
            arcs[begin, end, True] = program.column(everywhere)
    ends = dict(zip(rooms, domains, strict=True))
    for place in range(1, rooms[-1] + 1):
        terms = [Term(column) for arc, column in arcs.items() if arc[1] == place]
        terms += [Term(column, -1) for arc, column in arcs.items() if arc[0] == place]
        program.row(terms, ends.get(place, 0), ends.get(place, 0))
    return arcs


def _filled(
    arcs: Mapping[Arc, int], counts: list[int], rooms: list[int], domains: list[int]
) -> dict[int, list[list[int]]]:
    """Parts of each domain, by its room: the paths that make up the counts."""
    left = {arc: counts[column] for arc, column in arcs.items() if counts[column]}
    into: dict[int, list[Arc]] = {}
    for arc in left:
        into.setdefault(arc[1], []).append(arc)
    fills = {}
    for room, number in zip(rooms, domains, strict=True):
        fills[room] = []
        for _ in range(number):
            place, parts = room, []
            while place:
                arc = next(arc for arc in into[place] if left[arc])
                left[arc] -= 1
                place = arc[0]
                if arc[2]:
                    parts.append(arc[1] - arc[0])
            fills[room].append(parts)
    return fills


def _slowest(
    program: Program, taken: list[int], replicas: int, seconds: FloatArray
) -> None:
    """The price is that of the slowest choice that is taken."""
    ticks = np.unique(np.round((seconds - seconds[0]) / TICK).astype(np.int64))
    tick = np.round((seconds - seconds[0]) / TICK).astype(np.int64)
    above = [program.column(1, int(b - a)) for a, b in pairwise(ticks.tolist())]
    for one, other in pairwise(above):
        program.row([Term(one), Term(other, -1)], 0)
    for rank, column in enumerate(above, start=1):
        slower = [Term(t) for t, own in zip(taken, tick, strict=True) if own == ticks[rank]]
        program.row([Term(column, replicas), *(Term(t.column, -1) for t in slower)], 0)
