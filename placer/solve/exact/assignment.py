"""Assignment variables: this co-location set lies in that domain of a tier.

Ranks that must share a domain of a tier share their variables there, and the GPUs of an
innermost domain are not told apart. A tier needs no variables when no domain
of it has room for two units, since then no two units share one, nor when there is only
one domain with room. Domains that look alike under one parent are put in the order of
their first units (value precedence; Law and Lee 2004, *Global constraints for integer
and set value precedence*, CP). Shapes: T tiers, N nodes, U units.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from placer.base.arrays import IntArray
from placer.base.loading import load
from placer.solve.count.engine import CP_SAT
from placer.solve.tree.capacity import ancestor_of_domain
from placer.solve.tree.symmetry import Symmetry

if TYPE_CHECKING:
    from ortools.sat.python import cp_model

    from placer.solve.problem.colocation import Colocation
    from placer.topology.machine import Machine

    Literal = cp_model.IntVar | int


@dataclass(frozen=True, eq=False)
class Level:
    """The variables of one tier.

    Attributes
    ----------
    domains : list of int
        Those with room.
    at : list of list of variables
        ``at[p][i]``: part ``p`` of the tier lies in ``domains[i]``.
    """

    tier: int
    domains: list[int]
    at: list[list[cp_model.IntVar]]


class Assignment:
    """A model in which every co-location set has one domain of each tier.

    Parameters
    ----------
    colocation : Colocation
        A unit is a block of consecutive ranks, or one rank.
    capacity_of_node : ndarray, shape (N,)
        Ranks each node may hold.
    tiers : iterable of int
        Those in which the objective takes an interest.
    by_node : bool
        Whether there are variables of nodes in any case, as when rules name nodes. Such
        nodes may differ though they look alike, so none precedes another.
    """

    def __init__(
        self,
        topology: Machine,
        colocation: Colocation,
        capacity_of_node: IntArray,
        tiers: Iterable[int],
        *,
        by_node: bool = False,
    ) -> None:
        self.topology = topology
        self.model: cp_model.CpModel = load(CP_SAT).CpModel()
        self.block = max(colocation.block, 1)
        self.room = capacity_of_node // self.block
        self.label = colocation.label[:, :: self.block]
        self.size = colocation.label.shape[1] // self.block
        wanted = set(tiers) | {
            t for t, row in enumerate(self.label) if int(row.max()) + 1 < self.size
        }
        self.levels = {
            t: self._level(t)
            for t in sorted(wanted | {0} if by_node else wanted)
            if self._has_choice(t) or (by_node and t == 0)
        }
        self._tiers = [*self.levels, len(topology.tiers) - 1]
        self._shape = Symmetry(topology).shape
        self._differ: dict[tuple[int, int, int], cp_model.IntVar] = {}
        self._fit()
        self._nest()
        if not by_node:
            self._order()

    @property
    def num_variables(self) -> int:
        """Number of domains to choose from, all sets together."""
        return sum(len(lv.at) * len(lv.domains) for lv in self.levels.values())

    def room_of(self, tier: int) -> IntArray:
        """Units that fit each domain of a tier."""
        room = np.bincount(self.topology.domain_of_node[tier], self.room)
        return room.astype(np.int64)

    def differ(self, tier: int, one: int, other: int) -> Literal:
        """A literal that is true where two units lie in different domains of a tier.

        0 or 1 where that is known beforehand.
        """
        if one == other:
            return 0
        level = self.levels.get(tier)
        if level is None:
            return int(self.room_of(tier).max() <= 1)
        first, second = sorted(int(self.label[tier, u]) for u in (one, other))
        if first == second:
            return 0
        key = tier, first, second
        if key not in self._differ:
            self._differ[key] = self._different(level.at[first], level.at[second])
        return self._differ[key]

    def hint(self, node_of_unit: IntArray) -> None:
        """Start from a placement, up to the names of domains that look alike."""
        homes = {t: self.topology.domain_of_node[t][node_of_unit] for t in self._tiers}
        names = self._renamed(homes)
        for tier, level in self.levels.items():
            home = dict(
                zip(self.label[tier].tolist(), homes[tier].tolist(), strict=True)
            )
            for part, row in enumerate(level.at):
                name = names[tier][home[part]]
                for domain, variable in zip(level.domains, row, strict=True):
                    self.model.add_hint(variable, domain == name)

    def _renamed(self, homes: dict[int, IntArray]) -> dict[int, dict[int, int]]:
        """Names under which domains that look alike are used in order, by tier."""
        top = self._tiers[-1]
        names = {top: {d: d for d in range(len(self._shape[top]))}}
        for outer, inner in pairwise(self._tiers[::-1]):
            parent = ancestor_of_domain(self.topology, inner, outer)
            shape = self._shape[inner]
            first = {d: u for u, d in reversed(list(enumerate(homes[inner].tolist())))}
            names[inner] = {}
            for old, new in names[outer].items():
                by_use = sorted(
                    np.flatnonzero(parent == old).tolist(),
                    key=lambda d: (shape[d], first.get(d, self.size), d),
                )
                by_name = sorted(
                    np.flatnonzero(parent == new).tolist(), key=lambda d: (shape[d], d)
                )
                names[inner].update(zip(by_use, by_name, strict=True))
        return names

    def nodes(self, solver: cp_model.CpSolver) -> IntArray:
        """Node of every unit in a solution; shape (U,)."""
        tier = min(self.levels)
        level = self.levels[tier]
        home = np.array(
            [level.domains[[solver.value(v) for v in row].index(1)] for row in level.at]
        )[self.label[tier]]
        node_of_unit = np.empty(self.size, dtype=np.int64)
        for domain in np.unique(home):
            units = np.flatnonzero(home == domain)
            nodes = np.flatnonzero(self.topology.domain_of_node[tier] == domain)
            node_of_unit[units] = np.repeat(nodes, self.room[nodes])[: len(units)]
        return node_of_unit

    def _has_choice(self, tier: int) -> bool:
        """Whether two units may share a domain of the tier, or not."""
        room = self.room_of(tier)
        return bool((room > 1).any() and (room > 0).sum() > 1)

    def _level(self, tier: int) -> Level:
        domains = np.flatnonzero(self.room_of(tier)).tolist()
        at = [
            [self.model.new_bool_var("") for _ in domains]
            for _ in range(int(self.label[tier].max()) + 1)
        ]
        return Level(tier, domains, at)

    def _fit(self) -> None:
        """Every set has one domain, and none holds more units than it has room for."""
        for tier, level in self.levels.items():
            sizes = np.bincount(self.label[tier]).tolist()
            room = self.room_of(tier)
            for row in level.at:
                self.model.add_exactly_one(row)
            for i, domain in enumerate(level.domains):
                held = sum(
                    size * row[i] for size, row in zip(sizes, level.at, strict=True)
                )
                self.model.add(held <= int(room[domain]))

    def _nest(self) -> None:
        """A set lies in the domain that holds those of its inner sets."""
        for inner, outer in pairwise(self.levels):
            below, above = self.levels[inner], self.levels[outer]
            parent = ancestor_of_domain(self.topology, inner, outer)
            holder = dict(
                zip(self.label[inner].tolist(), self.label[outer].tolist(), strict=True)
            )
            for part, row in enumerate(below.at):
                for i, domain in enumerate(above.domains):
                    inside = [
                        variable
                        for child, variable in zip(below.domains, row, strict=True)
                        if parent[child] == domain
                    ]
                    self.model.add(sum(inside) == above.at[holder[part]][i])

    def _order(self) -> None:
        """Of domains that look alike the next is used after the one before it."""
        for tier, outer in pairwise(self._tiers):
            level = self.levels[tier]
            parent = ancestor_of_domain(self.topology, tier, outer)
            alike: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
            for i, domain in enumerate(level.domains):
                alike[int(parent[domain]), self._shape[tier][domain]].append(i)
            for same in alike.values():
                for before, after in pairwise(same):
                    self._precede(level, before, after)

    def _precede(self, level: Level, before: int, after: int) -> None:
        for part, row in enumerate(level.at):
            earlier = [other[before] for other in level.at[:part]]
            self.model.add_bool_or([row[after].negated(), *earlier])

    def _different(
        self, first: list[cp_model.IntVar], second: list[cp_model.IntVar]
    ) -> cp_model.IntVar:
        literal = self.model.new_bool_var("")
        for one, other in zip(first, second, strict=True):
            self.model.add_bool_or([literal, one.negated(), other])
            self.model.add_bool_or([literal, one, other.negated()])
            self.model.add_bool_or([literal.negated(), one.negated(), other.negated()])
        return literal
