"""A bound on the step time: parts of expert groups must fit what domains hold.

A *unit* is made of expert groups of one stage, and of what must stay together with
them; a *piece* is a set of ranks that must. The smallest part of a unit sets the time
of its stage. At any prices of parts (`part_prices`) some replica has stages whose units
cost no more than its share, and the fastest such replica is a bound. See
docs/method.md, "When expert groups leave their scale-up domains". Shapes: P stages.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from math import inf
from typing import TYPE_CHECKING

import numpy as np

from placer.arrays import FloatArray, IntArray
from placer.cost.collectives import share_sent
from placer.cost.exchange import KERNEL_SHARE
from placer.cost.schedule import pipeline_times
from placer.cost.stage_times import expert_passes
from placer.solve.bounds.case import Case
from placer.solve.bounds.experts.expert_units import Units, units_of
from placer.solve.bounds.experts.level_boxes import Boxes
from placer.solve.bounds.experts.part_company import Company, companies
from placer.solve.bounds.experts.part_counts import Counts, rooms_of
from placer.solve.bounds.experts.part_gradients import HeldStages, PartGradients
from placer.solve.bounds.experts.part_prices import Packing, PartPrices
from placer.solve.bounds.experts.part_steps import PartSteps, raised
from placer.solve.bounds.network.latency import exchange_latency
from placer.solve.run.budget import ENDLESS
from placer.solve.tree.capacity import parent_of_domain

if TYPE_CHECKING:
    from placer.cost.step import Step, StepModel
    from placer.solve.bounds.network.ideal import IdealNetwork
    from placer.solve.problem.colocation import Colocation
    from placer.solve.problem.params import Params
    from placer.solve.run.budget import Budget

CLOSE = 0.9998  # of a bound, that is as good
# Steps that are tried where parts or gradients hold each other back: so many times a
# bound without that.
RUNGS = np.linspace(1, 2, 1_001)[1:]


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
    exposed_s : float, s
        Of gradients at least, in the placements that are asked about.
    """

    step: Step
    network: IdealNetwork
    units: Units
    packing: Packing
    room: IntArray
    exposed_s: float = 0.0

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

    def pairs_a_second(self, tier: int) -> FloatArray:
        """Pairs of pieces of a unit that the uplinks into a tier carry in a second.

        One piece of a pair lies behind the uplink, the other elsewhere. Infinite where
        tokens are deduplicated.
        """
        uplinks = self.network.fabric.uplink_capacity[tier]
        if self.step.model.job.expert_copies:
            return np.full(len(uplinks), np.inf)
        size = self.units.pieces * self.units.members
        share = self.step.model.volumes.ep_buffer / size
        # A piece has so many members of each of its groups.
        messages = self.units.ranks * self.units.members
        return np.asarray(uplinks / (messages * share))

    def latency(self, tier: int) -> dict[int, float]:
        """Least latency of a member of so many pieces behind an uplink into a tier, s.

        All other pieces of its unit lie elsewhere.
        """
        latency, size = self.network.fabric.latency, self.units.pieces
        near, far = float(latency[:tier].min()), float(latency[tier:].min())
        return {
            pieces: (size - pieces) * self.units.members * far
            + (pieces * self.units.members - 1) * near
            for pieces in range(1, size)
        }

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

    def least(self, params: Params, budget: Budget = ENDLESS) -> float:
        """The bound, s; 0 where there is too much to be worked out.

        When the budget ends it is the best so far.
        """
        if not params.expert_rounds or self.packing.work > params.expert_part_work:
            return 0.0
        seconds = self.seconds(self.network.fabric.scale_up_tier + 1)
        # Should a part be faster than a larger one, its time is all that is counted on.
        times = np.minimum.accumulate(list(seconds.values()))
        stages = self.step.model.job.parallelism.pp
        boxes = Boxes(
            stages,
            len(times),
            partial(self.least_steps, times, self.gradients(list(seconds))),
            params.expert_boxes,
        )
        number = self.units.number / stages
        alone = np.zeros(stages, dtype=np.int64)
        prices = PartPrices(self.packing, list(seconds), boxes, number, alone)
        value = prices.climb(params.expert_rounds)
        value = max(value, self._in_company(value, list(seconds), times, params))
        for counts, columns in self.all_counts(params.expert_far_columns):
            asked = PartSteps(self, counts, params.expert_choices, columns)
            value = raised(value, asked.steps, asked.is_hopeless, params, budget)
            if counts.uplinks:  # which may take longer than the smallest part does
                rungs = value * RUNGS
                value = raised(value, rungs, asked.is_hopeless, params, budget)
        return value

    def _in_company(
        self, known: float, lows: Sequence[int], times: FloatArray, params: Params
    ) -> float:
        """The bound where fast gradients ask for company, s; a known one if higher.

        Parameters
        ----------
        known : float, s
        lows : sequence of int
            Pieces of the least part of each level.
        times : ndarray, shape (L,), s
        """
        stages = self.step.model.job.parallelism.pp
        room, number = int(self.room.max()), self.units.number / stages
        cases = self.companies
        floor, least = 0.0, np.inf
        for case in cases:
            if min(least, floor + self._more(cases[-1].exposed_s)) >= CLOSE * least:
                break
            boxes = Boxes(
                stages,
                len(times),
                partial(self._exposing, case.exposed_s, times),
                params.expert_boxes,
            )
            packing = replace(self.packing, limits=case.limits(self.units, room))
            prices = PartPrices(packing, lows, boxes, number, case.sort)
            value = prices.climb(params.expert_rounds)
            # What asks for more company is no faster but for what it exposes.
            floor = max(floor, value - self._more(case.exposed_s))
            least = min(least, value)
            if least <= known:
                return known
        return max(known, min(least, floor + self._more(cases[-1].exposed_s)))

    def _more(self, seconds: float) -> float:
        """What gradients that expose so much add to the step, s."""
        return max(seconds - self.step.exposed_data_parallel_s, 0.0)

    def _exposing(
        self, seconds: float, times: FloatArray, _low: IntArray, high: IntArray
    ) -> FloatArray:
        """Least steps of replicas with parts of such levels that expose so much, s."""
        return self.step_times(times[high]) + self._more(seconds)

    def gradients(self, sizes: Sequence[int]) -> PartGradients:
        """What units with such least parts, in pieces, make gradients take."""
        units = self.units
        ranks = [-(-size * units.ranks // units.shared) for size in sizes]
        held = HeldStages(self.step, self.network)
        room = int(self.room.max()) * units.ranks
        return PartGradients.of(held, ranks, room, self._least_exposed_s)

    @cached_property
    def companies(self) -> list[Company]:
        """All that placements may expose of gradients, and what that takes."""
        held = HeldStages(self.step, self.network)
        room = int(self.room.max()) * self.units.ranks
        return companies(held, room, self._least_exposed_s)

    @cached_property
    def _least_exposed_s(self) -> float:
        """Exposed gradients where the smallest domain that must be used is used, s."""
        units = self.units
        room = np.sort(self.room)[::-1]
        needed = units.number * units.pieces
        last = int(np.searchsorted(np.cumsum(room), needed))
        if last == len(room):  # no placement is of this case
            return self.exposed_s
        held = HeldStages(self.step, self.network)
        label = self.network.label[self.network.fabric.scale_up_tier]
        piece = label if units.ranks > 1 else np.arange(len(label))
        least_s = held.least_s(int(room[last]) * units.ranks, piece)
        return max(least_s, self.exposed_s)

    def least_steps(
        self,
        times: FloatArray,
        gradients: PartGradients,
        low: IntArray,
        high: IntArray,
    ) -> FloatArray:
        """Least steps of boxes of replicas: parts of ``high``, gradients of ``low``.

        Parameters
        ----------
        times : ndarray, shape (L,), s
        low, high : ndarray, shape (C, P)
            Levels.
        """
        exposed = gradients.exposed_s(low)
        more = np.maximum(exposed - self.step.exposed_data_parallel_s, 0.0)
        return self.step_times(times[high]) + more

    def all_counts(self, columns: float = inf) -> list[tuple[Counts, float]]:
        """Units and domains as programs count them, the least to work out first.

        Outer domains are told apart where their uplinks hold all-to-alls back. Where
        only the hops between them take longer they are one at first, and told apart in
        programs of so many columns at the most. Each with the most columns.
        """
        fabric, outer = self.network.fabric, self.network.fabric.scale_up_tier + 2
        has_outer = outer < fabric.num_tiers
        if not has_outer or not np.isfinite(self.pairs_a_second(outer)).all():
            return [(self._counts(is_apart=False), inf)]
        if fabric.topology.tiers[outer].oversubscription > 1:
            return [(self._counts(is_apart=True), inf)]
        found = [(self._counts(is_apart=False), inf)]
        if fabric.latency[outer:].min() > fabric.latency[outer - 1]:
            found.append((self._counts(is_apart=True), columns))
        return found

    def _counts(self, *, is_apart: bool) -> Counts:
        """The same, outer domains being told apart or counted as one."""
        fabric, tier = self.network.fabric, self.network.fabric.scale_up_tier
        home = np.zeros(len(self.room), dtype=np.int64)
        uplinks, latency = {}, {}
        if is_apart:
            home = parent_of_domain(fabric.topology, tier + 1)
            uplinks = dict(enumerate(self.pairs_a_second(tier + 2).tolist()))
            latency = self.latency(tier + 2)
        return Counts(
            rooms_of(home, self.room),
            self.units.pieces,
            self.units.number,
            self.units.replicas,
            self.units.together,
            self.units.alike,
            self._no_faster(self.seconds(tier + 1)),
            self._apart,
            uplinks,
            latency,
        )

    def _apart(self, part: int, share: int) -> float:
        """Least time of a member of a part in a share of its unit, both in pieces, s.

        The share lies in one outer domain, the rest of the unit in others.
        """
        fabric, each = self.network.fabric, self.units.members
        near, far = fabric.scale_up_tier + 1, fabric.scale_up_tier + 2
        message = self.step.model.volumes.ep_buffer / (self.units.pieces * each)
        inside, beside = part * each - 1, (share - part) * each
        away = (self.units.pieces - share) * each
        latency = (
            inside * float(fabric.latency[:near].min())
            + beside * float(fabric.latency[near:].min())
            + away * float(fabric.latency[far:].min())
        )
        sending = beside / float(fabric.bandwidth[near:].max())
        return (
            message * (sending + away / float(fabric.bandwidth[far:].max())) + latency
        )

    def _no_faster(self, seconds: dict[int, float]) -> dict[int, float]:
        """Should a part be faster than a larger one, its time counts for both."""
        least = np.minimum.accumulate(list(seconds.values())).tolist()
        return dict(zip(seconds, least, strict=True))


def stage_parts(model: StepModel, colocation: Colocation) -> StageParts | None:
    """What parts of expert groups make of a step; None where they do not matter.

    Parameters
    ----------
    model, colocation
        As for `time_bound`.
    """
    if model.job.parallelism.ep == 1:
        return None
    return StageParts.of(Case.of(model, colocation))
