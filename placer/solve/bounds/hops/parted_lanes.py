"""What pipelines and replicas cost between the domains that hold whole expert groups.

A *lane* has one vertex of every group: pipelines of ``P`` stages, joined by rings of
expert data parallelism. All ``n`` lanes are alike, so they are cut for ``n`` times as
much as the one cut for the least, or more. Where a group is whole, the lane has its
vertex there; where it is not, in any domain.

* A pipeline is made up of *pieces*, what domains hold of it, and cut once less than it
  has pieces. A domain has as many vertices in pieces as whole groups. What a pipeline
  has of other groups is its *rest*.
* Neighbours in a ring with pieces of ``k`` and ``l`` in a domain keep ``min(k, l)``
  edges there at the most: around the ring all pieces less the largest, and the smallest
  again where all replicas are there. Any other vertex keeps two edges at the most.

See docs/method.md, "Whole groups between outer domains".
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from placer.solve.count.filling import Sizes, fillings, less, partitions
from placer.solve.count.model import ONE, Program, Term

if TYPE_CHECKING:
    from collections.abc import Iterable

    from placer.solve.bounds.hops.isoperimetric import Product


@dataclass(frozen=True)
class Lanes:
    """The lanes of a job's expert groups.

    Attributes
    ----------
    groups : int
        Vertices of a lane.
    chain, ring : float
        Price of an edge of a pipeline, and of a ring, in every lane.
    """

    groups: int
    stages: int
    replicas: int
    chain: float
    ring: float

    @classmethod
    def of(cls, product: Product, rise: float) -> Lanes:
        """Those of an expert product, between domains where the distance so rises."""
        group, chain, copies = product.stage[0], product.chain, product.copies
        rise *= group.size
        return cls(
            product.vertices // group.size,
            chain.size,
            copies.size,
            rise * chain.weight if chain.size > 1 else 0.0,
            rise * copies.weight if copies.size > 1 else 0.0,
        )

    @property
    def pipelines(self) -> int:
        """Of a lane."""
        return self.groups // self.stages

    @property
    def constant(self) -> float:
        """To be added to the price of the program."""
        return -self.chain * self.pipelines

    def columns(self, room: int) -> int:
        """Of the program for a domain with room for so many groups, about."""
        return 2 * room * min(self.stages, room)

    def lowered_to(self, most: float) -> Lanes:
        """Lanes of which a chain's and a ring's edge weigh no more together."""
        share = min(1.0, most / (self.chain + self.ring or 1.0))
        return replace(self, chain=share * self.chain, ring=share * self.ring)

    def add(self, program: Program, whole: Iterable[tuple[int, Term]]) -> None:
        """Add the cuts of a lane to the price of a program.

        Parameters
        ----------
        whole : iterable of (int, Term)
            Groups that each domain has room for, and the whole ones that it holds.
        """
        price = [0.0] + [self.chain] * self.stages
        pieces: Sizes = {size: [] for size in range(1, self.stages + 1)}
        cut: list[Term] = []
        for room, held in whole:
            if not room:
                continue
            parts, largest, _ = fillings(program, {room: 1}, [0.0] * len(price), price)
            total = [Term(of.column, size) for size in parts for of in parts[size]]
            program.row([*total, *less([held])], 0, 0)
            around = room // self.replicas if self.replicas > 2 else 0
            cut += [held] if self.replicas > 2 else []
            for size, terms in largest.items():
                pieces[size] += parts[size]
                cut += [Term(of.column, max(0, size - around)) for of in terms]
        self._make_up(program, pieces)
        if self.ring:
            kept = self.groups if self.replicas > 2 else self.groups // 2
            column = Term(program.column(price=self.ring))
            program.row([column, *less(cut), Term(ONE, kept)], 0)

    def _make_up(self, program: Program, pieces: Sizes) -> None:
        """Each pipeline consists of a rest, perhaps, and of pieces."""
        rests = {
            size: Term(program.column(price=self.chain * (size == self.stages)))
            for size in pieces
        }
        ends: dict[int, float | Term] = {self.stages: self.pipelines}
        used = partitions(program, ends, self.stages, rests)
        for size, found in pieces.items():
            program.row([*found, *less(used[size])], 0, 0)
