"""A bound on the step time: parts of expert groups must fit what domains hold.

A *unit* is made of expert groups of one stage, and of what must stay together with
them; a *piece* is a set of ranks that must. The smallest part of a unit sets the time
of its stage. At any prices of parts (`part_prices`) some replica has stages whose units
cost no more than its share, and the fastest such replica is a bound. Shapes: P stages.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from placer.base.arrays import FloatArray, IntArray
from placer.cost.collectives import share_sent
from placer.cost.exchange import KERNEL_SHARE
from placer.cost.schedule import pipeline_times
from placer.cost.stage_times import expert_passes
from placer.solve.bounds.experts.expert_units import Units, units_of
from placer.solve.bounds.experts.level_boxes import Boxes
from placer.solve.bounds.experts.part_prices import Packing, PartPrices
from placer.solve.bounds.network.latency import exchange_latency

if TYPE_CHECKING:
    from placer.cost.step import Step
    from placer.solve.bounds.case import Case
    from placer.solve.bounds.network.ideal import IdealNetwork
    from placer.solve.problem.params import Params


@dataclass(frozen=True, eq=False)
class StageParts:
    """Units and domains of a job, and what parts make of its step.

    Attributes
    ----------
    step : Step
        On the network.
    network : IdealNetwork
        The best imaginable.
    packing : Packing
        Of units, in pieces.
    room : ndarray, shape (D,)
        Of each domain, in pieces.
    """

    step: Step
    network: IdealNetwork
    units: Units
    packing: Packing
    room: IntArray

    @classmethod
    def of(cls, case: Case) -> StageParts | None:
        """Units of a job with experts; None where all are single pieces or differ."""
        step, network, room = case.step, case.network, case.room
        job, scale_up = step.model.job, network.fabric.scale_up_tier
        if job.model is None or job.parallelism.ep == 1 or scale_up < 0:
            return None
        units = units_of(job, network.label[scale_up])
        if units is None or units.pieces == 1:
            return None
        pieces = room // units.ranks
        packing = Packing.of(pieces, units.pieces)
        return None if packing is None else cls(step, network, units, packing, pieces)

    def seconds(self, tier: int) -> dict[int, float]:
        """Least seconds of an all-to-all by the pieces of the smallest part of a unit.

        A member of that part has ``here - 1`` peers inside its domain, no more of them
        on its island than fit there; what it sends to the others leaves through its
        NIC, over ``tier`` or a wider one. The last entry is that of a whole unit, where
        one fits.
        """
        job, fabric = self.step.model.job, self.network.fabric
        copies = job.expert_copies
        size = self.units.pieces * self.units.members
        share = self.step.model.volumes.ep_buffer / size
        inner, groups = fabric.scale_up_tier + 1, job.parallelism.ranks_of_group["ep"]
        most = (self.network.most_members(groups, t).max() for t in range(inner))
        fits = [max(1, int(one)) for one in most]

        def near(seconds: FloatArray, here: int) -> float:
            """Least seconds to all peers inside, given those of one on each tier."""
            return exchange_latency(seconds[:inner], np.array([*fits[:-1], here]))

        paces, found = share / fabric.bandwidth, {}
        if copies:
            paces *= float(share_sent(np.array(size), copies)) / KERNEL_SHARE
        if tier < fabric.num_tiers:
            far = share / float(fabric.bandwidth[tier:].max())
            far_s = float(fabric.latency[tier:].min())
            domains = max(2, -(-self.units.pieces // self.packing.largest))
            for pieces in range(1, self.units.pieces // domains + 1):
                here = pieces * self.units.members
                hops, sent = size - here, float(size - here)
                if copies:
                    hops = domains - 1
                    sent *= float(share_sent(np.array(domains), copies))
                seconds = max(sent * far, near(paces, here))
                latency = near(fabric.latency, here) + hops * far_s
                found[pieces] = seconds + latency
        if self.packing.largest == self.units.pieces:
            found[self.units.pieces] = near(paces + fabric.latency, size)
        return found

    def step_times(self, seconds: FloatArray) -> FloatArray:
        """Least step with a replica whose all-to-alls take so long, (C, P) s; (C,)."""
        step, model, job = self.step, self.step.model, self.step.model.job
        forward_s = model.work.layer_forward_s
        forward, backward = expert_passes(job, model.volumes, forward_s, seconds)
        for axis, time in step.stage_times.items():
            if axis not in ("ep", "pp"):
                forward = forward + time.forward[0]
                backward = backward + time.backward[0]
        hop = np.zeros(seconds.shape)
        if "pp" in step.stage_times:
            hop = hop + step.stage_times["pp"].forward[0]
        schedule = job.micro_batches, job.parallelism.vp, job.overlap.pp
        rows = model.patterns(forward, backward, hop, step.slowness[:1])
        rest = step.step_time_s - step.pipeline_s(tuple(step.stage_times))
        return rest + pipeline_times(rows, *schedule)

    def least(self, params: Params) -> float:
        """The bound, s; 0 where there is too much to be worked out."""
        if not params.expert_rounds or self.packing.work > params.expert_part_work:
            return 0.0
        seconds = self.seconds(self.network.fabric.scale_up_tier + 1)
        # Should a part be faster than a larger one, its time is all that is counted on.
        times = np.minimum.accumulate(list(seconds.values()))
        stages = self.step.model.job.parallelism.pp
        boxes = Boxes(
            stages,
            len(times),
            lambda levels: self.step_times(times[levels]),
            params.expert_boxes,
        )
        number = self.units.number / stages
        prices = PartPrices(self.packing, list(seconds), boxes, number)
        return prices.climb(params.expert_rounds)
