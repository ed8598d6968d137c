"""Parts of units on nodes that hold runs of consecutive ranks.

A placement is a walk along the units, node by node. A *state* says how many pieces of a
unit lie behind, and how small its least part is so far. As many nodes lead to a state
as away from it (a circulation), so an integer program of those counts has a solution
for every placement. Like `part_counts` it asks for units that replicas faster than a
step must have. See docs/method.md, "Parts on nodes that hold runs".

A stage with more work than others, such as the one with the output layer, has no time
for small parts. So units are told apart by their stages in a second program: a walk
passes from a stage to another as often as the units in their order do.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from functools import cached_property
from itertools import islice, pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from placer.arrays import IntArray
from placer.solve.bounds.experts.level_boxes import (
    least_asked,
    replicas_taken,
    slower_times,
)
from placer.solve.bounds.experts.part_steps import PartSteps, raised
from placer.solve.count.engine import Limits, solve
from placer.solve.count.model import Program, Term
from placer.solve.problem.colocation import join

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from placer.solve.bounds.experts.expert_parts import StageParts
    from placer.solve.bounds.experts.part_counts import Counts
    from placer.solve.problem.params import Params
    from placer.solve.run.budget import Budget

MOST_COLUMNS = 20_000
MOST_TOLD = 4_096  # boxes of replicas whose stages are told apart
COARSE = 16  # of so many steps the first search tries one
END = -1  # instead of a stage
RUNG, RUNGS = 1e-4, 7_000  # share of a bound between two steps; up to twice as much


class State(NamedTuple):
    """Stage of a unit, its pieces on the nodes so far, and the least part of them."""

    stage: int
    behind: int
    least: int


class Walked(NamedTuple):
    """Where a node leads, units that end there, and from which stage to which one."""

    state: State
    ended: tuple[tuple[int, int], ...] = ()  # stage and least part
    passed: tuple[tuple[int, int], ...] = ()


def step_in_runs(
    parts: StageParts, known: float, params: Params, budget: Budget
) -> float:
    """The least step where nodes hold runs of whole pieces, s; a known one if higher.

    Parameters
    ----------
    known : float, s
    """
    if not are_runs(parts):
        return known
    counts, choices = parts.all_counts()[0][0], params.expert_choices
    rooms = Counter(parts.room[parts.room > 0].tolist())
    rungs = np.array([(1 + RUNG) ** n for n in range(1, RUNGS)])
    ways = ((), choices), (stages_of_units(parts), min(choices, MOST_TOLD))
    for stages, most in ways:
        asked, runs = PartSteps(parts, counts, most), NodeRuns(counts, rooms, stages)
        steps = known * rungs if not stages or asked.has_some else asked.steps

        def is_hopeless(
            value: float,
            limits: Limits,
            asked: PartSteps = asked,
            runs: NodeRuns = runs,
        ) -> tuple[bool, float]:
            levels = asked.levels(value)
            program = runs.program(levels) if len(levels) else None
            if program is None:
                return not len(levels), 0.0
            answer = solve(program, limits)
            return answer.is_proved and answer.counts is None, answer.work

        found = raised(known, steps[COARSE - 1 :: COARSE], is_hopeless, params, budget)
        found = raised(found, steps, is_hopeless, params, budget)
        # Up to the next step of a replica the program is the same.
        known = asked.next_step(found) if found > known else known
    return known


def stages_of_units(parts: StageParts) -> tuple[int, ...]:
    """The stage of each unit, in the order of their ranks."""
    ranks = parts.units.ranks * parts.units.pieces
    of_rank = parts.step.model.job.parallelism.coordinates["pp"]
    return tuple(of_rank[::ranks].tolist())


def are_runs(parts: StageParts) -> bool:
    """Whether each domain is a node that holds a run of pieces, units being runs."""
    network, units = parts.network, parts.units
    tier = network.fabric.scale_up_tier
    if not network.in_runs or tier not in network.run_tiers:
        return False
    label = network.label[tier]
    if units.ranks == 1:
        label = np.arange(len(label))
    unit = join(label, parts.step.model.job.parallelism.ranks_of_group["ep"])
    return _follow(label, units.ranks) and _follow(unit, units.ranks * units.pieces)


def _follow(label: IntArray, ranks: int) -> bool:
    """Whether sets of so many ranks each have ranks that follow each other."""
    rows = label.reshape(-1, ranks)
    return bool((rows == rows[:, :1]).all())


@dataclass(frozen=True, eq=False)
class NodeRuns:
    """Units along nodes that hold runs of their pieces.

    Attributes
    ----------
    counts : Counts
        Of units.
    rooms : mapping of int to int
        Nodes by room, in pieces.
    stages : tuple of int
        Of each unit, in order; empty where stages are not told apart.
    """

    counts: Counts
    rooms: Mapping[int, int]
    stages: tuple[int, ...] = ()

    def program(self, levels: IntArray) -> Program | None:
        """What replicas of these levels or faster ones ask for.

        None where it is too much to be counted. Without a solution there are no such
        replicas.

        Parameters
        ----------
        levels : ndarray, shape (C, P)
            Of each stage of a replica, the slowest that are allowed.
        """
        counts, program = self.counts, Program()
        made = self._made(program)
        if made is None:
            return None
        good = []
        for stage, number in sorted(Counter(self._in_order).items()):
            of_stage = {low: ends for (one, low), ends in made.items() if one == stage}
            units = [Term(c, n) for ends in of_stage.values() for c, n in ends]
            program.row(units, number, number)
            good += [
                [
                    Term(c, n * counts.together)
                    for low, ends in of_stage.items()
                    if counts.near[low] < seconds
                    for c, n in ends
                ]
                for seconds in slower_times(counts.times()).tolist()
            ]
        asked = self._asked(levels)
        asked = asked.reshape(len(asked), -1)
        replicas_taken(program, counts.replicas, counts.alike * asked, good)
        return program

    def _asked(self, levels: IntArray) -> IntArray:
        """Units of each stage and level, or faster, that replicas ask for; (C, P, L).

        Of replicas that ask for no less than another that one alone.
        """
        count = len(self.counts.times())
        if not self.stages:
            return least_asked(levels, count)[1][:, None]
        kept: list[int] = []
        left = np.argsort(levels.sum(axis=1), kind="stable")
        while len(left):
            kept.append(int(left[0]))
            left = left[(levels[left] < levels[left[0]]).any(axis=1)]
        asked = levels[kept][:, :, None] >= np.arange(count)
        return asked.astype(np.int64)

    @property
    def _in_order(self) -> tuple[int, ...]:
        return self.stages or (0,) * self.counts.number

    @cached_property
    def _passes(self) -> Counter[tuple[int, int]]:
        """How often a unit of each stage follows one of each, or the end."""
        return Counter(pairwise((*self._in_order, END)))

    def _made(self, program: Program) -> dict[tuple[int, int], list[Term]] | None:
        """Nodes by what they hold, as columns: units that end there.

        By stage and least part. None where there are too many.
        """
        nodes = self._nodes
        if len(nodes) > MOST_COLUMNS:
            return None
        made: defaultdict[tuple[int, int], list[Term]] = defaultdict(list)
        through: defaultdict[State, list[Term]] = defaultdict(list)
        used: defaultdict[int, list[Term]] = defaultdict(list)
        passed: defaultdict[tuple[int, int], list[Term]] = defaultdict(list)
        for room, state, after in nodes:
            column = program.column(self.rooms[room])
            through[state].append(Term(column, -1))
            through[after.state].append(Term(column))
            used[room].append(Term(column))
            for one, units in Counter(after.ended).items():
                made[one].append(Term(column, units))
            for one, times in Counter(after.passed).items():
                passed[one].append(Term(column, times))
        for terms in through.values():
            program.row(terms, 0, 0)
        for room, terms in used.items():
            program.row(terms, most=self.rooms[room])
        for one, terms in passed.items():
            program.row(terms, self._passes[one], self._passes[one])
        return made

    @cached_property
    def _nodes(self) -> list[tuple[int, State, Walked]]:
        """Room of a node, where it begins and where it leads; at most one too many."""
        return list(islice(self._all_nodes(), MOST_COLUMNS + 1))

    def _all_nodes(self) -> Iterator[tuple[int, State, Walked]]:
        begin = State(self._in_order[0], 0, self.counts.size)
        known, left = {begin}, [begin]
        while left:
            state = left.pop()
            for room in self.rooms:
                for held in range(1, room + 1):
                    for after in self._after(Walked(state), held):
                        yield room, state, after
                        if after.state not in known:
                            known.add(after.state)
                            left.append(after.state)

    def _after(self, walked: Walked, held: int) -> Iterator[Walked]:
        """Where a node leads that holds so many pieces more."""
        if not held:
            yield walked
            return
        size, (stage, behind, least) = self.counts.size, walked.state
        part = min(held, size - behind)
        least, behind, held = min(least, part), behind + part, held - part
        if behind < size:
            yield walked._replace(state=State(stage, behind, least))
            return
        ended = (*walked.ended, (stage, least))
        for (one, after), times in self._passes.items():
            passed = (*walked.passed, (one, after))
            if one != stage or passed.count((one, after)) > times:
                continue
            begin = State(self._in_order[0] if after == END else after, 0, size)
            if after != END or not held:  # no node holds the last and the first
                yield from self._after(Walked(begin, ended, passed), held)
