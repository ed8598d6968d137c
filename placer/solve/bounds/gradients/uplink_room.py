"""Ranks that domains hold behind uplinks that carry so many rings of groups.

In the time of ``c`` rings a domain has ranks of ``c`` groups beside those that are
whole in it, with so many ranks of each as its nodes hold, and no fewer than are left
elsewhere. A set that stays together has ranks of several groups: with fewer rings than
that a domain holds no set. Where a node holds one run of ranks, the run is no longer
than one with ranks of so many groups. By hand: of groups 0, 1, 0, 1, ... a domain with
one ring has one rank on each node.

Shapes: C domains, R ranks, L ranks of the longest run.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from placer.arrays import BoolArray, FloatArray, IntArray, row_of_number
from placer.solve.bounds.network.limit import all_reduces_on_uplink
from placer.solve.bounds.network.runs import least_alike
from placer.solve.tree.capacity import ancestor_of_domain

if TYPE_CHECKING:
    from placer.solve.bounds.network.ideal import IdealNetwork

ROUNDING = 1e-9
# Ranks of all units; of more only the groups count, which is less but as true.
MOST_ELEMENTS = 1 << 25


@dataclass(frozen=True, eq=False)
class UplinkRoom:
    """Domains below a tier.

    Attributes
    ----------
    network : IdealNetwork
    tier : int
        That the uplinks lead to.
    """

    network: IdealNetwork
    tier: int

    @cached_property
    def ranks(self) -> IntArray:
        """Ranks that each domain may hold, in whole sets; (C,)."""
        room = self.network.capacities[self.tier - 1]
        return np.asarray(room // self._set * self._set)

    @cached_property
    def uplink(self) -> FloatArray:
        """Of each domain, B/s; (C,)."""
        return self.network.fabric.uplink_capacity[self.tier]

    @cached_property
    def sets(self) -> IntArray:
        """Ranks that lie in one domain, a row a set; single where sizes differ."""
        label = self.network.label[self.tier - 1]
        sizes = np.unique(np.unique(label, return_counts=True)[1])
        if len(sizes) > 1:
            return np.arange(len(label))[:, None]
        return np.argsort(label, kind="stable").reshape(-1, int(sizes[0]))

    @cached_property
    def nic(self) -> float:
        """The fastest that leaves a scale-up domain, B/s."""
        fabric = self.network.fabric
        return float(fabric.bandwidth[fabric.scale_up_tier + 1 :].max())

    def home_of(self, tier: int) -> IntArray:
        """Which of the domains each of a tier inside lies in."""
        topology = self.network.fabric.topology
        return ancestor_of_domain(topology, tier, self.tier - 1)

    def units(self, groups: IntArray) -> IntArray:
        """Sets with one of the groups whole, a row of ranks each, some ranks twice."""
        if groups.size * self._set > MOST_ELEMENTS:
            return groups
        return self.sets[self._set_of_rank[groups]].reshape(len(groups), -1)

    def crossing(self, units: IntArray, groups: IntArray) -> IntArray:
        """Groups that cross each uplink where its domain has a unit; (C,)."""
        return np.maximum(self.fewest(units, groups) - self.whole(groups), 0)

    def share_of_each(self, groups: IntArray, kind: IntArray) -> float:
        """Least pace of a ring of each kind, as a share of that of the slowest.

        Where a domain has ranks, it has some of each kind; no group is whole there, so
        rings of each kind cross beside the slowest. One of ``q`` NICs waits for all
        bytes of rings with no more, and for ``h / q`` of those of one with ``h``. By
        hand: a ring of two NICs beside one of a single NIC, both over an uplink of one
        NIC, is done after 1.5 bytes, the other after 2. Where every set has as many
        ranks of each group, all drive as many NICs wherever they are.

        Parameters
        ----------
        groups : ndarray, shape (g, n)
        kind : ndarray, shape (R,)
            Of each rank, alike in a group.

        Returns
        -------
        share : float
            0 where a domain may have no such ring of some kind.
        """
        found = np.sort(kind[self.sets], axis=1)
        kinds = 1 + np.count_nonzero(np.diff(found, axis=1), axis=1)
        is_alone = kind.max() == 0 or kinds.min() <= kind.max()
        if is_alone or self.whole(groups).any():
            return 0.0
        inner = self.network.fabric.scale_up_tier
        if inner < 0:
            return 1.0
        together = np.sort(self.network.label[inner][groups], axis=1)
        if (together == together[0]).all():
            return 1.0
        fewest = least_alike(self.network.label[inner][groups])
        return float(min(fewest / self.nics_of(groups), 1.0))

    def paces(
        self, groups: IntArray, *, in_trees: bool = False, together: int = 1
    ) -> FloatArray:
        """Seconds a byte of so many rings over each uplink, the least first.

        Of the buffer of all-reduces, in rings or in trees, if ``in_trees``. Rings cross
        so many ``together``.
        """
        most: dict[float, int] = {}
        for room, uplink in zip(self.ranks.tolist(), self.uplink.tolist(), strict=True):
            rings = min(room, len(groups))
            most[uplink] = max(rings, most.get(uplink, 0))
        found = []
        for uplink, number in most.items():
            crossing: FloatArray = np.arange(0.0, number + 1, together)
            if in_trees:
                crossing = self.all_reduces(crossing, groups)
            found.append(crossing / uplink)
        return np.unique(np.concatenate(found))

    def held(
        self,
        groups: IntArray,
        pace: float,
        least: int = 1,
        may_be_whole: BoolArray | bool = True,
        *,
        are_all: bool = True,
        in_trees: bool = False,
    ) -> IntArray:
        """Most ranks of each domain in groups whose rings take no longer; (C,).

        Parameters
        ----------
        groups : ndarray, shape (g, n)
        pace : float, s/B
        least : int
            Ranks of a group in a domain that does not hold all of it.
        may_be_whole : ndarray of bool, shape (C,)
            Whether a domain may hold groups whole.
        are_all : bool
            Whether all groups are that fast, and so those of a set or a run together.
        in_trees : bool
            Whether they may be all-reduces in trees too, and the pace the buffer's.
        """
        size = groups.shape[1]
        rings = self.reduced(pace, groups) if in_trees else self.carried(pace)
        part = np.minimum(self._most_members(groups), size - least)
        part[part < least] = 0
        held = np.zeros_like(self.ranks)
        whole = np.where(may_be_whole, self.whole(groups), 0)
        # With a part too small for the rest of a room, a group less may leave more.
        for fewer in range(size if least > 1 else 1):
            here = np.maximum(whole - fewer, 0) * size
            beside = self.ranks - here
            parts = np.minimum(rings, beside // least)
            held = np.maximum(held, here + np.minimum(parts * part, beside))
        if not are_all:
            return held
        # Of the groups that a run has ranks of each crosses or is whole.
        held = np.minimum(held, self._in_runs(groups, rings + whole))
        in_sets = held // self._set * self._set
        return np.where(rings >= self.crossing(self.sets, groups), in_sets, 0)

    def touched(self, groups: IntArray, pace: float) -> IntArray:
        """Most groups of which each domain has ranks, with rings no slower; (C,)."""
        rings = self.carried(pace)
        beside = (self.ranks - rings) // groups.shape[1]
        return np.asarray(rings + np.minimum(self.whole(groups), beside))

    def together(
        self, members: IntArray, groups: IntArray, touched: IntArray
    ) -> IntArray:
        """Most ranks of one of ``members`` where domains touch so many groups; (C,).

        All ranks of a row bring so many groups with their sets, and a rank less takes
        no more of them away than a set has.
        """
        size, of_all = members.shape[1], self.fewest(self.units(members), groups)
        of_a_set = int(self._touching(self.sets, groups).max())
        missing = np.maximum(of_all - touched, 0)
        return np.asarray(size - -(-missing // of_a_set))

    def whole(self, groups: IntArray) -> IntArray:
        """Most groups that each domain holds whole; (C,)."""
        is_short = self._most_members(groups) < groups.shape[1]
        is_short |= self.ranks < self.beside(groups)
        return np.where(is_short, 0, self.ranks // groups.shape[1])

    @property
    def _set(self) -> int:
        return int(self.sets.shape[1])

    @cached_property
    def _set_of_rank(self) -> IntArray:
        return row_of_number(self.sets)

    def all_reduces(
        self, crossing: IntArray | FloatArray, groups: IntArray
    ) -> FloatArray:
        """Buffers on an uplink of so many of the groups, in rings or in trees."""
        return all_reduces_on_uplink(crossing, groups.shape[1], self.nics_of(groups))

    def nics_of(self, groups: IntArray) -> int:
        """Most NICs that one of the groups drives in a domain that it leaves."""
        scale_up, size = self.network.fabric.scale_up_tier, groups.shape[1]
        if scale_up < 0 or size == 1:
            return 1
        most = int(self.network.most_members(groups, scale_up).max())
        return int(max(min(most, size // 2), 1))

    def carried(self, pace: float) -> IntArray:
        """Rings that each uplink carries in so many seconds a byte; (C,)."""
        rings = np.floor(pace * self.uplink * (1 + ROUNDING) + ROUNDING)
        return np.minimum(rings, self.ranks).astype(np.int64)

    def reduced(self, pace: float, groups: IntArray) -> IntArray:
        """The same of all-reduces of the groups, in rings or in trees, a buffer's."""
        buffers = pace * self.uplink * (1 + ROUNDING) + ROUNDING
        carried = np.searchsorted(self._needs(groups), buffers, side="right")
        return np.minimum(carried, self.ranks)

    def trees_beyond(self, groups: IntArray, pace: float) -> float:
        """Least seconds a byte of the buffer where some uplink has more rings; s/B.

        More than it carries in ``pace`` seconds a byte.
        """
        need, carried = self._needs(groups), self.carried(pace)
        has_more = carried < np.minimum(len(need), self.ranks)
        more = need[np.minimum(carried, len(need) - 1)] / self.uplink
        return float(more[has_more].min()) if has_more.any() else 0.0

    def _needs(self, groups: IntArray) -> FloatArray:
        """Buffers on an uplink of one of the groups, two of them and so on, or more."""
        need = self.all_reduces(np.arange(1.0, self.ranks.max() + 1), groups)
        # Where more groups took less, so many are carried as take the least of all.
        return np.minimum.accumulate(need[::-1])[::-1]

    @cached_property
    def _runs(self) -> tuple[IntArray, IntArray] | None:
        """Ranks that nodes with a run each may hold, and the domain of each node."""
        network, tier = self.network, self.network.fabric.scale_up_tier
        if not network.by_nodes or tier not in network.run_tiers or tier >= self.tier:
            return None
        nodes = network.capacities[tier]
        if self.sets.size * int(nodes.max()) ** 2 > MOST_ELEMENTS:
            return None
        return nodes, self.home_of(tier)

    def _in_runs(self, groups: IntArray, touched: IntArray) -> IntArray:
        """Most ranks of domains whose runs have ranks of so many groups each; (C,)."""
        if self._runs is None:
            return self.ranks
        nodes, home = self._runs
        longest = _longest(groups, int(nodes.max()))
        run = longest[np.minimum(touched, len(longest) - 1)[home]]
        found = np.bincount(home, np.minimum(nodes, run), len(self.ranks))
        return np.asarray(found.astype(np.int64))

    def _most_members(self, groups: IntArray) -> IntArray:
        return self.network.most_members(groups, self.tier - 1)

    def beside(self, groups: IntArray) -> int:
        """Fewest ranks of a domain that has one of the groups whole.

        It then has the sets of all members: with tp 4 in a node, a group of ten
        members brings ten nodes.
        """
        return self.fewest(groups, self.sets) * self._set

    def fewest(self, units: IntArray, groups: IntArray) -> int:
        """Fewest of ``groups`` that a row of ``units`` has ranks of."""
        return int(self._touching(units, groups).min())

    def _touching(self, units: IntArray, groups: IntArray) -> IntArray:
        """Of how many of ``groups`` each row of ``units`` has ranks; (u,)."""
        found = np.sort(row_of_number(groups)[units], axis=1)
        return np.asarray(1 + np.count_nonzero(np.diff(found, axis=1), axis=1))


def _longest(groups: IntArray, most: int) -> IntArray:
    """Most ranks of a run that has ranks of so many groups, from none on; (L + 1,).

    Parameters
    ----------
    groups : ndarray, shape (g, n)
        Every rank once.
    most : int
        Ranks of the longest run.
    """
    group = row_of_number(groups)
    found, touched = np.zeros(most + 1, dtype=np.int64), np.zeros(len(group))
    for length in range(1, min(most, len(group)) + 1):
        begins = len(group) - length + 1
        last = group[length - 1 :]
        is_new = np.ones(begins, dtype=bool)
        for before in range(length - 1):
            is_new &= group[before : before + begins] != last
        touched = touched[:begins] + is_new
        found[int(touched.min()) :] = length
    return found
