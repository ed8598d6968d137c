"""Expert groups in the parts that a program chooses, for the fewest hops.

A group in parts of ``p`` out of ``n`` pieces parts ``sum of p (n - p) / 2`` pairs of
pieces; those in different outer domains are one rise of the distance further apart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from placer.arrays import IntArray
from placer.solve.construct.experts.parts_ground import Ground, grounds
from placer.solve.construct.experts.parts_program import (
    Made,
    Question,
    Shares,
    cheapest,
)
from placer.solve.count.engine import Limits

if TYPE_CHECKING:
    from placer.solve.problem.compiled import Problem
    from placer.solve.run.budget import Budget
    from placer.solve.run.incumbent import Candidate, Incumbent

# A unit, and the place along the tree of each of its parts.
Home = tuple[Made, list[int]]

CLOSE = 1e-3  # Relative difference from the best parts that is good enough.


def cheapest_parts(problem: Problem, incumbent: Incumbent, budget: Budget) -> None:
    """Parts of expert groups with the fewest hops between them."""
    if problem.goal.name == "hop-cost":
        for name, gpu_of_rank in cheapest_fills(problem, incumbent, budget):
            incumbent.offer(name, gpu_of_rank)


def cheapest_fills(
    problem: Problem, incumbent: Incumbent, budget: Budget
) -> Iterator[Candidate]:
    """(name, GPU of every rank) of what programs of finer and finer grain choose."""
    for ground in grounds(problem):
        hops = _Hops.of(problem, ground)
        is_apart = len(set(ground.outer.tolist())) > 1
        for grain in ground.grains():
            if budget.is_over() or incumbent.value <= incumbent.bound:
                return
            question = hops.question(grain, is_apart=is_apart)
            if len(question.ways()) > problem.params.parts_ways:
                break
            limits = Limits(
                problem.params.parts_nodes,
                budget.seconds_left,
                problem.seed,
                engine="highs",
                gap=CLOSE,
            )
            shares = cheapest(question, partial(hops.price, grain), limits)
            if shares is not None:
                for node_of_rank in hops.laid(grain, shares, question):
                    yield (
                        "ep groups in chosen parts",
                        problem.machine.gpus_on(node_of_rank),
                    )


@dataclass(frozen=True, eq=False)
class _Hops:
    """What parts of units cost.

    Attributes
    ----------
    weight : float
        Of all pairs of members in two pieces of a unit.
    rise, outer_rise : float
        Of the distance at the tier of the parts, and at the next.
    """

    ground: Ground
    weight: float
    rise: float
    outer_rise: float

    @classmethod
    def of(cls, problem: Problem, ground: Ground) -> _Hops:
        pieces, floor = ground.pieces, ground.floor
        groups = pieces.ranks // pieces.members
        distance = [tier.distance for tier in floor.machine.tiers[floor.tier :]]
        inside, near, far = [*distance, distance[-1]][:3]
        weight = float(problem.goal.weights.get("ep", 0.0))
        return cls(
            ground, weight * groups * pieces.members**2, near - inside, far - near
        )

    def question(self, grain: int, *, is_apart: bool) -> Question:
        """The question to a program that counts in so many pieces."""
        count, size = self.ground.pieces.number, self.ground.pieces.pieces // grain
        free = dict.fromkeys(range(1, size + 1), 0.0)
        rooms = self.ground.rooms(grain, is_apart=is_apart)
        return Question(rooms, size, count, count, free, free, {}, {})

    def price(self, grain: int, made: Made) -> float:
        """Of a unit; of one in several outer domains with each part in its own."""
        total = sum(made.sizes)
        parted = sum(part * (total - part) for part in made.sizes) / 2
        rise = self.rise + self.outer_rise * (made.home < 0)
        return self.weight * grain**2 * rise * parted

    def laid(self, grain: int, shares: Shares, ask: Question) -> Iterator[IntArray]:
        """Node of every rank: stages of a replica follow along the tree, or in chains.

        Chains keep more pipelines inside, and local search gains more from the tree.
        """
        placed = sorted(self.ground.placed(grain, shares, ask), key=_main)
        units = self.ground.units
        single = np.zeros(len(units.ranks), dtype=np.int64)
        replica = units.coordinate.get("edp", single)
        wanted = np.lexsort((units.stage, replica))
        for order in (placed, _in_chains(placed, replica[wanted].tolist())):
            yield self.ground.node_of_rank(grain, wanted.tolist(), order)


def _in_chains(units: Sequence[Home], replica: Sequence[int]) -> list[Home]:
    """Units one after the other, piece by piece: what follows shares domains.

    The next of the same replica is the one with most pieces in the same domains, else
    the first along the tree. It has the same pieces there.
    """
    pieces = [Counter(np.repeat(at, made.sizes).tolist()) for made, at in units]
    left = dict.fromkeys(range(len(units)))
    found: list[list[int]] = []
    for index, own in enumerate(replica):
        before = found[-1] if index and own == replica[index - 1] else []
        held = Counter(before)
        best = max(left, key=lambda unit: (held & pieces[unit]).total())
        del left[best]
        found.append(_beside(before, pieces[best]))
    return [(Made((1,) * len(at), -1, 0.0), at) for at in found]


def _beside(before: Sequence[int], pieces: Counter[int]) -> list[int]:
    """Place of each piece, the same as before for as many as can be."""
    left, found = pieces.copy(), [-1] * pieces.total()
    for piece, place in enumerate(before):
        if left[place]:
            found[piece] = place
            left[place] -= 1
    rest = left.elements()
    return [next(rest) if place < 0 else place for place in found]


def _main(home: Home) -> int:
    """Place along the tree of the largest part."""
    made, places = home
    return max(zip(made.sizes, places, strict=True))[1]
