"""Units in pieces, and the domains along the tree that take their parts.

Shapes: R ranks, U units, D domains along the tree.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from placer.arrays import IntArray
from placer.solve.bounds.experts.expert_units import units_of as pieces_of
from placer.solve.construct.units.units import Floor, Units, floors, units_of
from placer.solve.tree.fill import tree_order

if TYPE_CHECKING:
    from placer.solve.bounds.experts.expert_units import Units as Pieces
    from placer.solve.construct.experts.parts_program import Made, Question, Shares
    from placer.solve.problem.compiled import Problem

ROUNDING = 1e-9
# Parts of a unit of equal size, from coarse ones on, of which all parts consist.
GRAINS = (8, 16, 32)


@dataclass(frozen=True, eq=False)
class Ground:
    """Units, and the domains along the tree that take them.

    Attributes
    ----------
    floor : Floor
    units : Units
    pieces : Pieces
        That units consist of.
    domain, room, outer : ndarray, shape (D,)
        Its number, room in pieces, and domain of the next tier.
    """

    floor: Floor
    units: Units
    pieces: Pieces
    domain: IntArray
    room: IntArray
    outer: IntArray

    @classmethod
    def of(cls, problem: Problem, floor: Floor, units: Units) -> Ground | None:
        """None where units are not of expert groups all alike, in several pieces."""
        machine, tier = floor.machine, floor.tier
        pieces = pieces_of(problem.job, floor.colocation.label[tier])
        if pieces is None or pieces.pieces == 1 or floor.grain != pieces.ranks:
            return None
        if units.ranks.shape != (pieces.number, pieces.pieces * pieces.ranks):
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
            pieces,
            domain[along],
            takes[domain[along]] // floor.grain,
            machine.domain_of_node[tier + 1][nodes[first[along]]],
        )

    def grains(self) -> list[int]:
        """Pieces of the grains that leave room for all units, the coarsest first."""
        pieces, count = self.pieces.pieces, self.pieces.number
        found = [pieces // n for n in GRAINS if pieces % n == 0]
        if pieces <= GRAINS[-1] or not found:
            found.append(1)
        fits = [g for g in found if (self.room // g).sum() * g >= pieces * count]
        return list(dict.fromkeys(fits))

    def rooms(self, grain: int, *, is_apart: bool) -> Mapping[tuple[int, int], int]:
        """Domains by outer domain and room, counted in so many pieces.

        Outer domains are told apart, or all count as one.
        """
        homes = self._homes(is_apart)
        rooms = Counter(zip(homes, (self.room // grain).tolist(), strict=True))
        return {key: count for key, count in rooms.items() if key[1]}

    def node_of_rank(
        self,
        grain: int,
        chosen: Sequence[int],
        placed: Sequence[tuple[Made, list[int]]],
    ) -> IntArray:
        """Node of every rank, where units of these numbers are placed so."""
        domain_of_rank = np.empty(self.units.ranks.size, dtype=np.int64)
        for index, (made, places) in zip(chosen, placed, strict=True):
            ranks = np.array(made.sizes) * grain * self.floor.grain
            domain_of_rank[self.units.ranks[index]] = np.repeat(
                self.domain[places], ranks
            )
        return self.floor.node_of_rank(domain_of_rank, self.units)

    def held(self, gpu_of_rank: IntArray) -> IntArray | None:
        """Pieces of each unit in each domain, None where one is divided; (U, D)."""
        machine, tier = self.floor.machine, self.floor.tier
        along = np.full(int(self.domain.max()) + 1, len(self.domain))
        along[self.domain] = np.arange(len(self.domain))
        at = along[machine.domain_of_gpu[tier][gpu_of_rank[self.units.ranks]]]
        units = np.repeat(np.arange(len(at)), at.shape[1])
        held = np.zeros((len(at), len(self.domain)), dtype=np.int64)
        np.add.at(held, (units, at.ravel()), 1)
        whole, rest = np.divmod(held, self.pieces.ranks)
        return None if rest.any() else whole

    def placed(
        self, grain: int, shares: Shares, question: Question
    ) -> list[tuple[Made, list[int]]]:
        """Units, with the place along the tree of each part.

        Those that have a home first, the fastest of them on domains that send the least
        out, and none on one that makes it wait: all parts of a domain share its uplink.
        """
        fills = {key: list(found) for key, found in shares.fills.items()}
        homes = self._homes(len({home for home, _ in fills}) > 1)
        size = self.pieces.pieces // grain
        free: dict[int, list[int]] = {}
        busy = np.zeros(len(homes))
        for place, home in enumerate(homes):
            room = int(self.room[place])
            for part in fills.get((home, room // grain), [[]]).pop():
                free.setdefault(part, []).append(place)
                busy[place] += grain * part * (size - part) / room
        placed = []
        for made in sorted(shares.units, key=lambda u: (u.home < 0, u.seconds, u)):
            found: list[int] = []
            for part in made.sizes:
                best = min(
                    (
                        made.home not in (-1, homes[place]),
                        question.shared_s(part, busy[place])
                        > made.seconds * (1 + ROUNDING),
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

    def _homes(self, is_apart: bool) -> list[int]:
        homes: list[int] = (self.outer if is_apart else 0 * self.outer).tolist()
        return homes


def grounds(problem: Problem) -> Iterator[Ground]:
    """All that the domains of the tier that takes units may be asked for."""
    for floor in floors(problem):
        if floor.colocation.block == problem.colocation.block:
            for units in units_of(problem.job, floor):
                ground = Ground.of(problem, floor, units)
                if ground is not None:
                    yield ground
