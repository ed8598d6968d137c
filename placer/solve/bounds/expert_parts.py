"""A bound on the step time: parts of expert groups must fit what domains hold.

A *unit* is made of expert groups of one stage, and of what must stay together with
them; a *piece* is a set of ranks that must. The smallest part of a unit sets the time
of its stage. At any prices of parts (`programs/prices.py`) some replica has stages
whose units cost no more than its share, and the fastest such replica is a bound. By
hand: three expert groups of four on two domains of six. Two lie whole, the third in two
parts of two, or parts are smaller. Shapes: P stages.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np

from placer.base.arrays import FloatArray, IntArray, row_of_number
from placer.cost.collectives import share_sent
from placer.cost.exchange import KERNEL_SHARE
from placer.cost.gradients import sync_groups
from placer.cost.schedule import pipeline_times
from placer.cost.stage_times import expert_passes
from placer.cost.step import Step
from placer.job.model import Job
from placer.solve.bounds.case import Case
from placer.solve.bounds.network.fewest import most_alike
from placer.solve.bounds.network.ideal import IdealNetwork
from placer.solve.bounds.network.limit import Limit, exposed_by_stage
from placer.solve.bounds.network.messages import exchange_latency
from placer.solve.problem.colocation import join
from placer.solve.problem.params import Params
from placer.solve.programs.prices import Choices, Packing, dearest


class Units(NamedTuple):
    """Expert groups with all that is tied to them."""

    number: int
    pieces: int  # of each unit
    ranks: int  # of a piece
    members: int  # that a piece has of each expert group of its unit
    unit: IntArray  # (R,): of each rank


def units_of(job: Job, label: IntArray) -> Units | None:
    """Units where the ranks of each set lie in one domain; None where they differ.

    Where sets differ, single ranks may lie anywhere, which bounds them as well.
    """
    return _alike(job, label) or _alike(job, np.arange(job.world_size))


def _alike(job: Job, label: IntArray) -> Units | None:
    """Units that are all alike in every way that counts, None if they are not."""
    axes = job.parallelism
    members = axes.ranks_of_group["ep"]
    group, stage = row_of_number(members), axes.coordinates["pp"]
    place = axes.coordinates["dp"] * axes.pp + stage
    piece = np.unique(label, return_inverse=True)[1]
    unit = np.unique(join(label, members), return_inverse=True)[1]
    facts = (
        np.bincount(unit),
        np.bincount(piece),
        _shared(piece, group),
        _others(unit, group),
        _others(piece, group),
        _others(unit, place),
        _others(place, unit),
    )
    size, ranks, each, groups, touched, *_ = (int(fact[0]) for fact in facts)
    is_alike = all((fact == fact[0]).all() for fact in facts) and groups == touched
    if not is_alike or (_others(unit, stage) > 1).any():
        return None
    return Units(job.world_size // size, size // ranks, ranks, each, unit)


def _shared(one: IntArray, other: IntArray) -> IntArray:
    """Ranks that sets of either kind share, where they share any."""
    pairs = one * (other.max() + 1) + other
    shared: IntArray = np.unique(pairs, return_counts=True)[1]
    return shared


def _others(one: IntArray, other: IntArray) -> IntArray:
    """How many sets of the other kind each of one kind shares ranks with."""
    pairs = np.unique(one * (other.max() + 1) + other)
    return np.bincount(pairs // (other.max() + 1))


@dataclass(frozen=True, eq=False)
class StageParts:
    """Units and domains of a job, and what parts make of its step."""

    step: Step  # on the network
    network: IdealNetwork  # the best imaginable
    units: Units
    packing: Packing  # of units, in pieces

    @classmethod
    def of(cls, case: Case) -> StageParts | None:
        """Units of a job with experts; None where all are single pieces or differ."""
        step, network = case.step, case.network
        job, scale_up = step.model.job, network.fabric.scale_up_tier
        if job.model is None or job.parallelism.ep == 1 or scale_up < 0:
            return None
        units = units_of(job, network.label[scale_up])
        if units is None or units.pieces == 1:
            return None
        rooms = Counter((case.room // units.ranks).tolist())
        del rooms[0]
        return (
            cls(step, network, units, Packing(units.pieces, rooms)) if rooms else None
        )

    def seconds(self) -> dict[int, float]:
        """Least seconds of an all-to-all by the pieces of the smallest part of a unit.

        A member of that part has ``here - 1`` peers inside its domain, no more of them
        on its island than fit there; what it sends to the others leaves through its
        NIC. The last entry is that of a whole unit, where one fits.
        """
        job, fabric = self.step.model.job, self.network.fabric
        copies, inner = job.expert_copies, fabric.scale_up_tier + 1
        size = self.units.pieces * self.units.members
        share = self.step.model.volumes.ep_buffer / size
        groups = job.parallelism.ranks_of_group["ep"]
        most = (self.network.most_members(groups, t).max() for t in range(inner))
        fits = [max(1, int(one)) for one in most]

        def near(seconds: FloatArray, here: int) -> float:
            """Least seconds to all peers inside, given those of one on each tier."""
            return exchange_latency(seconds[:inner], np.array([*fits[:-1], here]))

        paces, found = share / fabric.bandwidth, {}
        if copies:
            paces *= float(share_sent(np.array(size), copies)) / KERNEL_SHARE
        if inner < fabric.num_tiers:
            far = share / float(fabric.bandwidth[inner:].max())
            far_s = float(fabric.latency[inner:].min())
            domains = max(2, -(-self.units.pieces // self.packing.largest))
            for pieces in range(1, self.units.pieces // domains + 1):
                here = pieces * self.units.members
                hops, sent = size - here, float(size - here)
                if copies:
                    hops = domains - 1
                    sent *= float(share_sent(np.array(domains), copies))
                seconds = max(sent * far, near(paces, here))
                found[pieces] = seconds + near(fabric.latency, here) + hops * far_s
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

    def exposed_more_s(self, lows: Sequence[int]) -> FloatArray:
        """What gradients expose besides, where a stage has a unit of each level, s.

        If all gradient groups with a member in a part had many in its domain, these
        would not fit. So one of them drives few NICs. Shape (L, P).

        ``lows``: pieces of the smallest part of units of each level.
        """
        step, pieces = self.step, self.units.pieces
        groups = [*sync_groups(step.model.job, step.model.volumes).values()]
        of_unit = [most_alike(self.units.unit[members]) for members in groups]

        @cache
        def exposed(*most: int) -> list[float]:
            limits = map(Limit, groups, most)
            return exposed_by_stage(step, self.network, *limits)

        found = []
        for least in lows:
            # The others are so many parts at the most, and one holds an even share.
            others = pieces // least - 1
            part = -(-(pieces - least) // others) if others else pieces
            room = max(self.packing.rooms)
            most = [room * number // part for number in of_unit]
            sizes = [members.shape[1] for members in groups]
            found.append(exposed(*map(min, most, sizes)))
        return np.maximum(np.array(found) - step.exposed_data_parallel_s, 0.0)

    def least(self, params: Params) -> float:
        """The bound, s; 0 where there is too much to be worked out."""
        if not params.expert_rounds or self.packing.work > params.expert_part_work:
            return 0.0
        seconds, stages = self.seconds(), self.step.model.job.parallelism.pp
        # Should a part be faster than a larger one, its time is all that is counted on.
        times = np.minimum.accumulate(list(seconds.values()))
        lows, rounds, every = list(seconds), params.expert_rounds, np.arange(stages)
        more_s = _least_between(self.exposed_more_s(lows))

        def values(low: IntArray, high: IntArray) -> FloatArray:
            """Least steps with a replica of units between two levels, s."""
            more: FloatArray = more_s[low, high, every].max(axis=1)
            return self.step_times(times[high]) + more

        choices = Choices(stages, len(times), values, params.expert_boxes)
        number = self.units.number / stages
        return dearest(self.packing, lows, choices, number, rounds).value


def _least_between(values: FloatArray) -> FloatArray:
    """The least of the values of two levels and those between; (L, P) to (L, L, P)."""
    found = np.zeros((len(values), *values.shape))
    for low in range(len(values)):
        found[low, low:] = np.minimum.accumulate(values[low:], axis=0)
    return found
