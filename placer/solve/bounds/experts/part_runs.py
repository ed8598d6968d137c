"""Parts of units on nodes that hold runs of consecutive ranks.

A placement is a walk along the units, node by node. A *state* says how many pieces of a
unit lie behind, and how small its least part is so far. As many nodes lead to a state
as away from it (a circulation), so an integer program of those counts has a solution
for every placement. Like `part_counts` it asks for units that replicas faster than a
step must have. See docs/method.md, "Parts on nodes that hold runs".
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
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
    from collections.abc import Mapping

    from placer.solve.bounds.experts.expert_parts import StageParts
    from placer.solve.bounds.experts.part_counts import Counts
    from placer.solve.problem.params import Params
    from placer.solve.run.budget import Budget

MOST_COLUMNS = 20_000
RUNG, RUNGS = 1e-4, 7_000  # share of a bound between two steps; up to twice as much


class State(NamedTuple):
    """Pieces of a unit that lie on the nodes so far, and the least part of them."""

    behind: int
    least: int


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
    asked = PartSteps(parts, parts.all_counts()[0][0], params.expert_choices)
    runs = NodeRuns(asked.counts, Counter(parts.room[parts.room > 0].tolist()))

    def is_hopeless(value: float, limits: Limits) -> tuple[bool, float]:
        program = runs.program(asked.levels(value))
        if program is None:
            return False, 0.0
        answer = solve(program, limits)
        return answer.is_proved and answer.counts is None, answer.work

    rungs = np.array([(1 + RUNG) ** n for n in range(1, RUNGS)])
    found = raised(known, known * rungs, is_hopeless, params, budget)
    # Up to the next step of a replica the program is the same.
    return asked.next_step(found) if found > known else known


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
    """

    counts: Counts
    rooms: Mapping[int, int]

    def program(self, levels: IntArray) -> Program | None:
        """What replicas of these levels or faster ones ask for.

        None where it is too much to be counted. Without a solution there are no such
        replicas.

        Parameters
        ----------
        levels : ndarray, shape (C, P)
            Of each stage of a replica, the slowest that are allowed.
        """
        counts = self.counts
        states = counts.size * (counts.size // 2 + 1)
        if states * sum(self.rooms) > MOST_COLUMNS:
            return None
        program = Program()
        made = self._made(program)
        units = [Term(c, n) for ends in made.values() for c, n in ends]
        program.row(units, counts.number, counts.number)
        least = least_asked(levels, len(counts.times()))[1]
        good = [
            [
                Term(c, n * counts.together)
                for low, ends in made.items()
                if counts.near[low] < seconds
                for c, n in ends
            ]
            for seconds in slower_times(counts.times()).tolist()
        ]
        replicas_taken(program, counts.replicas, counts.alike * least, good)
        return program

    def _made(self, program: Program) -> dict[int, list[Term]]:
        """Nodes by what they hold, as columns: units that end there, by least part."""
        made: defaultdict[int, list[Term]] = defaultdict(list)
        through: defaultdict[State, list[Term]] = defaultdict(list)
        used: defaultdict[int, list[Term]] = defaultdict(list)
        begin = State(0, self.counts.size)
        known, left = {begin}, [begin]
        while left:
            state = left.pop()
            for room, nodes in self.rooms.items():
                for held in range(1, room + 1):
                    after, ended = self._after(state, held)
                    column = program.column(nodes)
                    through[state].append(Term(column, -1))
                    through[after].append(Term(column))
                    used[room].append(Term(column))
                    for low, units in ended.items():
                        made[low].append(Term(column, units))
                    if after not in known:
                        known.add(after)
                        left.append(after)
        for terms in through.values():
            program.row(terms, 0, 0)
        for room, terms in used.items():
            program.row(terms, most=self.rooms[room])
        return made

    def _after(self, state: State, held: int) -> tuple[State, Counter[int]]:
        """Where a node with so many pieces leads, and units by least part that end."""
        size, ended = self.counts.size, Counter[int]()
        behind, least = state
        while held:
            part = min(held, size - behind)
            least = min(least, part)
            behind, held = behind + part, held - part
            if behind == size:
                ended[least] += 1
                behind, least = 0, size
        return State(behind, least), ended
