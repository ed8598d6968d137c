"""Which runs of ranks scale-up domains hold, where some ranks need others near.

A node of a node-contiguous launch holds one run of consecutive ranks, and so ranks that
nobody needs near beside those that somebody does. A program counts how often domains
are given to each *choice* of needy kinds, and how often they then hold each sort of run
(`run_sorts`):

    runs of a domain            <=  its nodes
    partners of a chosen kind   >=  as many as it needs, in each domain
    runs that begin at a place  =   runs that end there

Runs with a needy kind that is not chosen are not held. The last row says that the runs
can be laid end to end: their places are those in the period of a stretch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, combinations
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from placer.arrays import IntArray
from placer.solve.construct.transfers.run_sorts import (
    Run,
    Sort,
    Sorts,
    Stretch,
    length_of,
)
from placer.solve.count.engine import Limits, solve
from placer.solve.count.model import Program, Term
from placer.solve.run.budget import ENDLESS
from placer.solve.tree.capacity import rooms_of_hosts

if TYPE_CHECKING:
    from placer.solve.problem.compiled import Problem
    from placer.solve.problem.needs import Kind
    from placer.solve.problem.params import Params
    from placer.solve.run.budget import Budget

Choice = tuple[int, ...]


class Held(NamedTuple):
    """Runs that some alike domains hold, all in all."""

    domains: tuple[int, ...]
    runs: dict[Sort, int]


class _Filling(NamedTuple):
    """Domains that are alike and have the same choice, in columns of the program."""

    shape: int
    number: int
    runs: dict[Sort, int]


@dataclass(frozen=True, eq=False)
class DomainRuns:
    """What scale-up domains have room for; D domains.

    Attributes
    ----------
    nodes, room : ndarray, shape (D,)
        Nodes of each domain, and ranks that it may hold.
    longest : int
        Ranks of the longest run.
    """

    nodes: IntArray
    room: IntArray
    longest: int
    params: Params

    @classmethod
    def of(cls, problem: Problem) -> DomainRuns | None:
        """The domains of a launch by nodes; None for any other."""
        machine, tier = problem.machine, problem.model.fabric.scale_up_tier
        if problem.forced_block or tier <= machine.node_tier:
            return None
        rooms = rooms_of_hosts(machine, machine.gpus_of_node, tier)
        nodes, room = np.array([(len(of), sum(of)) for of in rooms]).T
        longest = max(max(of, default=0) for of in rooms)
        return cls(nodes, room, longest, problem.params)

    def held(
        self, kinds: Sequence[Kind], budget: Budget = ENDLESS
    ) -> list[Held] | None:
        """Runs that meet all needs, in the mean of alike domains; None if not found."""
        if not 0 < len(kinds) <= self.params.run_kinds or budget.is_over():
            return None
        sorts, choices = Sorts.of(kinds), list(_choices(kinds))
        if min(stretch.length for stretch in sorts.stretches) < self.longest:
            return None
        rooms = np.stack((self.nodes, self.room), axis=1)
        shapes, shape_of = np.unique(rooms, axis=0, return_inverse=True)
        program = Program()
        fillings: list[_Filling] = []
        for shape in range(len(shapes)):
            first = len(fillings)
            for choice in choices:
                runs = self._stated(program, shapes[shape], sorts, choice)
                fillings.append(_Filling(shape, *runs))
                if len(program.most) > self.params.run_columns:
                    return None
            given = [Term(filling.number) for filling in fillings[first:]]
            program.row(given, most=int((shape_of == shape).sum()))
        for stretch in sorts.stretches:
            _lay_end_to_end(program, stretch, [filling.runs for filling in fillings])
        for _ in range(self.params.run_rounds):
            seconds = budget.seconds_left
            limits = Limits(self.params.run_nodes, seconds, engine="highs")
            answer = solve(program, limits)
            if answer.counts is None:
                return None
            held = list(_held(fillings, answer.counts, shape_of.ravel()))
            if not self._joined(program, sorts, fillings, held):
                return held
        return None

    def _joined(
        self,
        program: Program,
        sorts: Sorts,
        fillings: Sequence[_Filling],
        held: Sequence[Held],
    ) -> bool:
        """Whether some runs made a closed walk by themselves, which is now ruled out.

        Places that no run leads to from the first rank begin none, unless one leads
        there.
        """
        found = False
        used = {run for some in held for sort in some.runs for run in sort}
        for stretch in sorts.stretches:
            own = [run for run in used if run.first == stretch.first]
            reached = _reached(stretch, own)
            if all(run.begin in reached for run in own):
                continue
            found, terms = True, []
            for runs in (filling.runs for filling in fillings):
                for sort, column in runs.items():
                    for run in (one for one in sort if one.first == stretch.first):
                        begins = run.begin in reached
                        if not begins:
                            terms.append(Term(column, -1))
                        elif _end(stretch, run) not in reached:
                            terms.append(Term(column, float(self.nodes.sum())))
            program.row(terms, 0)
        return found

    def _stated(
        self, program: Program, shape: IntArray, sorts: Sorts, choice: Choice
    ) -> tuple[int, dict[Sort, int]]:
        """Columns of domains with a choice: how many, and their runs of each sort."""
        nodes, room = shape.tolist()
        number = program.column(len(self.nodes))
        runs = {
            sort: program.column(float(self.nodes.sum()))
            for sort in sorts.up_to(self.longest)
            if sorts.needy(sort) <= set(choice)
        }
        used = [Term(column) for column in runs.values()]
        program.row([*used, Term(number, -nodes)], most=0)
        filled = [Term(column, length_of(sort)) for sort, column in runs.items()]
        program.row([*filled, Term(number, -room)], most=0)
        partners = {sort: sorts.partners(sort) for sort in runs}
        for kind in choice:
            near = [Term(runs[sort], int(of[kind])) for sort, of in partners.items()]
            program.row([*near, Term(number, -sorts.kinds[kind].needs)], 0)
        return number, runs


def _choices(kinds: Sequence[Kind]) -> Iterator[Choice]:
    """Needy kinds that a domain may have: each with partners that it may have too."""
    numbers = range(len(kinds))
    sizes = range(len(kinds) + 1)
    for choice in chain.from_iterable(combinations(numbers, n) for n in sizes):
        others = [kinds[index].ranks for index in numbers if index not in choice]
        allowed = ~np.any(others, axis=0) if others else True
        if all((kinds[index].partners & allowed).any() for index in choice):
            yield choice


def _end(stretch: Stretch, run: Run) -> int:
    """The place where a run ends, which is where the next one begins."""
    return (run.begin + run.length) % stretch.period


def _reached(stretch: Stretch, runs: Sequence[Run]) -> set[int]:
    """Places that runs lead to from the first rank of a stretch."""
    reached, ahead = {0}, [0]
    while ahead:
        place = ahead.pop()
        for run in runs:
            end = _end(stretch, run)
            if run.begin == place and end not in reached:
                reached.add(end)
                ahead.append(end)
    return reached


def _lay_end_to_end(
    program: Program, stretch: Stretch, fillings: Sequence[dict[Sort, int]]
) -> None:
    """At each place of the period as many runs end as begin, and all ranks are in one.

    One at the most reaches from the stretch to the next.
    """
    sums: list[list[Term]] = [[] for _ in range(stretch.period)]
    ranks, onward = [], []
    for sort, column in chain.from_iterable(runs.items() for runs in fillings):
        for run in sort:
            if run.first == stretch.first:
                sums[run.begin].append(Term(column))
                sums[_end(stretch, run)].append(Term(column, -1))
                ranks.append(Term(column, run.length))
        if len(sort) > 1 and sort[0].first == stretch.first:
            onward.append(Term(column))
    over = np.zeros(stretch.period)
    over[0] += 1
    over[stretch.length % stretch.period] -= 1
    for terms, more in zip(sums, over.tolist(), strict=True):
        program.row(terms, more, more)
    program.row(ranks, stretch.length, stretch.length)
    program.row(onward, most=1)


def _held(
    fillings: Sequence[_Filling], counts: Sequence[int], shape_of: IntArray
) -> Iterator[Held]:
    """What the counts of a program say, with the domains of each filling."""
    left = {f.shape: np.flatnonzero(shape_of == f.shape).tolist() for f in fillings}
    for filling in fillings:
        domains = tuple(
            left[filling.shape].pop() for _ in range(counts[filling.number])
        )
        runs = {sort: counts[c] for sort, c in filling.runs.items() if counts[c]}
        if runs:
            yield Held(domains, runs)
