"""A bound on the hop cost: expert groups are parted as whole numbers of domains allow.

`parts` lets any share of a domain be filled in any way. Where there are few expert
groups, whole numbers say more. Let ``x`` ranks of a group of ``n`` lie in a domain.

* The group pays ``w/2 x (n - x)`` there, ``w`` being the weight of a pair.
* Ranks of a group lie in different pipelines, so that a domain with ``s`` ranks holds
  ``max x`` runs of pipelines or more, and at most ``s - max x`` of their edges. With
  room for ``R``, ``max x >= sum x^2 / R``.
* Edges of expert data parallelism join such runs. One more run, of another replica,
  costs an edge of its pipeline and adds no more than one a stage, which must be lighter
  together.
* All this holds of the domains of the next tier too, with the ranks and the room there.
  It counts where domains full of whole groups would cut anything by it.

All that is concave in all ``x`` together while ``w R >= 2 w_pp``. So it is least at a
corner of what rooms and sizes of groups allow, a transport problem, and there each
``x`` is a multiple of what rooms and ``n`` have in common. Paths count domains by how
they are filled, and groups by how they are parted, inside the domains of the next tier
and between those (Valerio de Carvalho 1999, arc flow); CP-SAT says what is least.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor, gcd
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from placer.job.edges import hop_edges
from placer.solve.bounds.graphs import common_divisor
from placer.solve.count.engine import Limits, solve
from placer.solve.count.model import Program, Term
from placer.solve.count.paths import less, paths

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from placer.job.model import Job
    from placer.topology.model import Topology

FloatArray = npt.NDArray[np.float64]

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
        Members of a group, and groups.
    pair : float
        Weight of a pair of members.
    chains : tuple of float
        Weight of an edge of a pipeline at either tier, 0 where those do not count.
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
        cls, topology: Topology, job: Job, tiers: Sequence[int], rises: FloatArray
    ) -> PartedGroups | None:
        """None where experts have no edges.

        Parameters
        ----------
        topology : Topology
        job : Job
        tiers : sequence of int
            The inner and the outer one, or one alone.
        rises : ndarray, shape (T - 1,)
            Of the distance at each tier.
        """
        edges = {axis.axis: axis for axis in hop_edges(job)}
        if "ep" not in edges:
            return None
        members = job.parallelism.ranks_of_group["ep"]
        room = np.bincount(topology.domain_of_gpu[tiers[0]])
        outer = np.zeros(len(room), dtype=np.int64)
        if len(tiers) > 1:
            outer[topology.domain_of_gpu[tiers[0]]] = topology.domain_of_gpu[tiers[1]]
        inner_rise, outer_rise = [*rises[list(tiers)].tolist(), 0.0][:2]
        pair = edges["ep"].weight
        chain = edges["pp"].weight if "pp" in edges else 0.0
        if 2 * chain > pair * int(room[room > 0].min()):
            chain = 0.0
        homes = np.bincount(outer, room)
        chains, constant = [chain, chain], 0.0
        for tier, rooms in enumerate((room, homes)):
            more = chain * (len(edges["pp"].edges) - job.world_size) if chain else 0.0
            if chain and "edp" in edges and _is_lighter(job, chain, int(rooms.max())):
                more += edges["edp"].weight * len(edges["edp"].edges)
            whole = np.minimum(rooms, members.shape[1]).sum()
            filled = job.world_size / room.sum()
            if tier and more + chain * whole * filled <= 0:
                chains[tier] = more = 0.0
            constant += (inner_rise, outer_rise)[tier] * more
        found = Counter(zip(outer.tolist(), room.tolist(), strict=True))
        domains = {key: count for key, count in found.items() if key[1]}
        quantum = common_divisor(axis.weight for axis in edges.values())
        quantum *= common_divisor((inner_rise, outer_rise))
        return cls(
            members.shape[1],
            len(members),
            pair,
            (chains[0], chains[1]),
            constant,
            (inner_rise, outer_rise),
            quantum,
            domains,
        )

    @property
    def grain(self) -> int:
        """Ranks of which all parts are multiples in a cheapest placement."""
        return gcd(self.size, *(room for _, room in self.domains))

    @property
    def columns(self) -> int:
        """Of the program, about."""
        size, grain = self.size, self.grain
        rooms = sum(min(size, r) * r for _, r in self.domains) // grain**2
        homes = len({home for home, _ in self.domains})
        return rooms + (homes + 1) * (size // grain) ** 2

    def least(self, limits: Limits) -> float:
        """The least of both cuts, each times the rise at its tier."""
        grain, program = self.grain, Program()
        size = self.size // grain
        parts, homes = range(1, size + 1), sorted({home for home, _ in self.domains})
        held: dict[tuple[int, int], list[Term]] = defaultdict(list)
        rooms = dict.fromkeys(homes, 0)
        for (home, room), count in self.domains.items():
            rooms[home] += room * count
        dearest = max(
            self.inner(part * grain, room) + self.outer(part * grain, rooms[home])
            for part in parts
            for home, room in self.domains
        )
        unit = FINE * dearest or 1.0
        for (home, room), count in self.domains.items():
            price = [floor(self.inner(k * grain, room) / unit) for k in (0, *parts)]
            ends: dict[int, float | Term] = {room // grain: count}
            for part, terms in paths(program, ends, price, is_full=False).items():
                held[home, part] += terms
        shares: dict[int, list[Term]] = defaultdict(list)
        for home in homes:
            made = {
                k: Term(
                    program.column(
                        self.number * size,
                        floor(self.outer(k * grain, rooms[home]) / unit),
                    )
                )
                for k in parts
            }
            used = paths(program, made, [0] * (size + 1), is_full=True)
            for part in parts:
                program.row([*held[home, part], *less(used[part])], 0, 0)
                shares[part].append(made[part])
        used = paths(program, {size: self.number}, [0] * (size + 1), is_full=True)
        for part in parts:
            program.row([*shares[part], *less(used[part])], 0, 0)
        known = max(0.0, solve(program, limits).bound)  # it may end without any
        if limits.engine == "highs":
            known *= 1 - TOLERANCE
        least = self.constant + unit * known
        return float(
            max(0, ceil(Fraction(least) / self.quantum - CLOSE)) * self.quantum
        )

    def inner(self, part: int, room: int) -> float:
        """What a part costs at the inner tier, in a domain of such room."""
        return self._cost(0, part, room)

    def outer(self, part: int, room: int) -> float:
        """What a part costs at the outer tier, in a domain of such room."""
        return self._cost(1, part, room)

    def _cost(self, tier: int, part: int, room: int) -> float:
        pairs = self.pair / 2 * part * (self.size - part)
        return self.rises[tier] * (pairs + self.chains[tier] * part**2 / room)


def _is_lighter(job: Job, chain: float, room: int) -> bool:
    """Whether edges between two replicas are lighter together than one of a pipeline.

    Of replicas in a ring, as many pairs as there are replicas are neighbours, one less
    where they are not all there.
    """
    axes = job.parallelism
    rows = axes.ranks_of_group["pp"]
    for name in ("ep", "etp", "edp"):
        along = axes.coordinates[name][rows]
        if (along != along[:, :1]).any():
            return False
    replicas = axes.size("edp")
    ring = replicas / (replicas - 1) if 2 < replicas <= room else 1.0
    return float(job.weights["edp"]) * axes.pp * ring <= chain
