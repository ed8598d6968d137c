"""Uplinks that several jobs load: what each leaves to the others.

Steps of different jobs are not in time with each other. So a job takes from an uplink
its mean rate: the bytes of a step over the seconds of a step alone, of the busier
direction. The others share what it leaves, but each gets at least an equal part: flows
that meet on a link part it fairly (max-min; Bertsekas and Gallager, *Data Networks*,
6.5). Where no tier is oversubscribed, an uplink carries all that its GPUs can send, and
jobs on different GPUs do not meet.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from placer.cost.links import total_load
from placer.cost.step import StepModel

if TYPE_CHECKING:
    from collections.abc import Sequence

    from placer.allocation.offers import Offer
    from placer.base.arrays import FloatArray
    from placer.job.model import Job
    from placer.placement.placement import Placement
    from placer.topology.model import Topology

# Each domain's uplink by tier: the share of it that a job takes.
Use = tuple["FloatArray", ...]


def meet(machine: Topology) -> bool:
    """Whether jobs on different nodes can be in each other's way."""
    return any(tier.oversubscription > 1 for tier in machine.tiers)


def use_of(machine: Topology, job: Job, placement: Placement) -> Use:
    """Share of every uplink that a job takes, by tier; each of shape (domains,)."""
    model = StepModel(machine, job)
    step = model.step(placement.gpu_of_rank)
    load = total_load(step.traffic().values())
    seconds = step.step_time_s
    fabric, inner = model.fabric, len(model.fabric.topology.tiers) - len(machine.tiers)
    shares = [np.zeros(len(names)) for names in machine.domain_names]
    if load is None or seconds <= 0:
        return tuple(shares)
    for tier in range(1, len(machine.tiers)):
        up, down = load.up[tier + inner], load.down[tier + inner]
        if len(up):
            busy = np.maximum(up, down) / fabric.uplink_capacity[tier + inner]
            shares[tier - 1] = np.minimum(busy / seconds, 1.0)
    return tuple(shares)


def left_by(others: Sequence[Use]) -> Use | None:
    """Share of every uplink that these jobs leave to one more; None for all of it."""
    if not others:
        return None
    left = []
    for uses in zip(*others, strict=True):
        taken = np.sum(uses, axis=0)
        fair = 1 / (1 + np.sum([use > 0 for use in uses], axis=0))
        left.append(np.maximum(1 - taken, fair))
    return tuple(left)


class Uses:
    """What the offers of one machine take of its uplinks, each worked out once."""

    def __init__(self, machine: Topology, always: Sequence[Use] = ()) -> None:
        self._machine, self._always = machine, [*always]
        self.meet = meet(machine)
        self._known: dict[int, tuple[Offer, Use]] = {}

    @property
    def kept(self) -> Use | None:
        """What jobs that stay leave to one more; None for all of it."""
        return left_by(self._always) if self.meet else None

    def shares(self, offers: Sequence[Offer]) -> list[Use | None]:
        """What all others leave to each of these offers."""
        if not self.meet:
            return [None] * len(offers)
        uses = [self._of(offer) for offer in offers]
        return [
            left_by([*self._always, *uses[:i], *uses[i + 1 :]])
            for i in range(len(offers))
        ]

    def _of(self, offer: Offer) -> Use:
        known = self._known.get(id(offer))
        if known is None:
            placement = offer.solution.placement
            known = offer, use_of(self._machine, offer.job, placement)
            self._known[id(offer)] = known
        return known[1]
