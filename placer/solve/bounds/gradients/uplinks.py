"""Thin uplinks of leaves, blocks and pods: what has to pass them, whatever is where.

A domain whose uplink carries less than its GPUs send is a bottleneck in two ways. The
smallest *unit* of a job that keeps its expert groups whole brings ``W`` gradient groups
into a domain, each of which leaves it, unless all its ``n`` members fit. A domain that
holds less divides every expert group that it touches.

For a domain with room for ``r`` ranks and an uplink of ``U`` bytes a second:

* A domain with a unit whole: rings take ``(W - floor(r / n)) / U`` or more a byte, and
  so does PAT (proof below). Where rules keep ranks of other groups beside each member,
  a group brings more than ``n`` ranks; with less room than that none is whole.
* A domain without: of a group of ``n_e`` members that send ``s`` bytes to each other,
  ``m`` members put ``s m (n_e - m)`` bytes on the uplink. In ``E`` seconds a NIC sends
  what leaves a node with ``q = n_e - E bandwidth / s`` members or more. At least ``q``
  members are elsewhere, so that ``m`` members send ``s m q`` bytes or more, and the
  domain holds at most ``E U / (s q)`` ranks.
* With units whole, what is left over of a room is a divided group.

A placement that exposes less than ``x`` of data-parallel time keeps units whole only
where rings may be that fast. All others hold what all-to-alls of ``E`` seconds allow.
The least ``E`` with which that is room for all ranks goes with ``x``; the bound on the
step is the best such pair.

An all-reduce may also run over a double tree, each tree with half the buffer both ways:
both enter a domain that has some members of a group (`all_reduces_on_uplink`).

PAT. A ring sends ``n - 1`` chunks over each hop, one of which enters a domain that has
some of its members ``S`` and not all. With PAT the chunk of every member passes a tree:
over distance ``d = 2**k`` go the chunks of as many offsets below ``n`` as have ``k``
for their lowest bit. Of these hops ``c(d)`` enter ``S``, which is 0 only where a turn
by ``d`` leaves ``S`` as it is. Let ``2**j`` be the least such turn that divides ``n``,
and ``q = n / 2**j``. Shorter hops enter ``S`` q times or more, as it repeats every
``2**j`` members, and all offsets but ``q - 1`` have them. So ``q (n - q) >= n - 1``
chunks enter; without such a turn one at least for each offset.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from placer.cost.collectives import distinct_domains
from placer.cost.gradients import sync_groups
from placer.cost.stage_times import expert_time
from placer.solve.bounds.network.floor import FREE, Floor
from placer.solve.bounds.network.limit import (
    Limit,
    all_reduces_on_uplink,
    slow_pipeline_s,
    slow_sync,
    with_slow_stages,
)
from placer.solve.problem.colocation import are_together

if TYPE_CHECKING:
    from placer.cost.step import Step
    from placer.solve.bounds.case import Case
    from placer.solve.bounds.network.ideal import IdealNetwork
    from placer.solve.problem.params import Params

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

ROUNDING = 1e-9
BISECTIONS = 60
# Ranks of all units; of more only the expert groups count, which is less but as true.
MOST_ELEMENTS = 1 << 25
# Stages tried at once for several sorts of gradient groups.
MOST_CHOICES = 256


def floors(case: Case) -> list[list[Floor]]:
    """For each tier with thin uplinks, floors of which every placement has one."""
    step, network, params = case.step, case.network, case.params
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


@dataclass(frozen=True, eq=False)
class _Exchange:
    """All-to-alls that may leave a domain.

    Attributes
    ----------
    groups : ndarray, shape (g, n)
    share : float, bytes
        What one member sends to another, in another scale-up domain.
    bandwidth : float, B/s
        Of the fastest NIC.
    """

    groups: IntArray
    share: float
    bandwidth: float

    @property
    def size(self) -> int:
        """Members of a group."""
        return int(self.groups.shape[1])

    def room(
        self,
        seconds: float,
        gpus: IntArray,
        uplink: FloatArray,
        may_be_whole: BoolArray,
    ) -> int:
        """Ranks that all domains hold where all-to-alls take so long.

        Parameters
        ----------
        seconds : float, s
            Without latency.
        gpus : ndarray, shape (C,)
            Ranks that each domain may hold.
        uplink : ndarray, shape (C,), B/s
        may_be_whole : ndarray of bool, shape (C,)
            Whether it may hold whole groups.
        """
        size = self.size
        # Messages that an uplink carries, and that a NIC sends, in the time.
        load = seconds * uplink / self.share * (1 + ROUNDING)
        sent = seconds * self.bandwidth / self.share * (1 + ROUNDING)
        together = max(1, int(np.ceil(size - sent)))
        divided, rest = np.zeros_like(gpus), np.zeros_like(gpus)
        if 2 * together <= size:
            elsewhere = np.maximum(together, size - gpus)
            divided = np.minimum(gpus, load / elsewhere).astype(np.int64)
            # The most members, of half a group, that send no more than the load.
            root = np.sqrt(np.maximum(size * size / 4 - load, 0.0))
            rest = np.floor(size / 2 - root + ROUNDING).astype(np.int64)
            rest[load < together * (size - together)] = 0
        left = gpus % size
        fits = (left <= rest) | ((rest > 0) & (left * (size - left) <= load))
        whole = gpus - np.where(fits, 0, left - rest)
        is_whole = may_be_whole & (gpus >= size)
        held = np.where(is_whole, np.maximum(whole, divided), divided)
        return int(held.sum())


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
        world = self.step.model.job.world_size
        if self._room.sum() < world:  # that is for others to say
            return [FREE]
        # Any set brings its rings, whether or not expert groups are whole.
        in_use = self._exposed(self._sets, params.uplink_sizes)
        fullest = np.argsort(in_use, kind="stable")
        last = int(np.searchsorted(np.cumsum(self._room[fullest]), world))
        least = max(float(in_use[fullest[last]]), self._exposed_full())
        if self._exchange is None:
            return [Floor(exposed_s=least)]
        found = []
        exposed = self._exposed(self._units, params.uplink_sizes)
        for level in np.unique(np.append(exposed, least)).tolist():
            seconds = self._least_exchange(exposed <= level)
            found.append(Floor(self._pipeline_s(seconds), max(level, least)))
            if seconds == 0.0:
                break
        return found

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
        """Ranks that lie in one domain, a row a set; single where sizes differ."""
        label = self.network.label[self.tier - 1]
        sizes = np.unique(np.unique(label, return_counts=True)[1])
        if len(sizes) > 1:
            return np.arange(len(label))[:, None]
        return np.argsort(label, kind="stable").reshape(-1, int(sizes[0]))

    @property
    def _set(self) -> int:
        return int(self._sets.shape[1])

    @property
    def _members(self) -> IntArray:
        """Expert groups."""
        return self.step.model.job.parallelism.ranks_of_group["ep"]

    @cached_property
    def _exchange(self) -> _Exchange | None:
        """The all-to-alls of experts; None where none may leave a domain."""
        job, members = self.step.model.job, self._members
        if are_together(self.network.label[self.tier - 1], members):
            return None
        fabric = self.network.fabric
        share = self.step.model.volumes.ep_buffer / members.shape[1]
        if job.expert_parallel.dispatch == "deduplicated" and job.model is not None:
            copies = job.model.top_k
            share *= distinct_domains(np.array(2), copies).item() / copies
        bandwidth = float(fabric.bandwidth[fabric.scale_up_tier + 1 :].max())
        return _Exchange(members, share, bandwidth) if share > 0 else None

    @cached_property
    def _units(self) -> IntArray:
        """Sets with an expert group whole, a row of ranks each, some of them twice."""
        sets = self._sets
        if self._members.size * self._set > MOST_ELEMENTS:
            return self._members
        members = self._members
        return sets[self._set_of_rank[members]].reshape(len(members), -1)

    @cached_property
    def _set_of_rank(self) -> IntArray:
        found = np.empty(self._sets.size, dtype=np.int64)
        found[self._sets] = np.arange(len(self._sets))[:, None]
        return found

    def _exposed(self, units: IntArray, most_classes: int) -> FloatArray:
        """Least data-parallel time with one of the units in each domain; (C,), s."""
        paces = []
        families = self._families
        for groups in families:
            rings = _fewest_groups(units, groups) - self._whole(groups)
            rings = np.maximum(rings, 0)
            either = all_reduces_on_uplink(rings, groups.shape[1])
            paces += [rings / self._uplink, either / self._uplink]
        if not paces:
            return np.zeros(len(self._room))
        # Domains nearly alike count as the best of them.
        table = np.array(paces)
        order = np.lexsort(table)
        exposed = np.empty(table.shape[1])
        for some in np.array_split(order, min(most_classes, len(order))):
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
        return self._exposed_with(limits) if limits else 0.0

    def _least_pace(self, groups: IntArray, *, in_trees: bool = False) -> float:
        """Least seconds a byte with which domains hold all ranks of groups.

        Of rings, or of the buffer where groups may also take trees.

        A domain whose uplink carries ``c`` rings in that time has ranks of ``c`` groups
        beside those that are whole.
        """
        size = groups.shape[1]
        part = np.minimum(self._most_members(groups), size - 1)
        whole = self._whole(groups)
        beside = self._room - whole * size
        # With fewer rings even one set has too many.
        first = np.maximum(_fewest_groups(self._sets, groups) - whole, 0)
        last = np.maximum(-(-beside // np.maximum(part, 1)), first)
        rings = [np.arange(a, b + 1) for a, b in zip(first, last, strict=True)]
        held = [
            size * whole[d] + np.minimum(c * part[d], beside[d])
            for d, c in enumerate(rings)
        ]
        loads = [all_reduces_on_uplink(c, size) for c in rings] if in_trees else rings
        paces = [
            load / uplink for load, uplink in zip(loads, self._uplink, strict=True)
        ]
        more = np.concatenate([np.diff(ranks, prepend=0) for ranks in held])
        pace = np.concatenate(paces)
        order = np.argsort(pace, kind="stable")
        last_used = np.searchsorted(np.cumsum(more[order]), groups.size)
        return float(pace[order[min(int(last_used), len(order) - 1)]])

    def _whole(self, groups: IntArray) -> IntArray:
        """Most groups that each domain holds whole."""
        is_short = self._most_members(groups) < groups.shape[1]
        is_short |= self._room < self._beside(groups)
        return np.where(is_short, 0, self._room // groups.shape[1])

    def _most_members(self, groups: IntArray) -> IntArray:
        return self.network.most_members(groups, self.tier - 1)

    def _beside(self, groups: IntArray) -> int:
        """Fewest ranks of a domain that has one of the groups whole.

        It then has the sets of all members: with tp 4 in a node, a group of ten
        members brings ten nodes.
        """
        of_member = np.sort(self._set_of_rank[groups], axis=1)
        sets = 1 + np.count_nonzero(np.diff(of_member, axis=1), axis=1)
        return int(sets.min()) * self._set

    @cached_property
    def _families(self) -> list[IntArray]:
        """Gradient groups of each sort; once where two sorts have the same groups."""
        model = self.step.model
        found: list[IntArray] = []
        for groups in sync_groups(model.job, model.volumes).values():
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
        return max(
            min(
                with_slow_stages(
                    self.step, zip(some, chosen, strict=True)
                ).exposed_data_parallel_s
                for chosen in product(stages, repeat=len(some))
            )
            for some in together
        )

    def _least_exchange(self, may_be_whole: BoolArray) -> float:
        """Least seconds of all-to-alls, without latency, with which all ranks fit."""
        world, exchange = self.step.model.job.world_size, self._exchange
        if exchange is None:
            return 0.0
        sent = exchange.share * exchange.size
        low, high = 0.0, sent / exchange.bandwidth
        high += sent * float((self._room / self._uplink).max())
        known = self._room, self._uplink, may_be_whole
        if exchange.room(low, *known) >= world:
            return 0.0
        for _ in range(BISECTIONS):
            middle = (low + high) / 2
            is_enough = exchange.room(middle, *known) >= world
            low, high = (low, middle) if is_enough else (middle, high)
        return low

    def _pipeline_s(self, exchange_s: float) -> float:
        """Pipeline of a replica one stage of which has all-to-alls that slow, s."""
        if self._exchange is None or exchange_s == 0.0:
            return 0.0
        model, groups = self.step.model, self._exchange.groups
        limit = Limit(groups, groups.shape[1], exchange_s=exchange_s)
        network = self.network.with_limits(limit)
        slow = expert_time(network, model.job, model.volumes, model.work)
        return slow_pipeline_s(self.step, "ep", slow)


def _fewest_groups(units: IntArray, groups: IntArray) -> int:
    """Fewest of ``groups`` that a row of ``units`` has ranks of."""
    group_of_rank = np.empty(groups.size, dtype=np.int64)
    group_of_rank[groups] = np.arange(len(groups))[:, None]
    found = np.sort(group_of_rank[units], axis=1)
    return 1 + int(np.count_nonzero(np.diff(found, axis=1), axis=1).min())
