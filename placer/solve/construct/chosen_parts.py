"""Expert groups in the parts that a program chooses, on domains along the tree.

Shapes: R ranks, U units, D domains along the tree.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from math import inf
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from placer.placement.placement import Placement
from placer.solve.bounds.time import stage_parts
from placer.solve.construct.parts_program import Made, Question, Shares, shared
from placer.solve.construct.replica_levels import replicas
from placer.solve.construct.units import Floor, Units, floors, units_of
from placer.solve.count.engine import Limits
from placer.solve.tree.fill import tree_order

if TYPE_CHECKING:
    from placer.solve.bounds.expert_parts import StageParts
    from placer.solve.problem.compiled import Problem
    from placer.solve.run.budget import Budget
    from placer.solve.run.incumbent import Candidate, Incumbent

IntArray = npt.NDArray[np.int64]
# A unit, and the place along the tree of each of its parts.
Home = tuple[Made, list[int]]

# Steps that a program looks for, in those of the bound, until it finds some.
NEAR = (1.01, 1.05, inf)
# Parts of a unit of equal size, from coarse ones on, of which all parts consist.
GRAINS = (8, 16, 32)


def chosen_parts(problem: Problem, incumbent: Incumbent, budget: Budget) -> None:
    """Parts of expert groups that make the slowest replica as fast as can be."""
    if problem.goal.name == "time":
        for name, gpu_of_rank in chosen_fills(problem, incumbent, budget):
            incumbent.offer(name, gpu_of_rank)


def chosen_fills(
    problem: Problem, incumbent: Incumbent, budget: Budget
) -> Iterator[Candidate]:
    """(name, GPU of every rank) of what programs of finer and finer grain choose."""
    work = problem.params.parts_work_in_all
    for ground in _grounds(problem):
        for grain, is_apart in product(ground.grains(), (False, True)):
            value, bound = float(incumbent.value), float(incumbent.bound)
            if budget.is_over() or work <= 0 or value <= bound:
                return
            if is_apart and len(set(ground.outer.tolist())) == 1:
                continue
            question = ground.question(grain, is_apart=is_apart)
            every = replicas(ground.parts, question.times(), value)
            tried = 0
            for some in (every.up_to(near * bound) for near in NEAR):
                if len(some.seconds) == tried:
                    continue
                tried = len(some.seconds)
                most = min(work, problem.params.parts_program_work)
                limits = Limits(most, budget.seconds_left, problem.seed)
                shares, used = shared(question, some, limits)
                work -= used
                if shares is not None:
                    laid = partial(ground.laid, grain)
                    found = _exchanged(problem, laid, ground.homes(grain, shares))
                    yield "ep groups in chosen parts", found
                    break


def _exchanged(
    problem: Problem, laid: Callable[[Sequence[Home]], IntArray], homes: list[Home]
) -> IntArray:
    """GPU of every rank, units changing places while that makes gradients faster.

    What leaves an outer domain depends on the stages that it has units of.
    """
    rng = np.random.default_rng(problem.seed)

    def priced(homes: Sequence[Home]) -> tuple[float, IntArray]:
        placement = Placement.on_nodes(problem.machine, laid(homes))
        return float(problem.goal.value(placement.gpu_of_rank)), placement.gpu_of_rank

    value, best = priced(homes)
    ranks = problem.params.exchange_ranks_priced
    for _ in range(min(problem.fills_priced, ranks // problem.job.world_size)):
        changed = homes.copy()
        one, other = rng.choice(len(homes), 2)
        changed[one], changed[other] = homes[other], homes[one]
        changed_value, gpu_of_rank = priced(changed)
        if changed_value < value:
            value, best, homes = changed_value, gpu_of_rank, changed
    return best


def _grounds(problem: Problem) -> Iterator[_Ground]:
    for floor in floors(problem):
        if floor.colocation.block == problem.colocation.block:
            for units in units_of(problem.job, floor):
                ground = _Ground.of(problem, floor, units)
                if ground is not None:
                    yield ground


@dataclass(frozen=True, eq=False)
class _Ground:
    """Units, and the domains along the tree that take them.

    Attributes
    ----------
    floor : Floor
    units : Units
    parts : StageParts
    cohort : ndarray, shape (U,)
        Units of one cohort belong to the same replicas.
    domain, room, outer : ndarray, shape (D,)
        Its number, room in pieces, and domain of the next tier.
    """

    floor: Floor
    units: Units
    parts: StageParts
    cohort: IntArray
    domain: IntArray
    room: IntArray
    outer: IntArray

    @classmethod
    def of(cls, problem: Problem, floor: Floor, units: Units) -> _Ground | None:
        """None where the parts of such units do not decide on the step."""
        machine, tier = floor.machine, floor.tier
        if tier != problem.model.fabric.scale_up_tier:
            return None
        parts = stage_parts(problem.model, floor.colocation, floor.capacity)
        if parts is None or len(parts.seconds(tier + 1)) == 1:
            return None
        shape = parts.units.number, parts.units.pieces * parts.units.ranks
        if floor.grain != parts.units.ranks or units.ranks.shape != shape:
            return None
        single = np.zeros(len(units.ranks), dtype=np.int64)
        cohort = units.coordinate.get("edp", single)
        stages = int(units.stage.max()) + 1
        alike = np.bincount(cohort * stages + units.stage)
        if (alike != alike[0]).any():
            return None
        nodes = tree_order(machine)
        domain, first = np.unique(
            machine.domain_of_node[tier][nodes], return_index=True
        )
        along = np.argsort(first)
        takes = floor.takes(floor.capacity, floor.grain, floor.grain)[tier]
        return cls(
            floor,
            units,
            parts,
            cohort,
            domain[along],
            takes[domain[along]] // floor.grain,
            machine.domain_of_node[tier + 1][nodes[first[along]]],
        )

    @property
    def alike(self) -> int:
        """Units of a stage of a cohort."""
        cohorts, stages = int(self.cohort.max()) + 1, int(self.units.stage.max()) + 1
        return len(self.units.ranks) // (cohorts * stages)

    def grains(self) -> list[int]:
        """Pieces of the grains that leave room for all units, the coarsest first."""
        pieces, count = self.parts.units.pieces, self.parts.units.number
        found = [pieces // n for n in GRAINS if pieces % n == 0]
        if pieces <= GRAINS[-1] or not found:
            found.append(1)
        fits = [g for g in found if (self.room // g).sum() * g >= pieces * count]
        return list(dict.fromkeys(fits))

    def question(self, grain: int, *, is_apart: bool) -> Question:
        """The question to a program that counts in so many pieces.

        Outer domains are told apart, or all count as one.
        """
        homes = self._outer_homes(is_apart)
        rooms = Counter(zip(homes, (self.room // grain).tolist(), strict=True))
        near, across = (
            {
                size // grain: seconds
                for size, seconds in self.parts.seconds(tier).items()
                if size % grain == 0
            }
            for tier in (self.floor.tier + 1, self.floor.tier + 2)
        )
        return Question(
            {key: count for key, count in rooms.items() if key[1]},
            self.parts.units.pieces // grain,
            self.parts.units.number,
            self.alike,
            near,
            across,
            self._uplinks(grain) if is_apart else {},
            {
                size // grain: seconds
                for size, seconds in self.parts.latency(self.floor.tier + 2).items()
                if size % grain == 0
            }
            if self.floor.tier + 2 < len(self.floor.machine.tiers)
            else {},
        )

    def _uplinks(self, grain: int) -> dict[int, float]:
        """Pairs that each uplink carries in a second, where it holds any back."""
        tier = self.floor.tier + 2
        if tier >= len(self.floor.machine.tiers):
            return {}
        carried = self.parts.pairs_a_second(tier) / grain**2
        return {home: pairs for home, pairs in enumerate(carried) if pairs < inf}

    def homes(self, grain: int, shares: Shares) -> list[Home]:
        """Where each unit lies; the best go to stages that ask for the most."""
        placed = self._placed(grain, shares)
        order = sorted(placed, key=lambda unit: (unit[0].seconds, unit[1]))
        stage = self.units.stage
        wanted = np.lexsort((stage, self.cohort, -shares.levels[self.cohort, stage]))
        return [order[place] for place in np.argsort(wanted)]

    def laid(self, grain: int, homes: Sequence[Home]) -> IntArray:
        """Node of every rank; shape (R,)."""
        domain_of_rank = np.empty(self.units.ranks.size, dtype=np.int64)
        for unit, (made, places) in zip(self.units.ranks, homes, strict=True):
            ranks = np.array(made.sizes) * grain * self.floor.grain
            domain_of_rank[unit] = np.repeat(self.domain[places], ranks)
        return self.floor.node_of_rank(domain_of_rank, self.units)

    def _outer_homes(self, is_apart: bool) -> list[int]:
        homes: list[int] = (self.outer if is_apart else 0 * self.outer).tolist()
        return homes

    def _placed(self, grain: int, shares: Shares) -> list[Home]:
        """Units, with the place along the tree of each part.

        Those that have a home first, the fastest of them on domains that send the least
        out: all parts of a domain share its uplink.
        """
        fills = {key: list(found) for key, found in shares.fills.items()}
        homes = self._outer_homes(len({home for home, _ in fills}) > 1)
        size = self.parts.units.pieces // grain
        free: dict[int, list[int]] = {}
        busy = np.zeros(len(homes))
        for place, home in enumerate(homes):
            room = int(self.room[place])
            for part in fills.get((home, room // grain), [[]]).pop():
                free.setdefault(part, []).append(place)
                busy[place] += part * (size - part) / room
        placed = []
        for made in sorted(shares.units, key=lambda u: (u.home < 0, u.seconds, u)):
            found: list[int] = []
            for part in made.sizes:
                best = min(
                    (
                        made.home not in (-1, homes[place]),
                        bool(found) and self.outer[place] != self.outer[found[0]],
                        busy[place],
                        place,
                    )
                    for place in free[part]
                )[-1]
                free[part].remove(best)
                found.append(int(best))
            placed.append((made, found))
        return placed
