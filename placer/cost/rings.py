"""Groups as NCCL sees them: members side by side in domains, domains in rank order.

NCCL numbers scale-up domains in the order in which they first appear by communicator
rank and runs every ring over them in that order, the members of a domain side by side
(NCCL 5067397c, ``src/init.cc``, ``src/graph/connect.cc``). A group with ``q`` members
in each domain drives ``q`` NICs there.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from placer.base.arrays import BoolArray, FloatArray, IntArray
from placer.cost.collectives import Route
from placer.cost.fabric import Fabric
from placer.cost.fair_share import Flows, fair_pace
from placer.cost.trees import Edges, double_tree


@dataclass(frozen=True, eq=False)
class Rings:
    """The rings of some groups: g groups of n members.

    Of the fabric nothing is asked but where GPUs lie: rings are those at all its rates.
    """

    fabric: Fabric
    gpus: IntArray  # (g, n): members in ring order
    # (g, n): tier of the hop from each member to the next, cyclically.
    hop_tier: IntArray
    domains: IntArray  # (g,): scale-up domains that the group touches
    # (g,): NICs it drives in each: its members in the domain that has the fewest.
    nics: IntArray

    def rows(self, chosen: BoolArray) -> Rings:
        """Some of the groups, as if they were alone."""
        return Rings(
            self.fabric,
            self.gpus[chosen],
            self.hop_tier[chosen],
            self.domains[chosen],
            self.nics[chosen],
        )

    @cached_property
    def shared(self) -> Flows:
        """Flows of the groups on links that they share."""
        return Flows.of(self.nics, self.fabric.copy_of_rows(self.gpus))

    @property
    def moves(self) -> bool:
        """Whether there is anybody to send to."""
        return bool(self.gpus.shape[1] > 1)

    @cached_property
    def outer(self) -> BoolArray:
        """Which hops leave a scale-up domain; shape (g, n)."""
        return (self.hop_tier > self.fabric.scale_up_tier) & self.moves

    @cached_property
    def factor(self) -> FloatArray:
        """Share of the nominal bandwidth of the slowest member; shape (g,)."""
        factor: FloatArray = self.fabric.factor_of_gpu[self.gpus].min(axis=1)
        return factor

    @cached_property
    def leaves_rail(self) -> BoolArray:
        """Which hops find no rail to the next domain for a NIC; shape (g, n).

        A ring leaves and enters domains by any of its members' NICs. It keeps to rails
        where the members of one domain have all the rails of those of the other.
        """
        rail = np.left_shift(1, self.fabric.rail_of_gpu[self.gpus])
        domain = self.fabric.scale_up_domain_of_gpu[self.gpus]
        starts = np.ones(domain.shape, dtype=bool)
        starts[:, 1:] = domain[:, 1:] != domain[:, :-1]
        run = np.cumsum(starts) - 1
        here = np.bitwise_or.reduceat(rail.ravel(), np.flatnonzero(starts))[run]
        here = here.reshape(domain.shape)
        there = np.roll(here, -1, axis=1)
        shared = here & there
        leaves: BoolArray = (shared != here) & (shared != there)
        return leaves

    @cached_property
    def hops(self) -> Edges:
        """A byte on every hop of every ring."""
        number, size = self.gpus.shape
        return Edges(
            self.fabric,
            np.repeat(np.arange(number), size),
            self.gpus.ravel(),
            np.roll(self.gpus, -1, axis=1).ravel(),
            self.hop_tier.ravel(),
            np.ones(self.gpus.size),
        )

    @cached_property
    def tree(self) -> Edges:
        """The double trees of the groups."""
        return double_tree(self)

    def route(self, fabric: Fabric) -> Route:
        """What the rings find on their way at given rates, all groups at once."""
        outer = self.outer
        inner = ~outer & self.moves
        pace = (1 / fabric.bandwidth)[self.hop_tier]
        latency = fabric.latency[self.hop_tier]
        if fabric.has_rails:
            latency = latency + fabric.detour[self.hop_tier] * self.leaves_rail
        if fabric.links:
            following = np.roll(self.gpus, -1, axis=1)
            latency = latency + fabric.link_latency(self.gpus, following)
        one_nic = np.where(outer, pace, 0.0).max(axis=1) / self.factor
        return Route(
            self.gpus.shape[1],
            self.domains,
            self.nics,
            fabric.has_rack_switch,
            np.where(inner, pace, 0.0).max(axis=1) / self.factor,
            fair_pace(self.hops.crossings(fabric), self.shared, one_nic),
            mean_where(latency, inner),
            mean_where(latency, outer),
        )


def mean_where(values: FloatArray, which: BoolArray) -> FloatArray:
    """Mean of the chosen values of each row, 0 where none is chosen."""
    total = np.where(which, values, 0.0).sum(axis=1)
    mean: FloatArray = total / np.maximum(which.sum(axis=1), 1)
    return mean


def build_rings(fabric: Fabric, gpus: IntArray) -> Rings:
    """The rings of groups whose members' GPUs, by rank, are the rows of ``gpus``."""
    domain = fabric.scale_up_domain_of_gpu[gpus]
    by_domain = np.argsort(domain, axis=1, kind="stable")
    sorted_domain = np.take_along_axis(domain, by_domain, axis=1)
    starts = np.ones(domain.shape, dtype=bool)
    starts[:, 1:] = sorted_domain[:, 1:] != sorted_domain[:, :-1]
    columns = np.broadcast_to(np.arange(domain.shape[1]), domain.shape)
    start_column = np.maximum.accumulate(np.where(starts, columns, 0), axis=1)
    first_seen = np.take_along_axis(by_domain, start_column, axis=1)
    ring = np.take_along_axis(
        by_domain, np.argsort(first_seen, axis=1, kind="stable"), axis=1
    )
    in_order = np.take_along_axis(gpus, ring, axis=1)
    following = np.roll(in_order, -1, axis=1)
    return Rings(
        fabric,
        in_order,
        fabric.tier_between(in_order, following),
        starts.sum(axis=1),
        _fewest(starts),
    )


def _fewest(starts: BoolArray) -> IntArray:
    """Length of the shortest run in each row; runs begin where ``starts`` is true."""
    begin = np.flatnonzero(starts.ravel())
    length = np.diff(begin, append=starts.size)
    first_run = np.concatenate(([0], np.cumsum(starts.sum(axis=1))[:-1]))
    return np.minimum.reduceat(length, first_run)
