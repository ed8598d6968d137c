"""Messages of pipelines that leave a domain with a thin uplink.

A lane is the ranks of a replica that pass on to each other, one a stage. A domain that
divides a lane sends one of its messages or receives one, and both where the last stage
sends to the first. All go at once, so an uplink that carries ``x`` messages in a time
has ``x`` divided lanes, or ``2 x`` of open chains. In a domain with more ranks than
these allow more than ``x`` messages are slow. By hand: four racks of 16 ranks, one of a
lane each. With 15 messages in the time a rack holds 15 ranks; all four need to hold a
16th, and 64 messages are slow: all stages of all replicas.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from placer.arrays import IntArray
from placer.cost.stage_times import pipeline_hops
from placer.solve.bounds.gradients.uplink_parts import paces_of_slow
from placer.solve.bounds.network.limit import Limit, most_stages, slow_pipelines_s

if TYPE_CHECKING:
    from placer.cost.step import Step
    from placer.solve.bounds.gradients.uplink_room import UplinkRoom
    from placer.solve.problem.params import Params


@dataclass(frozen=True, eq=False)
class Messages:
    """Messages of pipelines behind the uplinks of a tier.

    Attributes
    ----------
    step : Step
        On the network of ``room``.
    room : UplinkRoom
    params : Params
    """

    step: Step
    room: UplinkRoom
    params: Params

    @property
    def groups(self) -> IntArray:
        """Ranks of each lane, a row a lane."""
        return self.step.model.job.parallelism.ranks_of_group["pp"]

    def pipeline_s(self, held: IntArray, together: IntArray) -> float:
        """Least time of the slowest pipeline, s.

        Parameters
        ----------
        held, together : ndarray, shape (C,)
            Most ranks of each domain, and of one lane there.
        """

        def slow_stages(pace: float) -> int:
            return self._slow_stages(pace, held, together)

        paces = self.room.paces(self.groups)
        senders = self.groups.shape[1] - self._is_open
        slow = paces_of_slow(paces, senders, slow_stages)
        return max(
            (self._with_slow(pace, stages) for stages, pace in slow), default=0.0
        )

    @property
    def _is_open(self) -> bool:
        """Whether the last stage sends nothing to the first."""
        return self.step.model.job.parallelism.vp == 1

    def _slow_stages(self, pace: float, held: IntArray, together: IntArray) -> int:
        """Stages of some replica that send more slowly than a pace, at the least."""
        world, (lanes, size) = self.step.model.job.world_size, self.groups.shape
        messages = self.room.carried(pace)
        divided = messages * 2 if self._is_open else messages
        part = np.minimum(together, size - 1)
        whole = np.where(together >= size, held // size * size, 0)
        fast = np.minimum(held, whole + divided * part)
        missing = world - int(fast.sum())
        if missing <= 0:
            return 0
        more = np.sort(held - fast)[::-1]
        slow = int(np.searchsorted(np.cumsum(more), missing)) + 1
        sent = int(np.sort(messages[held > fast] + 1)[:slow].sum())
        if self._is_open and slow > 1:
            sent = -(-sent // 2)  # what leaves one of them may enter the other
        return -(-sent // int(lanes))

    def _with_slow(self, pace: float, stages: int) -> float:
        """Least time of a pipeline that sends so slowly from so many stages, s."""
        model, groups = self.step.model, self.groups
        pp = groups.shape[1]
        stages = most_stages(pp, stages, self.params.slow_sets)
        limit = Limit(groups, pp, uplink_pace=pace)
        network = self.room.network.with_limits(limit)
        slow = pipeline_hops(network, model.job, model.volumes)
        seconds = slow_pipelines_s(self.step, "pp", slow, stages)
        if self._is_open:
            chosen = combinations(range(pp), stages)
            seconds = seconds[[pp - 1 not in some for some in chosen]]
        return float(seconds.min())
