"""Prices of ranks that scale-up domains cannot hold (`rack_ranks`).

A program fills a domain with runs of the most worth. What one domain holds a larger one
holds too, so each answer is a column of the linear program for all of them.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from operator import le
from typing import TYPE_CHECKING

import numpy as np

from placer.arrays import BoolArray, IntArray
from placer.solve.count.columns import ColumnProgram, entries_of
from placer.solve.count.engine import Answer, Limits, solve
from placer.solve.count.model import Program, Term

if TYPE_CHECKING:
    from placer.solve.bounds.transfers.rack_ranks import Classes, Need, Room, Sorts
    from placer.solve.problem.params import Params
    from placer.solve.run.budget import Budget

# Prices are whole numbers, so that sums are exact; and what is left of such a sum.
SCALE = 10_000
ROUNDING = 1e-6


@dataclass(frozen=True, eq=False)
class RackPrices:
    """Prices of ranks that domains cannot hold.

    Attributes
    ----------
    rooms : Counter of Room
    classes : Classes
    sorts : Sorts
    params : Params
    budget : Budget
    """

    rooms: Counter[Room]
    classes: Classes
    sorts: Sorts
    params: Params
    budget: Budget
    # What domains hold, as runs of each sort, and which kinds of domains can.
    _fillings: list[tuple[IntArray, BoolArray]] = field(
        default_factory=list, init=False
    )

    def refute(self) -> bool:
        """Whether such prices are found."""
        labels, tolls = self.sorts.labels.shape[1], len(self.sorts.tolled)
        program = self._program()
        for price, toll in self._first_prices():
            if self._cannot_hold(price, toll, program):
                return True
        while len(self._fillings) < self.params.rack_rounds * len(self.rooms):
            known, optimum = program.columns, program.solve()
            if optimum is None or optimum.total < ROUNDING:
                return False
            found = np.rint(SCALE * np.abs(optimum.prices)).astype(np.int64)
            if self._cannot_hold(found[:labels], found[len(found) - tolls :], program):
                return True
            if program.columns == known:
                return False
        return False

    @cached_property
    def _turn(self) -> deque[int]:
        """Kinds of domains, the next one to look at first."""
        return deque(range(len(self.rooms)))

    def _first_prices(self) -> Iterator[tuple[IntArray, IntArray]]:
        """All ranks at one price, without tolls and with; those with needs alone."""
        needy = np.asarray(self.classes.has.any(axis=1))
        alike, free = np.full(len(needy), SCALE), np.zeros_like(self.sorts.tolled)
        yield alike, free
        # Such runs might be in every domain: their ranks count once, where few.
        most = sum(n * len(room) * room[0] for room, n in self.rooms.items())
        if 0 < len(free) < most:
            yield alike, np.full(len(free), SCALE)
        if not needy.all():
            yield alike * needy, free

    def _program(self) -> ColumnProgram:
        """Rows for ranks of each label, domains of each kind, and ranks with tolls."""
        ranks = np.bincount(self.classes.label).tolist()
        domains, once = list(self.rooms.values()), [1] * len(self.sorts.tolled)
        program = ColumnProgram([*ranks, *domains, *once], sum(ranks))
        for row in range(len(ranks)):
            # A rank for which there is no room; one for which there is too much.
            program.add(1.0, {row: 1.0})
            program.add(0.0, {row: -1.0})
        for row in range(len(ranks), len(ranks) + len(domains) + len(once)):
            program.add(0.0, {row: 1.0})
        return program

    def _cannot_hold(
        self, price: IntArray, toll: IntArray, program: ColumnProgram
    ) -> bool:
        """Whether domains hold less than all ranks cost; else the program gets more.

        The kinds of domains take turns. When what is known that the others hold is
        enough, they are not looked at: the program has better prices by then.

        Parameters
        ----------
        price, toll : ndarray, shapes (L,) and (Q,)
        program : ColumnProgram
            Gets what a domain holds at the most.
        """
        sorts, known = self.sorts, program.columns
        total = int(price[self.classes.label].sum() - toll.sum())
        worth = sorts.labels @ price - sorts.on_toll @ toll
        rooms, domains = list(self.rooms), np.array(list(self.rooms.values()))
        most = np.full(len(rooms), -1)
        for _ in rooms:
            held = np.where(most < 0, self._held(worth), most)
            is_enough = int(domains @ held) >= total
            if self.budget.is_over() or (is_enough and program.columns > known):
                return False
            kind = self._turn[0]
            self._turn.rotate(-1)
            answer = self._filled(rooms[kind], worth)
            most[kind] = sum(rooms[kind]) * int(price.max())
            if np.isfinite(answer.bound):
                least = int(np.floor(-answer.bound + SCALE * ROUNDING))
                most[kind] = min(most[kind], least)
            if answer.counts is not None:
                self._learn(np.array(answer.counts[: len(worth)]), program)
        return int(domains @ most) < total

    def _held(self, worth: IntArray) -> IntArray:
        """The most worth that domains of each kind are known to hold."""
        held = np.zeros(len(self.rooms), dtype=np.int64)
        for runs, fits in self._fillings:
            np.maximum(held, int(runs @ worth), out=held, where=fits)
        return held

    def _learn(self, runs: IntArray, program: ColumnProgram) -> None:
        """What a domain holds, and so every other with nodes that are as large."""
        lengths = np.repeat(self.sorts.length, runs)
        sizes = sorted(lengths.tolist(), reverse=True)
        fits = np.array(
            [len(sizes) <= len(of) and all(map(le, sizes, of)) for of in self.rooms]
        )
        self._fillings.append((runs, fits))
        held, tolled = runs @ self.sorts.labels, runs @ self.sorts.on_toll
        for kind in np.flatnonzero(fits):
            rows = np.concatenate((held, np.zeros(len(fits), int), tolled))
            rows[len(held) + kind] = 1
            program.add(0.0, entries_of(rows))

    def _filled(self, room: Room, worth: IntArray) -> Answer:
        """The runs of the most worth in a domain with such nodes."""
        program, sorts = Program(), self.sorts
        runs = [
            program.column(min(times, len(room)), -price)
            for times, price in zip(sorts.times.tolist(), worth.tolist(), strict=True)
        ]
        # A run of more ranks than some nodes hold is on another one.
        for size in {0, *room}:
            longer = [Term(runs[s]) for s in np.flatnonzero(sorts.length > size)]
            program.row(longer, most=sum(one > size for one in room))
        has, meets = sorts.labels @ self.classes.has, sorts.labels @ self.classes.meets
        for number, of_class in enumerate(self.classes.needs):
            sums = (
                [Term(runs[s], int(of[s])) for s in np.flatnonzero(of)]
                for of in (has[:, number], meets[:, number])
            )
            _meet(program, of_class[0], len(of_class), *sums)
        seconds = self.budget.seconds_left
        return solve(program, Limits(self.params.rack_nodes, seconds, engine="highs"))


def _meet(
    program: Program, need: Need, alike: int, has: list[Term], meets: list[Term]
) -> None:
    """So many alike needs, each met wholly, in part or not at all.

    ``has`` and ``meets`` add up to the ranks of all that have the needs, and to the
    partners.
    """
    ranks, partners, needs, back = need.sizes
    least = back or 1
    is_parted = 2 * needs <= partners and 2 * least <= ranks
    whole, part = program.column(alike), program.column(alike * is_parted)
    program.row([Term(whole), Term(part)], most=alike)

    def lie(terms: list[Term], of_whole: int, of_part: int, **limit: float) -> None:
        program.row([*terms, Term(whole, -of_whole), Term(part, -of_part)], **limit)

    lie(has, ranks, least, least=0)
    lie(has, ranks, ranks - least, most=0)
    if back:
        lie(meets, partners, needs, least=0)
        lie(meets, partners, partners - needs, most=0)
    else:
        lie(meets, needs, needs, least=0)
        lie(meets, needs, 0, most=alike * (partners - needs))
