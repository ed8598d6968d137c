"""A bound on the hop cost: expert groups are parted as whole numbers of domains allow.

Vertices are ranks, or the sets of them that rules keep together (`graphs`). Of a group
of ``n`` let ``x`` vertices lie in a domain.

* The group pays ``w/2 x (n - x)`` there, ``w`` being the weight of a pair.
* Vertices of a group lie in different pipelines, so a domain that holds ``s`` vertices
  holds ``max x`` runs of pipelines or more, and at most ``s - max x`` of their edges.
* Edges of expert data parallelism join such runs; one more run costs an edge of its
  pipeline and adds one a stage: it counts where ``w_edp P <= w_pp``, ``P`` stages.
* Domains of the next tier hold *shares* of groups, which pay for their pairs as well,
  and for runs with ``max x >= sum x^2 / R``.

Paths count domains by how they are filled, the largest part first, and groups by how
they are made up (Valerio de Carvalho 1999, arc flow).

**Cheapest parts are coarse.** Sizes of groups and rooms are multiples of the *grain*.
Unless all parts are, single vertices can go around a cycle of groups and domains, or
from a domain with room to another, either way. With ``q`` groups on it both ways
together change at the most ``-2 q (w - w_pp)`` at the inner tier: a part that gets one
more or one less saves ``w`` in all, and the largest part of a domain grows by 2 in all,
or by 1 where one part alone changes. At the outer tier what is paid is concave. So one
way costs no more, until a part vanishes or a room is full, if ``w_pp <= w``. Heavier
pipelines count as no heavier.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import ceil, floor, gcd
from typing import TYPE_CHECKING

import numpy as np

from placer.base.arrays import FloatArray, IntArray
from placer.job.edges import hop_edges
from placer.solve.bounds.hops.graphs import (
    common_divisor,
    experts_of,
    has_rows,
    kept_whole,
)
from placer.solve.count.engine import Limits, solve
from placer.solve.count.filling import Sizes, fillings, less, partitions
from placer.solve.count.model import Program, Term

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from placer.job.model import Job
    from placer.solve.bounds.hops.isoperimetric import Product
    from placer.topology.machine import Machine

# HiGHS meets rows and bounds to this.
TOLERANCE = 1e-6
# Prices are rounded down to this share of the dearest part.
FINE = 1e-7
CLOSE = Fraction(1, 10**6)


@dataclass(frozen=True, eq=False)
class PartedGroups:
    """Expert groups, and the domains of two tiers that hold them.

    Attributes
    ----------
    size, number : int
        Vertices of a group, and groups.
    pair : float
        Weight of a pair of vertices.
    chains : tuple of float
        Weight of an edge of a pipeline at either tier, 0 where runs do not count.
    constant : float
        What is added to both cuts, each times its rise.
    rises : tuple of float
        Of the distance at either tier.
    quantum : Fraction
        Both cuts, each times its rise, are a multiple of it.
    domains : mapping of (int, int) to int
        Domains of the inner tier by outer domain and room.
    """

    size: int
    number: int
    pair: float
    chains: tuple[float, float]
    constant: float
    rises: tuple[float, float]
    quantum: Fraction
    domains: Mapping[tuple[int, int], int]

    @classmethod
    def of(
        cls, topology: Machine, job: Job, tiers: Sequence[int], rises: FloatArray
    ) -> PartedGroups | None:
        """None where experts have no edges.

        Parameters
        ----------
        tiers : sequence of int
            The inner and the outer one, or one alone.
        rises : ndarray, shape (T - 1,)
            Of the distance at each tier.
        """
        product = experts_of(job)
        if product is None:
            return None
        inner = topology.domain_of_gpu[tiers[0]]
        room, outer = np.bincount(inner), np.zeros(inner.max() + 1, dtype=np.int64)
        for label, sets in kept_whole(topology, job, tiers[0]):
            between = experts_of(job, label)
            if between is not None and sets.sum() >= between.vertices:
                product, room = between, sets
        for tier in tiers[1:]:
            outer[inner] = topology.domain_of_gpu[tier]
        found = Counter(zip(outer.tolist(), room.tolist(), strict=True))
        domains = {key: count for key, count in found.items() if key[1]}
        near, far = [*rises[list(tiers)].tolist(), 0.0][:2]
        group, chain = product.stage[0], product.chain
        run = chain.weight if chain.size > 1 else 0.0
        if gcd(group.size, *(room for _, room in domains)) > 1:
            run = min(run, group.weight)
        inner_run, inner_more = _runs(job, product, run, room)
        outer_run, outer_more = _runs(job, product, run, np.bincount(outer, room))
        quantum = common_divisor(axis.weight for axis in hop_edges(job))
        return cls(
            group.size,
            product.vertices // group.size,
            group.weight,
            (inner_run, outer_run),
            near * inner_more + far * outer_more,
            (near, far),
            quantum * common_divisor((near, far)),
            domains,
        )

    @property
    def grain(self) -> int:
        """Vertices of which all parts are multiples in a cheapest placement."""
        return gcd(self.size, *(room for _, room in self.domains))

    @cached_property
    def rooms(self) -> dict[int, dict[int, int]]:
        """Inner domains of each outer one by room, in grains."""
        found: dict[int, dict[int, int]] = defaultdict(dict)
        for (home, room), count in self.domains.items():
            found[home][room // self.grain] = count
        return found

    @property
    def columns(self) -> int:
        """Of the program, about."""
        size = self.size // self.grain
        found = size**2 // 2
        for rooms in self.rooms.values():
            found += 2 * min(size, max(rooms)) * max(rooms) + size**2 // 2
        return found

    def least(self, limits: Limits) -> float:
        """The least of both cuts, each times the rise at its tier."""
        program, size = Program(), self.size // self.grain
        shares: Sizes = defaultdict(list)
        for rooms in self.rooms.values():
            for part, term in self._shares(program, rooms).items():
                shares[part].append(term)
        used = partitions(program, {size: self.number}, size)
        for part in range(1, size + 1):
            program.row([*shares[part], *less(used[part])], 0, 0)
        unit = FINE * max(program.price) or 1.0
        program.price = [floor(price / unit) for price in program.price]
        known = max(0.0, solve(program, limits).bound)  # it may end without any
        if limits.engine == "highs":
            known *= 1 - TOLERANCE
        least = self.constant + unit * known
        return float(
            max(0, ceil(Fraction(least) / self.quantum - CLOSE)) * self.quantum
        )

    def _shares(self, program: Program, rooms: Mapping[int, int]) -> dict[int, Term]:
        """Columns of shares in an outer domain by size, of parts that fit its rooms."""
        size, total = self.size // self.grain, _total(rooms)
        part = np.arange(0, self.size + 1, self.grain)
        pairs = self.pair / 2 * part * (self.size - part)
        largest = self.rises[0] * self.chains[0] * part
        paid = pairs + self.chains[1] * part**2 / (total * self.grain)
        inside = (self.rises[0] * pairs).tolist()
        held = fillings(program, rooms, largest.tolist(), inside)
        price = (self.rises[1] * paid).tolist()
        made = {
            share: Term(program.column(min(self.number, total // share), price[share]))
            for share in range(1, min(size, total) + 1)
        }
        used = partitions(program, made, min(size, max(rooms)))
        for size, terms in used.items():
            program.row([*held[size], *less(terms)], 0, 0)
        return made


def _total(rooms: Mapping[int, int]) -> int:
    return sum(room * count for room, count in rooms.items())


def _runs(
    job: Job, product: Product, run: float, room: IntArray
) -> tuple[float, float]:
    """Weight of an edge of runs in such rooms, and what is added to their cut.

    Both are 0 where domains full of whole groups would cut nothing by it.
    """
    copies, vertices = product.copies, product.vertices
    more = -run * vertices / product.chain.size
    # As many pairs of a ring are neighbours, one less where replicas are absent.
    number = copies.size
    ring = number / (number - 1) if 2 < number <= room.max() else 1.0
    edges = copies.weight * product.chain.size * ring
    if number > 1 and edges <= run and has_rows(job):
        more += copies.weight * vertices / (2 if number == 2 else 1)
    whole = np.minimum(room, product.stage[0].size).sum()
    if more + run * float(whole) * vertices / float(room.sum()) <= 0:
        return 0.0, 0.0
    return run, more
