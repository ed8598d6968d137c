"""How many groups of an axis are cut by all placements, and how evenly.

Where c groups are cut, g of one stage of one replica, some of the ``dp`` replicas has
``k = ceil(ceil(c / g) / dp)`` stages with one. Its pipeline is as slow as with the k
stages that matter least. So it is for those groups alone that have a part below ``p``.
In a launch by nodes `run_counts.py` knows more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from math import ceil
from typing import TYPE_CHECKING

import numpy as np

from placer.arrays import FloatArray, IntArray
from placer.solve.bounds.groups.across_sets import AcrossSets, across_sets
from placer.solve.bounds.groups.cut_runs import CutRuns
from placer.solve.bounds.groups.even_parts import most_even
from placer.solve.bounds.groups.host_runs import fewest_leaving, hosts_of
from placer.solve.bounds.groups.run_counts import RunCounts
from placer.solve.bounds.groups.run_patterns import (
    MOST,
    MOST_PATTERNS,
    RunPatterns,
    patterns_of,
)
from placer.solve.bounds.groups.slots import Slots
from placer.solve.bounds.network.best_network import Leaving
from placer.solve.bounds.network.limit import (
    Limit,
    slow_pipeline_s,
    slow_pipelines_s,
    with_slow_axis,
)

if TYPE_CHECKING:
    from placer.cost.stage_times import StageTime
    from placer.cost.step import Step
    from placer.job.axes import Parallelism
    from placer.solve.bounds.network.ideal import IdealNetwork
    from placer.solve.problem.params import Params

# Axes of which groups inside domains of each outer tier are a case of their own.
BY_TIER = ("tp", "cp")


@dataclass(frozen=True, eq=False)
class CutGroups:
    """Groups of an axis, and what keeps scale-up domains from holding them whole.

    Attributes
    ----------
    network : IdealNetwork
        What the step is priced on.
    members : ndarray, shape (g, n)
    room : ndarray, shape (D,)
        Ranks that each scale-up domain may hold.
    across : tuple of AcrossSets
        Rules about outer tiers.
    runs : CutRuns, optional
        In a launch by nodes.
    far : int
        Tier of which a group leaves its domain; the scale-up tier if no more is known.
    """

    step: Step
    network: IdealNetwork
    axis: str
    members: IntArray
    room: IntArray
    across: tuple[AcrossSets, ...]
    runs: CutRuns | None
    params: Params
    far: int

    @classmethod
    def of(
        cls,
        step: Step,
        network: IdealNetwork,
        axis: str,
        room: IntArray,
        params: Params,
        far: int = -1,
    ) -> CutGroups:
        """Of one axis, where ranks stay together as the network of a step says.

        Parameters
        ----------
        step : Step
            On ``network``.
        room : ndarray, shape (D,)
            Ranks that each scale-up domain may hold.
        far : int
            Tier of which a group leaves its domain; -1 for the scale-up tier.
        """
        topology, job = step.model.topology, step.model.job
        members = job.parallelism.ranks_of_group[axis]
        tier, runs = network.fabric.scale_up_tier, None
        if network.by_nodes and tier in network.run_tiers:
            work = params.cut_run_work
            runs = CutRuns.of(topology, job, members, network.label, work, tier)
        across = across_sets(topology.domain_of_node, network.label, tier, members)
        far, sets = max(far, tier), tuple(across)
        return cls(step, network, axis, members, room, sets, runs, params, far)

    @property
    def is_certain(self) -> bool:
        """Whether every placement cuts a group."""
        return self.network.leaves_scale_up(self.members) or self.fewest > 0

    @property
    def where(self) -> str:
        """Name of the domains that a group leaves."""
        if self.far == self.network.fabric.scale_up_tier:
            return "scale-up domain"
        return self.step.model.topology.tiers[self.far].name

    @cached_property
    def fewest(self) -> int:
        """Groups that are cut at the least."""
        groups, size = self.members.shape
        found = [groups - int((self.room // size).sum())]
        found += [sets.fewest_cut(self.room, groups) for sets in self.across]
        if self.runs is not None:
            found.append(self.runs.fewest_cut(size))
        return int(max(0, *found))

    def slow_stages(self, axes: Parallelism) -> list[tuple[int, int]]:
        """Slow stages of a replica, and the largest least part of their groups.

        Each pair holds for every placement that cuts a group.
        """
        size = self.members.shape[1]
        even = most_even(self.room, size, self.members.size, self.across)
        found = [(1, even), (self._stages(self.fewest, axes), max(1, size // 2))]
        if self.runs is not None:
            for part in range(2, size // 2 + 1):
                below = self.runs.fewest_cut(part)
                found.append((self._stages(below, axes), part - 1))
        return [
            one
            for one in dict.fromkeys(found)
            if one[0]
            and not any(
                other != one and other[0] >= one[0] and other[1] <= one[1]
                for other in found
            )
        ]

    @cached_property
    def pipeline_s(self) -> float:
        """Least time of the slowest pipeline of a placement that cuts a group, s."""
        axes = self.step.model.job.parallelism
        slow = [(n, self._slow(even)) for n, even in self.slow_stages(axes)]
        if self.far > self.network.fabric.scale_up_tier:
            half = max(1, self.members.shape[1] // 2)
            slow.append((1, self._slow(half, self.far)))
        node = self.step.model.topology.node_tier
        slow += [(n, self._slow(even, node)) for n, even in self._leaving_hosts]
        most = self.params.slow_sets
        found = max(
            slow_pipeline_s(self.step, self.axis, one, n, most) for n, one in slow
        )
        patterns = self.run_patterns if self.fewest else None
        if patterns is not None and patterns.repeats == axes.dp:
            found = max(found, patterns.least_s())
        elif self.fewest and self.run_counts is not None:
            found = self.run_counts.least_s(found)
        return found

    @property
    def _leaving_hosts(self) -> list[tuple[int, int]]:
        """Stages of a replica with a group that leaves its host, by its least part."""
        topology, size = self.step.model.topology, self.members.shape[1]
        tier, axes = topology.node_tier, self.step.model.job.parallelism
        is_far = self.network.fabric.scale_up_tier < tier <= self.far
        if not (self.network.by_nodes and self._in_order and is_far):
            return []
        hosts, ranks = hosts_of(topology), self.members.size
        found = []
        for part in (*range(2, size // 2 + 1), size):
            cut = fewest_leaving(hosts, size, part, ranks, self.params.cut_run_work)
            found.append((self._stages(cut, axes), max(1, min(part - 1, size // 2))))
        return [one for one in found if one[0]]

    def with_parts(self, parts: Sequence[int]) -> Step:
        """The step where domains hold few ranks of a group.

        Parameters
        ----------
        parts : sequence of int
            Most ranks of a group of each stage in a domain.
        """
        step, size = self.step, self.members.shape[1]
        for part in set(parts):
            if part < size:
                stages = [stage for stage, most in enumerate(parts) if most == part]
                slow = self._slow(size // -(-size // part))
                step = with_slow_axis(step, self.axis, slow, stages)
        return step

    @property
    def _in_order(self) -> bool:
        """Whether groups are of consecutive ranks, and a domain holds one run."""
        job, tier = self.step.model.job, self.network.fabric.scale_up_tier
        in_turn = np.arange(self.members.size).reshape(self.members.shape)
        return (
            job.launcher != "free"
            and tier in self.network.run_tiers
            and self.members.size == job.world_size
            and np.array_equal(self.members, in_turn)
        )

    @cached_property
    def run_patterns(self) -> RunPatterns | None:
        """Parts of tp or cp groups that runs allow; None where they hold none."""
        axes, known = self.step.model.job.parallelism, self.run_counts
        if known is None or not self._has_patterns or axes.world_size > MOST:
            return None
        together, repeats = known.groups * known.slots, known.periods
        return RunPatterns(
            known.gpus,
            known.size,
            together,
            repeats,
            known.levels,
            known.patterns,
            known.seconds,
        )

    @cached_property
    def run_counts(self) -> RunCounts | None:
        """What runs cut in each stage; None where domains hold none."""
        if not (self.network.by_nodes and self._in_order):
            return None
        axes, (groups, size) = self.step.model.job.parallelism, self.members.shape
        stage = axes.coordinates["pp"][self.members[:, 0]]
        others = np.flatnonzero(stage != stage[0])
        together = int(others[0]) if len(others) else groups
        if not np.array_equal(stage, np.arange(groups) // together % axes.pp):
            return None
        in_slot = groups // (axes.pp * axes.dp) if self._has_patterns else 1
        gpus = np.bincount(
            self.network.fabric.topology.domain_of_gpu[
                self.network.fabric.scale_up_tier
            ]
        )
        slots, periods = together // in_slot, groups // (together * axes.pp)
        known = self._patterns() if self._has_patterns else self._stages_alone()
        return RunCounts(gpus, size, in_slot, slots, periods, *known)

    @property
    def _has_patterns(self) -> bool:
        """Whether a slot has groups of its own, and there are few patterns."""
        axes = self.step.model.job.parallelism
        return self.axis in BY_TIER and 2**axes.pp <= MOST_PATTERNS

    def _patterns(self) -> tuple[tuple[int, ...], IntArray, FloatArray]:
        """Levels of the least part, patterns of a replica, and the time of each."""
        size, stages = self.members.shape[1], self.step.model.job.parallelism.pp
        levels = self._levels(stages)
        slow = [self._slow(min(size // 2, part - 1)) for part in levels[1:]]
        seconds = partial(self._seconds, [*slow, self.step.stage_times[self.axis]])
        return levels, *patterns_of(len(levels), stages, seconds)

    def _stages_alone(self) -> tuple[tuple[int, ...], IntArray, FloatArray]:
        """The same of all stages that may be cut where each alone takes no longer."""
        half = max(1, self.members.shape[1] // 2)
        alone = slow_pipelines_s(self.step, self.axis, self._slow(half))
        seconds = np.unique(
            np.append(alone, self.step.pipeline_s(tuple(self.step.stage_times)))
        )
        patterns = (alone > seconds[:, None]).astype(np.int64)
        return (1, self.members.shape[1]), patterns, seconds

    def _levels(self, stages: int) -> tuple[int, ...]:
        """Least parts that are told apart, no more than stages leave room for."""
        size = self.members.shape[1]
        even = most_even(self.room, size, self.members.size, self.across)
        whole = [size] if size <= self.room.max() else []
        known = [*range(2, size // 2 + 1), *whole]
        # Parts that all groups may have, and larger ones, decide how fast one can be.
        known.sort(key=lambda part: (part != even + 1, part != size, abs(part - even)))
        number = max(n for n in range(2, size + 2) if n**stages <= MOST_PATTERNS)
        return (1, *sorted(known[: number - 1]))

    def _seconds(self, times: Sequence[StageTime], patterns: IntArray) -> FloatArray:
        """Pipeline time of a replica whose stages have such times of the axis, s."""
        step, stage = self.step, np.arange(patterns.shape[1])
        zero = np.zeros(patterns.shape)
        added = []
        for way in ("forward", "backward"):
            own = np.array([getattr(time, way).min(axis=0) for time in times])
            others = (
                getattr(time, way).min(axis=0)
                for axis, time in step.stage_times.items()
                if axis not in (self.axis, "pp")
            )
            added.append(own[patterns, stage] + sum(others, start=zero))
        hops = step.stage_times.get("pp")
        hop = zero if hops is None else zero + hops.forward.min(axis=0)
        slowness = zero + step.slowness.min(axis=0)
        forward, backward = added
        rows = step.model.patterns(forward, backward, hop, slowness)
        return np.array(step.pipelines_s(rows))

    def _slow(self, even: int, far: int = -1) -> StageTime:
        """Least time of a stage with a group that has a part no larger, s.

        Parameters
        ----------
        far : int
            Tier of which it leaves its domain; -1 if that is not known.
        """
        beside = Slots.of(self.step, self.network, self.room)
        if self.axis == "tp" and beside is not None:
            return beside.with_cut_tp(even, far)
        return self._split(even, far).stage_times[self.axis]

    def _split(self, even: int, far: int) -> Step:
        """The step when every group leaves its scale-up domain, or one further out."""
        inner = self.network.fabric.scale_up_tier + 1
        split = Leaving.of(self.network, inner)
        limited = split.with_limits(Limit(self.members, even, far=far))
        return self.step.model.step_on(limited)

    def _stages(self, cut: int, axes: Parallelism) -> int:
        """Stages of some replica that have one of so many groups."""
        stage, replica = (axes.coordinates[name][self.members] for name in ("pp", "dp"))
        slots = axes.pp * axes.dp
        is_apart = (stage != stage[:, :1]).any() or (replica != replica[:, :1]).any()
        if is_apart or len(self.members) % slots:
            return min(cut, 1)
        stages: int = ceil(Fraction(cut * slots, len(self.members) * axes.dp))
        return stages
