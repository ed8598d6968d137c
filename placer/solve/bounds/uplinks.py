"""Thin uplinks of leaves, blocks and pods: what has to pass them, whatever is where.

A domain whose uplink carries less than its GPUs send is a bottleneck in two ways. The
smallest *unit* of a job that keeps its expert groups whole brings ``W`` gradient groups
into a domain, each of which leaves it, unless all its ``n`` members fit. A domain that
holds less divides every expert group that it touches.

For a domain with room for ``r`` ranks and an uplink of ``U`` bytes a second:

* A domain with a unit whole: rings take ``(W - floor(r / n)) / U`` or more a byte, PAT,
  whose chunks enter a domain once, ``(W n - r) / (n - 1) / U``.
* A domain without: of a group of ``n_e`` members that send ``s`` bytes to each other,
  ``m`` members put ``s m (n_e - m)`` bytes on the uplink. In ``E`` seconds a NIC sends
  all that leaves a node with ``q = n_e - E bandwidth / s`` members or more, so at least
  ``q`` members are elsewhere: ``m q s`` bytes or more, and at most ``E U / (q s)`` ranks.
* With units whole, what is left over of a room is a divided group.

A placement that exposes less than ``x`` of data-parallel time keeps units whole only
where rings may be that fast. All others hold what all-to-alls of ``E`` seconds allow.
The least ``E`` with which that is room for all ranks goes with ``x``; the bound on the
step is the best such pair.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from placer.cost.collectives import distinct_domains
from placer.cost.gradients import sync_groups, sync_time
from placer.cost.stage_times import expert_time
from placer.solve.bounds.limit import Limit, with_slow_axis, with_slow_stages

if TYPE_CHECKING:
    from placer.cost.gradients import SyncTime
    from placer.cost.step import Step
    from placer.solve.bounds.ideal import IdealNetwork
    from placer.solve.problem.params import Params

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

ROUNDING = 1e-9
BISECTIONS = 60
# Stages tried at once for several sorts of gradient groups.
MOST_CHOICES = 256


class Floor(NamedTuple):
    """What a placement takes at the least, for one reason among others.

    Attributes
    ----------
    pipeline_s : float, s
        Of the slowest replica.
    exposed_s : float, s
        Data-parallel time.
    """

    pipeline_s: float = 0.0
    exposed_s: float = 0.0


FREE = Floor()


def floors(step: Step, network: IdealNetwork, params: Params) -> list[list[Floor]]:
    """For each tier with thin uplinks, floors of which every placement has one.

    Parameters
    ----------
    step : Step
        On ``network``.
    network : IdealNetwork
    params : Params
    """
    fabric = network.fabric
    if step.model.job.model is None:
        return []
    return [
        _Uplinks(step, network, t).floors(params)
        for t in fabric.scale_out_tiers
        if t > 0
        and fabric.topology.tiers[t].oversubscription > 1
        and len(fabric.uplink_capacity[t]) > 1
    ]


class _Exchange(NamedTuple):
    """All-to-alls that may leave a domain.

    Attributes
    ----------
    groups : ndarray, shape (g, n)
    share : float, bytes
        What one member sends to another, in another scale-up domain.
    pace : float, s/B
        Of the fastest NIC.
    """

    groups: IntArray
    share: float
    pace: float


@dataclass(frozen=True, eq=False)
class _Uplinks:
    """Uplinks into one tier.

    Attributes
    ----------
    step : Step
    network : IdealNetwork
    tier : int
    """

    step: Step
    network: IdealNetwork
    tier: int

    def floors(self, params: Params) -> list[Floor]:
        """Floors of which every placement has one."""
        exposed = self._exposed(params.uplink_sizes)
        free = self.step.exposed_data_parallel_s
        found = []
        for level in np.unique(np.append(exposed, free)).tolist():
            seconds = self._least_exchange(exposed <= level)
            if seconds is None:
                continue
            found.append(Floor(self._pipeline_s(seconds), max(level, free)))
            if seconds == 0.0:
                break
        # Where no floor is found the ranks have no room, which is for others to say.
        return found or [FREE]

    @cached_property
    def _room(self) -> IntArray:
        """Ranks that each domain may hold, in whole sets."""
        return np.asarray(
            self.network.capacities[self.tier - 1] // self._set * self._set
        )

    @cached_property
    def _uplink(self) -> FloatArray:
        return self.network.fabric.uplink_capacity[self.tier]

    @cached_property
    def _sets(self) -> IntArray:
        """Ranks that lie in one domain, a row a set; single ranks where sizes differ."""
        label = self.network.label[self.tier - 1]
        sizes = np.unique(np.unique(label, return_counts=True)[1])
        if len(sizes) > 1:
            return np.arange(len(label))[:, None]
        return np.argsort(label, kind="stable").reshape(-1, int(sizes[0]))

    @property
    def _set(self) -> int:
        return int(self._sets.shape[1])

    @cached_property
    def _exchange(self) -> _Exchange | None:
        """The all-to-alls of experts; None where none may leave a domain."""
        job = self.step.model.job
        members = job.parallelism.ranks_of_group["ep"]
        of_set = self.network.label[self.tier - 1][members]
        if (of_set == of_set[:, :1]).all():
            return None
        fabric = self.network.fabric
        share = self.step.model.volumes.ep_buffer / members.shape[1]
        if job.expert_parallel.dispatch == "deduplicated" and job.model is not None:
            copies = job.model.top_k
            share *= distinct_domains(np.array(2), copies).item() / copies
        pace = 1 / float(fabric.bandwidth[fabric.scale_up_tier + 1 :].max())
        return _Exchange(members, share, pace) if share > 0 else None

    @cached_property
    def _units(self) -> IntArray:
        """Sets with an expert group whole, a row of ranks each; ranks may come twice."""
        sets = self._sets
        if self._exchange is None:
            return sets
        set_of_rank = np.empty(sets.size, dtype=np.int64)
        set_of_rank[sets] = np.arange(len(sets))[:, None]
        members = self._exchange.groups
        return sets[set_of_rank[members]].reshape(len(members), -1)

    def _exposed(self, most_classes: int) -> FloatArray:
        """Data-parallel time with a unit whole in each domain, at the least; (C,), s."""
        model = self.step.model
        paces = []
        groups_of = sync_groups(model.job, model.volumes)
        families = [groups for groups in groups_of.values() if groups.shape[1] > 1]
        for groups in families:
            size = groups.shape[1]
            rings = self._rings_of_a_unit(groups)
            ring = np.maximum(rings - self._room // size, 0)
            pat = np.maximum(rings * size - self._room, 0) / (size - 1)
            paces += [ring / self._uplink, pat / self._uplink]
        if not paces:
            return np.zeros(len(self._room))
        # Domains nearly alike count as the best of them.
        table = np.array(paces)
        order = np.lexsort(table)
        exposed = np.empty(table.shape[1])
        for some in np.array_split(order, min(most_classes, len(order))):
            least = table[:, some].min(axis=1).reshape(-1, 2)
            limits = [
                Limit(groups, groups.shape[1], ring, pat)
                for groups, (ring, pat) in zip(families, least.tolist(), strict=True)
            ]
            exposed[some] = self._exposed_with(limits)
        return exposed

    def _rings_of_a_unit(self, groups: IntArray) -> int:
        """Fewest of ``groups`` that a unit has ranks of."""
        group_of_rank = np.empty(groups.size, dtype=np.int64)
        group_of_rank[groups] = np.arange(len(groups))[:, None]
        found = np.sort(group_of_rank[self._units], axis=1)
        return 1 + int(np.count_nonzero(np.diff(found, axis=1), axis=1).min())

    def _exposed_with(self, limits: list[Limit]) -> float:
        """Data-parallel time when each limit holds back some stage, s."""
        model = self.step.model
        slow = [self._sync_with(limit) for limit in limits]
        stages = range(model.job.parallelism.pp)
        together = (
            [slow] if len(stages) ** len(slow) <= MOST_CHOICES else [[s] for s in slow]
        )
        return max(
            min(
                with_slow_stages(
                    self.step, zip(some, chosen, strict=True)
                ).exposed_data_parallel_s
                for chosen in product(stages, repeat=len(some))
            )
            for some in together
        )

    def _sync_with(self, limit: Limit) -> SyncTime:
        model = self.step.model
        network = self.network.with_limits(limit)
        return sync_time(network, model.job, model.volumes, model.windows.buckets)

    def _least_exchange(self, may_be_whole: BoolArray) -> float | None:
        """Least seconds of all-to-alls, without latency, with which all ranks fit.

        0 where experts need not leave a domain, None where the ranks do not fit.
        """
        world = self.step.model.job.world_size
        if self._exchange is None:
            return 0.0 if self._room[may_be_whole].sum() >= world else None
        if self._room.sum() < world:
            return None
        low, high = (
            0.0,
            self._exchange.share
            * float(
                (self._room.max() * self._exchange.groups.shape[1] / self._uplink).max()
            ),
        )
        high += (
            self._exchange.share * self._exchange.groups.shape[1] * self._exchange.pace
        )
        if self._fits(low, may_be_whole):
            return 0.0
        for _ in range(BISECTIONS):
            middle = (low + high) / 2
            if self._fits(middle, may_be_whole):
                high = middle
            else:
                low = middle
        return low * (1 - ROUNDING)

    def _fits(self, seconds: float, may_be_whole: BoolArray) -> bool:
        """Whether all ranks have room where all-to-alls take so long, s."""
        assert self._exchange is not None
        size = self._exchange.groups.shape[1]
        # Messages from one member to another, on an uplink and out of a scale-up domain.
        load = seconds * self._uplink / self._exchange.share
        away = seconds / self._exchange.pace / self._exchange.share
        together = max(1, int(np.ceil(size - away - ROUNDING)))
        divided = np.zeros(len(self._room), dtype=np.int64)
        rest = divided
        if 2 * together <= size:
            elsewhere = np.maximum(together, size - self._room)
            divided = np.minimum(self._room, load / elsewhere + ROUNDING).astype(int)
            root = np.sqrt(np.maximum(size * size / 4 - load, 0.0))
            rest = np.floor(size / 2 - root + ROUNDING).astype(int)
            rest[load * (1 + ROUNDING) < together * (size - together)] = 0
        left = self._room % size
        all_left = (rest > 0) & (left * (size - left) <= load * (1 + ROUNDING))
        whole = self._room - np.where(all_left, 0, np.maximum(left - rest, 0))
        is_whole = may_be_whole & (self._room >= size)
        room = np.where(is_whole, np.maximum(whole, divided), divided)
        return int(room.sum()) >= self.step.model.job.world_size

    def _pipeline_s(self, exchange_s: float) -> float:
        """Pipeline of a replica one stage of which has all-to-alls that slow, s."""
        if self._exchange is None or exchange_s == 0.0:
            return 0.0
        model, groups = self.step.model, self._exchange.groups
        limit = Limit(groups, groups.shape[1], exchange_s=exchange_s)
        network = self.network.with_limits(limit)
        slow = expert_time(network, model.job, model.volumes, model.work)
        axes = tuple(self.step.stage_times)
        return min(
            with_slow_axis(self.step, "ep", slow, stage).pipeline_s(axes)
            for stage in range(model.job.parallelism.pp)
        )
