"""Thin uplinks of leaves, blocks and pods: what has to pass them, whatever is where.

The smallest *unit* of a job that keeps its tp, cp or expert groups whole brings ``W``
gradient groups into a domain. Take one with room for ``r`` ranks, an uplink of ``U``
bytes a second, and groups of ``n`` members:

* A domain with a unit whole: rings take ``(W - floor(r / n)) / U`` or more a
  byte; with ranks of all stages in each set, those of all stages cross together
  (`UplinkRoom.share_of_each`).
* A domain without: `uplink_exchange.py` for all-to-alls of experts, `uplink_parts.py`
  for rings of tp and cp, `uplink_messages.py` for messages of pipelines.
* In ``p`` seconds a byte few rings cross, and so few ranks are there
  (`uplink_room.py`).

The least time of these with which there is room for all ranks goes with the
data-parallel time ``x`` that gradients expose; the bound is the best such pair. See
docs/method.md, "Thin uplinks", also for trees (`uplink_trees.py`).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise, product
from math import inf
from typing import TYPE_CHECKING

import numpy as np

from placer.arrays import FloatArray, IntArray, row_of_number
from placer.cost.gradients import REPLICATE, sync_groups
from placer.solve.bounds.gradients.uplink_exchange import Exchanges
from placer.solve.bounds.gradients.uplink_messages import Messages
from placer.solve.bounds.gradients.uplink_parts import RingParts
from placer.solve.bounds.gradients.uplink_room import UplinkRoom
from placer.solve.bounds.gradients.uplink_shards import ShardGrids
from placer.solve.bounds.gradients.uplink_trees import least_in_trees
from placer.solve.bounds.network.limit import (
    FREE,
    Floor,
    Limit,
    slow_sync,
    with_slow_stages,
)
from placer.solve.problem.colocation import are_together

if TYPE_CHECKING:
    from placer.cost.step import Step
    from placer.solve.bounds.case import Case
    from placer.solve.bounds.network.ideal import IdealNetwork
    from placer.solve.problem.params import Params

Wait = Exchanges | Messages | RingParts

MARKS = 16  # paces of gradients of a family that are told apart
# Stages tried at once for several sorts of gradient groups.
MOST_CHOICES = 256


def floors(case: Case) -> list[list[Floor]]:
    """For each tier with thin uplinks, floors of which every placement has one."""
    step, network, params = case.step, case.network, case.params
    if step.model.job.model is None:
        return []
    tiers = network.fabric.thin_tiers
    return [_Uplinks(step, network, t, params).floors() for t in tiers]


@dataclass(frozen=True, eq=False)
class _Uplinks:
    """Uplinks into one tier.

    Attributes
    ----------
    step : Step
    network : IdealNetwork
    tier : int
    params : Params
    """

    step: Step
    network: IdealNetwork
    tier: int
    params: Params

    def floors(self) -> list[Floor]:
        """Floors of which every placement has one."""
        room, world = self._room, self.step.model.job.world_size
        if room.ranks.sum() < world:  # that is for others to say
            return [FREE]
        # Any set brings its rings, whether or not other groups are whole.
        in_use = self._exposed(room.sets)
        fullest = np.argsort(in_use, kind="stable")
        last = int(np.searchsorted(np.cumsum(room.ranks[fullest]), world))
        least = max(float(in_use[fullest[last]]), self._exposed_full())
        waits = self._waits
        if not waits:
            return [Floor(exposed_s=least)]
        # Where a domain holds a group of each axis whole.
        whole = [self._exposed(room.units(one.groups)) for one in waits]
        known = np.concatenate([*whole, *(e for _, e in self._marks.values())])
        levels = np.unique(np.maximum(known, least)).tolist()
        found = []
        for level, beyond in pairwise([*levels, inf]):
            held = self._held_below(beyond)
            pipeline_s = max(
                one.pipeline_s(held, self._together(one.groups, exposed, beyond))
                for one, exposed in zip(waits, whole, strict=True)
            )
            found.append(Floor(pipeline_s, level))
            if pipeline_s == 0.0:
                break
        return found

    @cached_property
    def _room(self) -> UplinkRoom:
        return UplinkRoom(self.network, self.tier)

    @cached_property
    def _waits(self) -> list[Wait]:
        """What pipelines may wait for beside gradients."""
        label, axes = self.network.label[self.tier - 1], self.step.model.job.parallelism
        kind = self.step.model.job.context_parallel.communication
        found: list[Wait] = []
        for axis in ("tp", "cp"):
            if axes.size(axis) == 1 or (axis, kind) == ("cp", "a2a"):
                continue
            if not are_together(label, axes.ranks_of_group[axis]):
                found.append(RingParts(self.step, axis, self._room, self.params))
        if axes.pp > 1 and not are_together(label, axes.ranks_of_group["pp"]):
            found.append(Messages(self.step, self._room, self.params))
        exchanges = Exchanges.of(self.step, self._room)
        return [*found, exchanges] if exchanges is not None else found

    @cached_property
    def _marks(self) -> dict[int, tuple[FloatArray, FloatArray]]:
        """Some paces of the rings of each family, and what each exposes, s/B and s."""
        found = {}
        for number, groups in enumerate(self._families):
            paces = self._room.paces(groups)
            first = int(np.searchsorted(paces, self._least_pace(groups)))
            some = np.unique(np.linspace(first, len(paces) - 1, MARKS).astype(np.int64))
            # Rings that expose less than a mark are faster: of the pace before it.
            before = paces[np.maximum(some - 1, 0)]
            exposed = []
            for pace, faster in zip(paces[some].tolist(), before, strict=True):
                trees = self._room.trees_beyond(groups, faster) if pace else 0.0
                limit = Limit(groups, groups.shape[1], pace, trees_pace=trees)
                exposed.append(self._exposed_with([limit]))
            found[number] = before, np.array(exposed)
        return found

    def _held_below(self, exposed_s: float) -> IntArray:
        """Most ranks of each domain where gradients expose less than this; (C,)."""
        held = self._room.ranks
        for groups, pace in self._paces_below(exposed_s):
            held = np.minimum(held, self._room.held(groups, pace))
        return held

    def _together(
        self, members: IntArray, whole_s: FloatArray, exposed_s: float
    ) -> IntArray:
        """Most ranks of one of some groups in each domain, as above; (C,).

        They, and what stays with them, are of no more gradient groups than the domain
        has ranks of.

        Parameters
        ----------
        members : ndarray, shape (g, n)
        whole_s : ndarray, shape (C,), s
            What gradients expose where the domain holds one of the groups whole.
        exposed_s : float, s
        """
        most = self._room.ranks
        most = np.where(
            whole_s < exposed_s, most, np.minimum(most, members.shape[1] - 1)
        )
        for groups, pace in self._paces_below(exposed_s):
            _, alike = np.unique(
                row_of_number(groups)[members]
                + np.arange(len(members))[:, None] * len(groups),
                return_counts=True,
            )
            touched = self._room.touched(groups, pace)
            most = np.minimum(most, touched * int(alike.max()))
            most = np.minimum(most, self._room.together(members, groups, touched))
        return most

    def _paces_below(self, exposed_s: float) -> Iterator[tuple[IntArray, float]]:
        """Gradient groups, and the slowest pace of rings that expose less, s/B."""
        for number, (before, exposed) in self._marks.items():
            mark = int(np.searchsorted(exposed, exposed_s))
            if mark < len(before):
                yield self._families[number], float(before[mark])

    def _exposed(self, units: IntArray) -> FloatArray:
        """Least data-parallel time with one of the units in each domain; (C,), s."""
        families, uplink = self._families, self._room.uplink
        if not families:
            return np.zeros(len(uplink))
        # Domains nearly alike count as the best of them.
        paces = []
        for groups in families:
            crossing = self._room.crossing(units, groups)
            either = self._room.all_reduces(crossing, groups)
            paces += [crossing / uplink, either / uplink]
        table = np.array(paces)
        order = np.lexsort(table)
        exposed = np.empty(table.shape[1])
        classes = min(self.params.uplink_sizes, len(order))
        for some in np.array_split(order, classes):
            least = table[:, some].min(axis=1).tolist()
            limits = [
                Limit(groups, groups.shape[1], ring, trees_pace=trees)
                for groups, ring, trees in zip(
                    families, least[::2], least[1::2], strict=True
                )
            ]
            exposed[some] = self._exposed_with(limits)
        return exposed

    def _exposed_full(self) -> float:
        """Least data-parallel time with which domains hold all ranks, s."""
        limits = [
            Limit(
                groups,
                groups.shape[1],
                self._least_pace(groups),
                trees_pace=self._least_pace(groups, in_trees=True),
            )
            for groups in self._families
        ]
        least = self._exposed_with(limits) if limits else 0.0
        for grids in ShardGrids.of(self._sorts, self._room):
            exposed = [self._exposed_with(ways) for ways in grids.limits()]
            least = max(least, min(exposed, default=0.0))
        return least

    def _least_pace(self, groups: IntArray, *, in_trees: bool = False) -> float:
        """Least seconds a byte with which domains hold all ranks of groups.

        Of rings, or of the buffer where groups may also take trees.
        """
        paces, room = self._room.paces(groups, in_trees=in_trees), self._room
        full = bisect_left(
            paces,
            groups.size,
            key=lambda pace: int(room.held(groups, pace, in_trees=in_trees).sum()),
        )
        pace = float(paces[min(full, len(paces) - 1)])
        return max(pace, least_in_trees(room, groups)) if in_trees else pace

    @cached_property
    def _sorts(self) -> dict[str, IntArray]:
        """Gradient groups of each sort."""
        return sync_groups(self.step.model.job, self.step.model.volumes)

    @cached_property
    def _families(self) -> list[IntArray]:
        """Those of each sort; once where two sorts have the same groups."""
        found: list[IntArray] = []
        for groups in self._sorts.values():
            is_known = any(np.array_equal(groups, known) for known in found)
            if groups.shape[1] > 1 and not is_known:
                found.append(groups)
        return found

    def _exposed_with(self, limits: list[Limit]) -> float:
        """Data-parallel time when each limit holds back some stage, s."""
        model = self.step.model
        slow = [slow_sync(model, self.network, limit) for limit in limits]
        stages = range(model.job.parallelism.pp)
        together = (
            [slow] if len(stages) ** len(slow) <= MOST_CHOICES else [[s] for s in slow]
        )
        in_one = max(
            min(
                with_slow_stages(
                    self.step, zip(some, chosen, strict=True)
                ).exposed_data_parallel_s
                for chosen in product(stages, repeat=len(some))
            )
            for some in together
        )
        every = [
            replace(one, uplink_pace=one.uplink_pace * share, trees_pace=0.0)
            for one in limits
            if (share := self._shares.get(id(one.groups), 0.0)) > 0
        ]
        if not every:
            return in_one
        of_all = slow_sync(model, self.network, *every)
        return max(in_one, replace(self.step, sync=of_all).exposed_data_parallel_s)

    @cached_property
    def _shares(self) -> dict[int, float]:
        """How slow every stage is where one is, by the identity of a family.

        As a share, 0 where others may not be; none is known where they may be
        all-reduced in trees.
        """
        job = self.step.model.job
        in_trees = any(axis.endswith(REPLICATE) for axis in self._sorts)
        in_trees |= job.data_parallel.sharding == "ddp"
        stage = job.parallelism.coordinates["pp"]
        families = [] if in_trees else self._families
        return {
            id(groups): self._room.share_of_each(groups, stage) for groups in families
        }
