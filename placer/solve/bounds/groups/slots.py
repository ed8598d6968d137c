"""Stages of a replica that have tp and cp: what is whole of one axis cuts the other.

A *slot* is one stage of one replica, a grid of tp by cp ranks. Where a tp group is cut
and all cp groups are whole, a domain with q ranks of it holds the cp groups of all q:

    q cp <= GPUs of the largest domain

So a slot that is cut has a cp group outside; or a tp group with a part of ``q`` or less
and all cp groups inside. Where a domain and a slot are one run of ranks, a cp group has
ranks on either side of every place inside. See docs/method.md, "Slots".
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil
from typing import TYPE_CHECKING

import numpy as np

from placer.arrays import FloatArray, IntArray
from placer.solve.bounds.network.limit import Limit, slow_pipeline_s

if TYPE_CHECKING:
    from placer.cost.stage_times import StageTime
    from placer.cost.step import Step
    from placer.solve.bounds.network.ideal import IdealNetwork
    from placer.solve.problem.params import Params

AXES = ("tp", "cp")


@dataclass(frozen=True, eq=False)
class Slots:
    """The slots of a job with tp and cp.

    Attributes
    ----------
    step : Step
        On ``network``.
    room : ndarray, shape (D,)
        Ranks that each scale-up domain may hold.
    """

    step: Step
    network: IdealNetwork
    room: IntArray

    @classmethod
    def of(cls, step: Step, network: IdealNetwork, room: IntArray) -> Slots | None:
        """Those of a step; None where one of the axes has a single rank."""
        axes = step.model.job.parallelism
        has_both = step.model.job.model is not None and min(axes.tp, axes.cp) > 1
        return cls(step, network, room) if has_both else None

    def pipeline_s(self, params: Params) -> float:
        """Least time of the slowest pipeline where slots are cut for certain, s."""
        axes = self.step.model.job.parallelism
        whole = int((self.room // (axes.tp * axes.cp)).sum())
        cut = axes.pp * axes.dp - whole
        if cut <= 0:
            return 0.0
        stages = ceil(Fraction(cut, axes.dp))
        ways = [self._outside(cp=True)]
        if not self._is_run:
            ways.append(self._outside(tp=self._beside_cp))
        slow = self._least(*ways)
        return slow_pipeline_s(self.step, "tp", slow, stages, params.slow_sets)

    def with_cut_tp(self, even: int, far: int = -1) -> StageTime:
        """Least time of a stage with a tp group that has a part no larger, s.

        It stands for tp and for what cp adds beside it.

        Parameters
        ----------
        far : int
            Tier of which the group leaves its domain; -1 if that is not known.
        """
        ways = [self._outside(tp=even, cp=True, far=far)]
        if not self._is_run:
            alone = min(even, self._beside_cp)
            ways.append(self._outside(tp=alone, far=far))
        return self._least(*ways)

    @property
    def _is_run(self) -> bool:
        """Whether a slot is a run of ranks, and so is what a domain holds."""
        network, axes = self.network, self.step.model.job.parallelism
        if (
            not network.by_nodes
            or network.fabric.scale_up_tier not in network.run_tiers
        ):
            return False
        apart = [np.diff(np.sort(axes.ranks_of_group[axis]), axis=1) for axis in AXES]
        return bool((apart[0] == 1).all() and (apart[1] == axes.tp).all())

    @property
    def _beside_cp(self) -> int:
        """Ranks of a cut tp group in a domain, at the most, if cp groups are whole."""
        axes = self.step.model.job.parallelism
        return max(1, min(axes.tp // 2, int(self.room.max()) // axes.cp))

    def _outside(self, *, tp: int = 0, cp: bool = False, far: int = -1) -> Step:
        """The step with tp groups in parts of so many, cp groups in several domains."""
        groups = self.step.model.job.parallelism.ranks_of_group
        tier, limits = self.network.fabric.scale_up_tier, []
        if tp:
            limits.append(Limit(groups["tp"], tp, far=max(far, tier)))
        if cp:
            half = max(1, groups["cp"].shape[1] // 2)
            limits.append(Limit(groups["cp"], half, far=tier))
        return self.step.model.step_on(self.network.with_limits(*limits))

    def _least(self, *steps: Step) -> StageTime:
        """The tp time to which is added the least that steps add to tp and cp."""
        base = self.step.stage_times

        def added(one: Step, way: str) -> FloatArray:
            more = [getattr(one.stage_times[a], way) for a in AXES]
            return np.asarray(sum(more) - sum(getattr(base[a], way) for a in AXES))

        forward, backward = (
            getattr(base["tp"], way) + np.min([added(one, way) for one in steps], 0)
            for way in ("forward", "backward")
        )
        return replace(base["tp"], forward=forward, backward=backward)
