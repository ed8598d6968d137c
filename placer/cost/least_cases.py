"""The bound on the step that cases prove, without the code that found it.

All placements fall into *cases*: a group of an axis leaves its scale-up domain, or all
of them lie inside and a group of the next axis leaves, or none does. The links of a
case are as good as they can be where ranks lie together as it supposes
(`least_links`), but one group of the axis that leaves has half its members, or fewer,
in some domain.

Each case names *counts*: rows of the members of a gradient group by stage. A placement
keeps to a row, all groups of a stage having so many members or more in each domain that
they touch, or it does not. If it does not, a stage has a group with fewer, on few NICs.
If it does, domains are full with few stages, and pipelines cut. By hand: two stages on
nodes of three, and a row of two members. A node that has two of each group has room
for one stage, so each pipeline is cut once; or some group has one NIC in a node. No
counts are wrong: some prove less. Shapes: P stages, g groups of n members.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from itertools import combinations
from math import comb, inf
from typing import NamedTuple

import numpy as np

from placer.base.arrays import IntArray, row_of_number
from placer.cost.gradients import sync_groups
from placer.cost.least_links import LeastLinks
from placer.cost.least_parts import Parts, common, others, shared
from placer.cost.step import Step, StepModel
from placer.job.model import Job
from placer.placement.hop_bound import tied
from placer.topology.machine import Machine

MOST_SETS = 5_000  # of equally many cuts that are timed
SLACK = 1e-10  # of seconds that are claimed, for rounding


class CaseClaim(NamedTuple):
    """Placements that are in no case before, and what they take."""

    seconds: float  # of their step at the least
    leaves: str = ""  # axis of which a group leaves its scale-up domain; empty for none
    counts: tuple[tuple[int, ...], ...] = ()  # rows of P members of gradient groups
    times: tuple[float, ...] = ()  # and prices of parts of experts: see `Parts`
    prices: tuple[tuple[float, ...], ...] = ()


def priced_step(machine: Machine, job: Job, cases: Iterable[CaseClaim]) -> float:
    """Seconds of every step at the least, by cases; 0 where these are not all."""
    if job.roles:
        return 0.0
    model = StepModel(machine, job)
    links, least = LeastLinks.of(model), inf
    for case in cases:
        if not case.leaves or model.fabric.has_network:
            least = min(least, _Priced(model.step_on(links), links, case).seconds())
        if not case.leaves:
            return least
        groups = job.parallelism.ranks_of_group[case.leaves]
        tier = max(0, model.fabric.scale_up_tier)
        labels = [tied(one, groups) for one in links.labels[tier:]]
        links = replace(links, labels=[*links.labels[:tier], *labels], _known={})
        if not (links.stays_inside(groups).all() and _has_room(links)):
            return least
    return 0.0


def _has_room(links: LeastLinks) -> bool:
    """Whether domains of each tier may hold what stays together; False is certain."""
    machine = links.fabric.topology
    room = machine.gpus_of_node
    for t, label in enumerate(links.labels):
        if t > 0:
            room = np.bincount(machine.domain_around[t - 1], room).astype(np.int64)
        sizes = Counter(label.tolist()).values()
        if max(sizes) > room.max() or (room // min(sizes)).sum() < len(sizes):
            return False
        if max(sizes) == min(sizes):
            room = room // min(sizes) * min(sizes)
    return True


@dataclass(frozen=True, eq=False)
class _Priced:
    """One case."""

    step: Step  # on its links
    links: LeastLinks
    case: CaseClaim
    _slow: dict[int, list[float]] = field(default_factory=dict)

    def seconds(self) -> float:
        """What its placements take at the least."""
        step, axes = self.step, self.step.model.job.parallelism
        if step.sync is None:
            return step.step_time_s
        slow_s, exposed_s = step.pipeline_s(step.axes), step.exposed_data_parallel_s
        rest_s = step.step_time_s - slow_s - exposed_s
        if self.case.leaves in ("tp", "cp", "ep") and axes.size(self.case.leaves) > 1:
            # On some stage.
            groups = axes.ranks_of_group[self.case.leaves]
            slow = self.links.slow_steps(step, (groups, groups.shape[1] // 2))
            slow_s = min(one.pipeline_s(step.axes) for one in slow)
        lane_s, (brings, ranks) = cache(self._lane_s), self._part
        # Of those that keep to no row before, each has a member at least everywhere.
        least, before = inf, list[int]()
        for row in (*self.case.counts, (1,) * axes.pp):
            if before:
                exposed_s = min(self._exposed(*one) for one in enumerate(before))
            size = self._groups.shape[1]
            before = [-(-min(row[at], size) // brings) for at in range(axes.pp)]
            cuts = self._cuts([parts * ranks for parts in before])
            least = min(least, exposed_s + max(slow_s, lane_s(cuts)))
        return max(rest_s + least, self._proved_by_parts())

    def _proved_by_parts(self) -> float:
        """What prices of parts prove, if it is what the case claims."""
        tier, case = self.step.model.fabric.scale_up_tier, self.case
        claimed, every = case.seconds * (1 - SLACK), np.arange(self._groups.size)
        if len(case.times) < 2 or len(case.times) != len(case.prices) + 1:
            return 0.0
        for label in (self.links.labels[tier], every):
            parts = Parts.of(self.step, self.links, label)
            if parts is not None:
                known = np.array(case.times), np.array(case.prices)
                return claimed if parts.prove(claimed, *known) else 0.0
        return 0.0

    @cached_property
    def _groups(self) -> IntArray:
        """Gradient groups, those of shards where they have some; else single ranks."""
        job, alone = self.step.model.job, np.arange(len(self.links.labels[0]))
        return sync_groups(job, self.step.model.volumes).get("dp", alone[:, None])

    @cached_property
    def _part(self) -> tuple[int, int]:
        """Members of each gradient group, and ranks, that always come together."""
        tier = self.step.model.fabric.scale_up_tier
        if tier < 0:
            return 1, 1
        stage = self.step.model.job.parallelism.coordinates["pp"]
        label, group = self.links.labels[tier], row_of_number(self._groups)
        found = common(shared(label, label), shared(label, group), others(label, stage))
        return (found[1], found[0]) if found and found[2] == 1 else (1, 1)

    def _exposed(self, stage: int, parts: int) -> float:
        """Seconds where a stage has fewer parts of a group in some domain."""
        # Of several domains one has half of a group, or less.
        brings = self._part[0]
        few = min(parts - 1, self._groups.shape[1] // 2 // brings) * brings
        if few < 1 or not self.step.model.fabric.has_network:
            return inf
        if few not in self._slow:
            slow = self.links.slow_steps(self.step, (self._groups, few))
            self._slow[few] = [one.exposed_data_parallel_s for one in slow]
        return self._slow[few][stage]

    def _cuts(self, ranks: list[int]) -> int:
        """Hops of a pipeline that leave a domain, where this holds so many by stage."""
        model, stages = self.step.model, len(ranks)
        room = int(np.bincount(model.fabric.scale_up_domain_of_gpu).max())
        if max(ranks) > room:
            return stages + 1  # there are none
        is_ring, pieces = model.job.parallelism.vp > 1, 1
        if sum(ranks) > room:
            starts = range(stages if is_ring else 1)
            pieces = min(_pieces(ranks[at:] + ranks[:at], room) for at in starts)
        if self.case.leaves == "pp":
            pieces = max(pieces, 2)
        return pieces if is_ring and pieces > 1 else pieces - 1

    def _lane_s(self, cuts: int) -> float:
        """Least seconds of a pipeline so many of whose hops leave a domain."""
        step, model, axes = self.step, self.step.model, self.step.model.job.parallelism
        stages, hops = axes.pp, axes.pp - (axes.vp == 1)
        outer, plain = model.fabric.scale_up_tier + 1, step.patterns(step.axes)[0]
        if cuts > (hops if model.fabric.has_network else 0):
            return inf
        if not cuts:
            return step.pipeline_s(step.axes)
        message_s = model.fabric.least_message_s(outer, model.volumes.pp_message)
        while comb(hops, cuts) > MOST_SETS:
            cuts -= 1
        rows = np.tile(plain, (comb(hops, cuts), 1))
        sets = combinations(range(2 * stages, 2 * stages + hops), cuts)
        for row, some in zip(rows, sets, strict=True):
            row[[*some]] = np.maximum(row[[*some]], message_s)
        return min(step.pipelines_s(rows))


def _pieces(ranks: list[int], room: int) -> int:
    """Fewest domains in a row that hold stages of so many ranks."""
    pieces, filled = 1, 0
    for more in ranks:
        filled += more
        if filled > room:
            pieces, filled = pieces + 1, more
    return pieces
