"""Groups of tp and cp in parts behind thin uplinks: how slow some must be.

Groups whose rings take ``p`` seconds a byte or less have parts in a domain only while
its uplink carries their rings in that time, and none of fewer ranks than NICs need for
it. Where the domains hold fewer ranks so, the others are of slower groups. By hand: tp
8, 30 leaves of nodes of 8, 8 and 7. At the pace of three NICs an uplink of 5.75 carries
one ring, so a leaf has two groups and five ranks of another: of 80 two are slower.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import ceil
from typing import TYPE_CHECKING

import numpy as np

from placer.arrays import BoolArray, FloatArray, IntArray
from placer.solve.bounds.gradients.uplink_room import ROUNDING
from placer.solve.bounds.groups.even_parts import used_in_parts
from placer.solve.bounds.network.limit import Limit, slow_pipeline_s

if TYPE_CHECKING:
    from placer.cost.stage_times import StageTime
    from placer.cost.step import Step
    from placer.solve.bounds.gradients.uplink_room import UplinkRoom
    from placer.solve.problem.params import Params


def paces_of_slow(
    paces: FloatArray, most: int, slow_stages: Callable[[float], int]
) -> Iterator[tuple[int, float]]:
    """Numbers of stages, and the first pace at which fewer of a replica are slower.

    Parameters
    ----------
    paces : ndarray, s/B
        In ascending order; the last is one that all keep.
    most : int
        Stages.
    slow_stages : callable
        Stages of some replica that are slower than a pace, at the least.
    """
    last = len(paces) - 1
    for stages in range(1, most + 1):
        last = bisect_left(
            paces[:last].tolist(), 1 - stages, key=lambda pace: -slow_stages(pace)
        )
        if last == 0:
            return
        yield stages, float(paces[last])


@dataclass(frozen=True, eq=False)
class RingParts:
    """Groups of an axis that pass something around a ring.

    Attributes
    ----------
    step : Step
        On the network of ``room``.
    axis : str
    room : UplinkRoom
    params : Params
    """

    step: Step
    axis: str
    room: UplinkRoom
    params: Params

    @cached_property
    def groups(self) -> IntArray:
        """Ranks of each, a row a group."""
        return self.step.model.job.parallelism.ranks_of_group[self.axis]

    def pipeline_s(self, held: IntArray, together: IntArray) -> float:
        """Least time of the slowest pipeline, s.

        Parameters
        ----------
        held, together : ndarray, shape (C,)
            Most ranks of each domain, and of one group there.
        """
        may_be_whole = together >= self.groups.shape[1]

        def slow_stages(pace: float) -> int:
            return self._slow_stages(pace, held, may_be_whole)

        pp, found = self.step.model.job.parallelism.pp, 0.0
        for stages, pace in paces_of_slow(self._paces, pp, slow_stages):
            slow = self._slow(pace)
            seconds = slow_pipeline_s(
                self.step, self.axis, slow, stages, self.params.slow_sets
            )
            found = max(found, seconds)
        return found

    @cached_property
    def _is_passed_on(self) -> bool:
        """Whether each member sends by its own NIC, whoever is beside it."""
        kind = self.step.model.job.context_parallel.communication
        return self.axis == "cp" and kind == "p2p"

    @cached_property
    def _paces(self) -> FloatArray:
        """At which domains may hold more, s/B."""
        paces = self.room.paces(self.groups)
        if self._is_passed_on:
            return paces
        nics = np.arange(1, self.groups.shape[1] // 2 + 1)
        return np.union1d(paces, 1 / (nics * self.room.nic))

    def _slow_stages(self, pace: float, held: IntArray, may_be_whole: BoolArray) -> int:
        """Stages of some replica with a group slower than a pace, at the least."""
        axes, (groups, size) = self.step.model.job.parallelism, self.groups.shape

        def missing(*, are_all: bool) -> int:
            fast = self._fast(pace, may_be_whole, are_all=are_all)
            return axes.world_size - int(np.minimum(held, fast).sum())

        slow = ceil(Fraction(max(missing(are_all=False), 0), size))
        slow = max(slow, int(missing(are_all=True) > 0))
        return ceil(Fraction(slow * axes.pp, groups))

    def _fast(self, pace: float, may_be_whole: BoolArray, *, are_all: bool) -> IntArray:
        """Most ranks of each domain that are of groups no slower; (C,)."""
        size, least = self.groups.shape[1], 1
        if not self._is_passed_on:
            # Without a part that drives so many NICs none is fast.
            nics = 1 / (self.room.nic * pace) if pace > 0.0 else size
            least = max(1, ceil(min(nics, size) * (1 - ROUNDING)))
        held = self.room.held(self.groups, pace, least, may_be_whole, are_all=are_all)
        has_nodes = self.room.network.fabric.scale_up_tier >= 0
        is_free = least == 1 or not has_nodes
        return held if is_free else np.minimum(held, self._on_nodes(least))

    def _on_nodes(self, least: int) -> IntArray:
        """Most ranks of each domain in groups and parts that fit its nodes; (C,)."""
        network, tier = self.room.network, self.room.network.fabric.scale_up_tier
        rooms, sort = np.unique(network.capacities[tier], return_inverse=True)
        size = self.groups.shape[1]
        used = [used_in_parts(one, size, least) for one in rooms.tolist()]
        home = self.room.home_of(tier)
        found = np.bincount(home, np.array(used)[sort], len(self.room.ranks))
        return np.asarray(found.astype(np.int64))

    def _slow(self, pace: float) -> StageTime:
        """Least time of a stage with a group whose ring is so slow, s."""
        network = self.room.network
        limit = Limit(
            self.groups,
            max(1, self.groups.shape[1] // 2),
            uplink_pace=pace,
            far=network.fabric.scale_up_tier,
        )
        held = network.with_limits(limit)
        return self.step.model.step_on(held).stage_times[self.axis]
