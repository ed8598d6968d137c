"""A bound on the step time: parts of expert groups must fit what domains hold.

A *unit* is made of expert groups of one stage, and of what must stay together with
them; a *piece* is a set of ranks that must. The smallest part of a unit sets the time
of its stage, or the fullest uplink of its domains: a part of a slow unit slows those
beside it. At any prices of parts (`programs/prices.py`) some replica has stages whose
units cost no more than its share, and the fastest such replica is a bound. By hand:
three expert groups of four on two domains of six. Two lie whole, the third in two parts
of two, or parts are smaller. Shapes: P stages.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from math import inf
from typing import NamedTuple

import numpy as np

from placer.base.arrays import FloatArray, IntArray, row_of_number
from placer.base.units import MAX_SECONDS
from placer.cost.collectives import share_sent
from placer.cost.exchange import KERNEL_SHARE
from placer.cost.gradients import sync_groups
from placer.cost.schedule import pipeline_times
from placer.cost.stage_times import expert_passes
from placer.cost.step import Step
from placer.job.model import Job
from placer.solve.bounds.case import Case
from placer.solve.bounds.ideal import IdealNetwork
from placer.solve.bounds.limits import Limit, exposed_by_stage, most_alike
from placer.solve.bounds.messages import exchange_latency
from placer.solve.problem.colocation import join
from placer.solve.problem.params import Params
from placer.solve.programs.prices import Choices, Kind, Level, Packing, dearest

Times = tuple[float, ...]
Prices = tuple[tuple[float, ...], ...]

FINER = 64  # the fewer pieces groups have, the more such steps are cut


class Units(NamedTuple):
    """Expert groups with all that is tied to them."""

    number: int
    pieces: int  # of each unit
    ranks: int  # of a piece
    members: int  # that a piece has of each expert group of its unit
    unit: IntArray  # (R,): of each rank

    @property
    def size(self) -> int:
        """Members of an expert group."""
        return self.pieces * self.members


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
    domains: Mapping[Kind, int]  # how many there are, by room in pieces

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
        rate = np.ones(len(case.room))
        if scale_up + 1 < network.fabric.num_tiers:
            rate = network.fabric.uplink_capacity[scale_up + 1]
        rooms = (case.room // units.ranks).tolist()
        domains = Counter(
            one for one in zip(rooms, rate.tolist(), strict=True) if one[0]
        )
        return cls(step, network, units, domains) if domains else None

    def seconds(self) -> dict[int, float]:
        """Least seconds of an all-to-all by the pieces of the smallest part of a unit.

        A member of that part has ``here - 1`` peers inside its domain, no more of them
        on its island than fit there; what it sends to the others leaves through its
        NIC. The last entry is that of a whole unit, where one fits.
        """
        fabric, units, found = self.network.fabric, self.units, {}
        paces = self._sent(units.size) / fabric.bandwidth
        if self.step.model.job.expert_copies:
            paces /= KERNEL_SHARE
        if fabric.has_network:
            outer = float(fabric.bandwidth[fabric.scale_up_tier + 1 :].max())
            far = self._sent(self._fewest) / outer
            for pieces in range(1, units.pieces // self._fewest + 1):
                here = pieces * units.members
                seconds = max((units.size - here) * far, self._near_s(paces, here))
                found[pieces] = seconds + self._waits_s(here)
        if max(self.domains)[0] >= units.pieces:
            found[units.pieces] = self._near_s(paces + fabric.latency, units.size)
        return found

    @property
    def _fewest(self) -> int:
        """Fewest parts of a unit that is not whole."""
        return max(2, -(-self.units.pieces // max(self.domains)[0]))

    def _sent(self, places: int) -> float:
        """Bytes from a member to another where tokens go to so many places."""
        copies = self.step.model.job.expert_copies
        sent = self.step.model.volumes.ep_buffer / self.units.size
        return sent * float(share_sent(np.array(places), copies)) if copies else sent

    def _near_s(self, seconds: FloatArray, here: int) -> float:
        """Least seconds to all peers inside, given those of one on each tier."""
        inner = self.network.fabric.scale_up_tier + 1
        groups = self.step.model.job.parallelism.ranks_of_group["ep"]
        most = (self.network.most_members(groups, t).max() for t in range(inner - 1))
        fits = [max(1, int(one)) for one in most]
        return exchange_latency(seconds[:inner], np.array([*fits, here]))

    def _waits_s(self, here: int) -> float:
        """Least latency of all messages of a member with so many in its domain, s."""
        latency, copies = self.network.fabric.latency, self.step.model.job.expert_copies
        hops = self._fewest - 1 if copies else self.units.size - here
        far_s = float(latency[self.network.fabric.scale_up_tier + 1 :].min())
        return self._near_s(latency, here) + hops * far_s

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
        rest = step.step_time_s - step.pipeline_s(step.axes)
        return rest + pipeline_times(rows, *schedule)

    def exposed_more_s(self) -> FloatArray:
        """What gradients expose besides where a stage has such a unit, s.

        If all gradient groups with a member in a part had many in its domain, these
        would not fit. So one of them drives few NICs. By hand: a unit of four, whole in
        a domain of six. Of its four groups, some have one member there.

        By pieces that the smallest part has at the least; shape (pieces + 1, P).
        """
        step, pieces, found = self.step, self.units.pieces, []
        groups = [*sync_groups(step.model.job, step.model.volumes).values()]
        of_unit = [most_alike(self.units.unit[members]) for members in groups]
        sizes = [members.shape[1] for members in groups]

        @cache
        def exposed(*most: int) -> list[float]:
            return exposed_by_stage(step, self.network, *map(Limit, groups, most))

        for least in range(1, pieces + 1):
            # The others are so many parts at the most, and one has an even share.
            others = pieces // least - 1
            part = -(-(pieces - least) // others) if others else pieces
            part = min(part, max(self.domains)[0])
            most = [max(self.domains)[0] * number // part for number in of_unit]
            found.append(exposed(*map(min, most, sizes)))
        more_s = np.maximum(np.array(found) - step.exposed_data_parallel_s, 0.0)
        more_s = np.minimum.accumulate(more_s[::-1], axis=0)[::-1]
        return np.concatenate((more_s[:1], more_s))

    def levels(
        self, steps: Sequence[tuple[int, float]]
    ) -> tuple[list[Level], FloatArray]:
        """Units by their times, and the least of level 0 and of each, s.

        ``steps``: pieces of the smallest part and their seconds, the slowest first. Of
        units that take as long as the first no more is known.
        """
        units, times, found = self.units, [steps[0][1]], list[Level]()
        of_piece = self._sent(self._fewest) * units.members * units.ranks
        waits = [self._waits_s(here * units.members) for here in range(1, units.pieces)]
        for least, seconds in steps[1:]:
            wait_s = min(waits[least - 1 : units.pieces - least], default=inf)
            # The fastest are told apart by what they wait for uplinks as well.
            is_cut = times[-1] < MAX_SECONDS and wait_s < inf
            cuts = FINER // units.pieces if is_cut else 0
            for time in np.linspace(times[-1], seconds, cuts + 2)[1:].tolist():
                found.append(Level(least, max(0.0, times[-1] - wait_s) / of_piece))
                times.append(time)
        return found, np.array(times)

    def _values(
        self, times: FloatArray, more_s: FloatArray, low: IntArray, high: IntArray
    ) -> FloatArray:
        """Least steps with a replica of units between two levels, (C, P), s; (C,)."""
        more: FloatArray = more_s[low, np.arange(low.shape[1])].max(axis=1)
        return self.step_times(times[high]) + more

    def least(self, params: Params) -> tuple[float, Times, Prices]:
        """The bound, s; 0 where it is left out, or there is too much to be worked out.

        With it come the times of levels, and prices of parts of each, that prove it.

        Ever slower units are told apart, as long as some replica may have them.
        """
        if not params.expert_rounds:
            return 0.0, (), ()
        # No unit has a part of no pieces, which would take all the time there is.
        stages, steps = self.step.model.job.parallelism.pp, [(0, MAX_SECONDS)]
        for least, seconds in self.seconds().items():
            # A part that is no faster than a smaller one is not told from it.
            if seconds < steps[-1][1]:
                steps.append((least, seconds))
        best: tuple[float, Times, Prices] = 0.0, (), ()
        known, exposed_s = 1, self.exposed_more_s()
        while len(steps) > 1:
            levels, times = self.levels(steps[-known - 1 :])
            packing = Packing(
                self.units.pieces, self.domains, levels, params.expert_sums
            )
            if not len(packing.sums):
                break
            more_s = exposed_s[[0, *(level.least for level in levels)]]
            values = partial(self._values, times, more_s)
            choices = Choices(stages, len(times), values, params.expert_boxes)
            number, rounds = self.units.number / stages, params.expert_rounds
            value, prices = dearest(packing, choices, number, rounds)
            found = tuple(times.tolist()), tuple(map(tuple, prices.tolist()))
            best = max(best, (value, *found))
            slow = np.where(np.eye(stages, dtype=bool), 0, len(levels))
            if known >= len(steps) - 1 or best[0] < values(0 * slow, slow).min():
                break
            known *= 2
        return best
