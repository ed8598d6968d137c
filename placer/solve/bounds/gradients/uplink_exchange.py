"""All-to-alls of experts that may leave a domain with a thin uplink.

What a domain holds of groups that it divides: in ``E`` seconds a NIC sends what leaves
a node with ``q = n - E bandwidth / s`` members or more of ``n`` that send ``s`` bytes
to each other. At least ``q`` members are elsewhere, so that ``m`` members send
``s m q`` bytes or more, and a domain with an uplink of ``U`` bytes a second holds at
most ``E U / (s q)`` ranks. With groups whole, what is left of a room is a divided one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from placer.arrays import IntArray
from placer.cost.collectives import share_sent
from placer.cost.stage_times import expert_time
from placer.solve.bounds.gradients.uplink_room import ROUNDING
from placer.solve.bounds.network.limit import Limit, slow_pipelines_s
from placer.solve.problem.colocation import are_together

if TYPE_CHECKING:
    from placer.cost.step import Step
    from placer.solve.bounds.gradients.uplink_room import UplinkRoom

BISECTIONS = 60


@dataclass(frozen=True, eq=False)
class Exchanges:
    """All-to-alls of a step behind the uplinks of a tier.

    Attributes
    ----------
    step : Step
    room : UplinkRoom
    groups : ndarray, shape (g, n)
    share : float, bytes
        What one member sends to another, in another scale-up domain.
    """

    step: Step
    room: UplinkRoom
    groups: IntArray
    share: float

    @classmethod
    def of(cls, step: Step, room: UplinkRoom) -> Exchanges | None:
        """Those of experts; None where none may leave a domain."""
        model, network = step.model, room.network
        job, members = model.job, model.job.parallelism.ranks_of_group["ep"]
        if are_together(network.label[room.tier - 1], members):
            return None
        share = model.volumes.ep_buffer / members.shape[1]
        if job.expert_copies:
            share *= share_sent(np.array(2), job.expert_copies).item()
        return cls(step, room, members, share) if share > 0 else None

    def pipeline_s(self, held: IntArray, together: IntArray) -> float:
        """Pipeline of a replica one stage of which has all-to-alls so slow, s.

        Parameters
        ----------
        held, together : ndarray, shape (C,)
            Most ranks of each domain, and of one group there.
        """
        seconds = self._least_s(held, together)
        if seconds == 0.0:
            return 0.0
        model, groups = self.step.model, self.groups
        limit = Limit(groups, groups.shape[1], exchange_s=seconds)
        network = self.room.network.with_limits(limit)
        slow = expert_time(network, model.job, model.volumes, model.work)
        return float(slow_pipelines_s(self.step, "ep", slow).min())

    def _least_s(self, held: IntArray, together: IntArray) -> float:
        """Least seconds of all-to-alls, without latency, with which all ranks fit."""
        world, uplink = self.step.model.job.world_size, self.room.uplink
        sent = self.share * self.groups.shape[1]
        low, high = 0.0, sent / self.room.nic + sent * float((held / uplink).max())

        def is_enough(seconds: float) -> bool:
            fits = self._room_for(seconds, together)
            return int(np.minimum(fits, held).sum()) >= world

        if is_enough(low):
            return 0.0
        for _ in range(BISECTIONS):
            middle = (low + high) / 2
            low, high = (low, middle) if is_enough(middle) else (middle, high)
        return low

    def _room_for(self, seconds: float, most: IntArray) -> IntArray:
        """Ranks that each domain holds where all-to-alls take so long; (C,).

        Parameters
        ----------
        seconds : float, s
            Without latency.
        most : ndarray, shape (C,)
            Ranks of one group that it may hold.
        """
        size, gpus, uplink = self.groups.shape[1], self.room.ranks, self.room.uplink
        # Messages that an uplink carries, and that a NIC sends, in the time.
        load = seconds * uplink / self.share * (1 + ROUNDING)
        sent = seconds * self.room.nic / self.share * (1 + ROUNDING)
        least = max(1, int(np.ceil(size - sent)))
        divided, rest = np.zeros_like(gpus), np.zeros_like(gpus)
        if 2 * least <= size:
            elsewhere = np.maximum(least, size - np.minimum(gpus, most))
            divided = np.minimum(gpus, load / elsewhere).astype(np.int64)
            # The most members, of half a group, that send no more than the load.
            root = np.sqrt(np.maximum(size * size / 4 - load, 0.0))
            rest = np.floor(size / 2 - root + ROUNDING).astype(np.int64)
            rest[load < least * (size - least)] = 0
        left = gpus % size
        fits = (left <= rest) | ((rest > 0) & (left * (size - left) <= load))
        whole = gpus - np.where(fits, 0, left - rest)
        return np.where(
            np.minimum(gpus, most) >= size, np.maximum(whole, divided), divided
        )
