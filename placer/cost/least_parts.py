"""The bound on the step that prices of parts of expert groups prove.

A *unit* is expert groups of a stage that share *pieces*, sets of ranks that lie in one
domain. Its smallest part sets its time, or the uplink of a domain that holds a part. By
time units have *levels*: the higher, the faster. A claim names a price for each part of
units of each level. All units cost no more than the dearest parts that domains hold, so
some replica has units that cost no more than its share (Gilmore and Gomory 1961). No
prices are wrong: some prove less. By hand: three units of four on two domains of six.
Were all whole, at a price of 1, they would cost 3, but domains hold two. Shapes: P
stages, L levels but for 0, C choices of a level for each stage.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cache, cached_property
from math import inf
from typing import Any

import numpy as np

from placer.base.arrays import FloatArray, IntArray, row_of_number
from placer.base.rounding import EXACT
from placer.cost.gradients import sync_groups
from placer.cost.least_links import LeastLinks
from placer.cost.stage_times import expert_passes
from placer.cost.step import Step
from placer.placement.hop_bound import tied

SLACK = 1e-12  # of times
MOST_BOXES, MOST_PATTERNS = 100_000, 10_000


@dataclass(frozen=True, eq=False)
class Parts:
    """Units of a case, all alike, and where their parts may lie."""

    step: Step  # on the links
    links: LeastLinks
    number: int
    pieces: int  # of each unit
    ranks: int  # of a piece
    members: int  # of each expert group of its unit that a piece has
    unit: IntArray  # (R,): of each rank

    @classmethod
    def of(cls, step: Step, links: LeastLinks, label: IntArray) -> Parts | None:
        """Those of sets that lie in one domain; None where they differ."""
        axes, fabric = step.model.job.parallelism, step.model.fabric
        if not fabric.can_leave_scale_up or "ep" not in step.axes:
            return None
        groups, stage = axes.ranks_of_group["ep"], axes.coordinates["pp"]
        place, unit = axes.coordinates["dp"] * axes.pp + stage, tied(label, groups)
        group = row_of_number(groups)
        found = common(
            shared(unit, unit),
            shared(label, label),
            shared(label, group),
            others(unit, group),
            others(label, group),
            others(unit, stage),
            others(unit, place),
            others(place, unit),
        )
        if not found or found[3] != found[4] or found[5] > 1:
            return None
        size, ranks, members = found[:3]
        return cls(step, links, len(unit) // size, size // ranks, ranks, members, unit)

    def prove(self, seconds: float, times: FloatArray, prices: FloatArray) -> bool:
        """Whether no step is shorter.

        ``times`` ((L + 1,), s): of all-to-alls at the least, level 0 first. ``prices``
        ((L, pieces + 1)): of parts of so many pieces, or as many as domains hold.
        """
        rooms, whole = self._rooms, self.pieces
        room, times = max(rooms)[0], times * (1 - SLACK)
        is_sound = np.isfinite(times).all() and np.isfinite(prices).all()
        if not is_sound or not room or prices.shape[1] != min(whole, room) + 1:
            return False
        parts = [*range(1, whole // max(2, -(-whole // room)) + 1)]
        parts += [whole] * (room >= whole)
        takes = {part: sum(self._exchange_s(part)) for part in parts}
        if (np.diff(times) > 0).any() or min(takes.values()) < times[-1]:
            return False
        # What is faster has no smaller part.
        least = [
            min((part for part in parts if takes[part] < time), default=whole)
            for time in times[:-1].tolist()
        ]
        prices = np.maximum.accumulate(np.maximum(prices, 0.0))
        prices[:, whole:] = prices[-1, whole:]
        paid = np.array([0.0, *map(self._cheapest, prices, least)])
        worth = self._worth(prices, self._busy_s(times[:-1], least), least[0])
        share = worth / self.number * (1 + EXACT)
        more_s = self._more_s(room)[[1, *least]]
        low = np.zeros((1, self.step.model.job.parallelism.pp), dtype=np.int64)
        high, every = low + len(times) - 1, np.arange(low.shape[1])
        while len(low):
            # No choice of levels in a box costs less, or is faster, than this.
            step_s = self._step_s(times[high]) + more_s[low, every].max(axis=1)
            left = (paid[low].mean(axis=1) <= share) & (step_s < seconds)
            low, high = low[left], high[left]
            if (low == high).all(axis=1).any() or len(low) > MOST_BOXES:
                return False
            rows, place = np.arange(len(low)), (high - low).argmax(axis=1)
            above, below = low.copy(), high.copy()
            below[rows, place] = (low + high)[rows, place] // 2
            above[rows, place] = below[rows, place] + 1
            low, high = np.concatenate((low, above)), np.concatenate((below, high))
        return True

    @cached_property
    def _rooms(self) -> Counter[tuple[int, float]]:
        """Domains by the pieces that they hold and the rate of their uplinks."""
        fabric = self.step.model.fabric
        rate = fabric.uplink_capacity[fabric.scale_up_tier + 1]
        gpus = np.bincount(fabric.scale_up_domain_of_gpu, minlength=len(rate))
        return shared(gpus // self.ranks, rate)

    def _exchange_s(self, part: int) -> tuple[float, float]:
        """Seconds of an all-to-all, with a part of so many pieces, and its latency."""
        job, size = self.step.model.job, self.step.model.volumes.ep_buffer
        groups, members = job.parallelism.ranks_of_group["ep"], part * self.members
        return self.links.exchange_s(groups, size, job.expert_copies, members)

    def _cheapest(self, prices: FloatArray, least: int) -> float:
        """Price of the parts, none smaller than so much, that make up a unit."""
        found = [0.0]
        for pieces in range(1, self.pieces + 1):
            last = range(least, min(pieces, len(prices) - 1) + 1)
            ways = (found[pieces - part] + float(prices[part]) for part in last)
            found.append(min(ways, default=inf))
        return found[-1]

    def _busy_s(self, times: FloatArray, least: list[int]) -> FloatArray:
        """Seconds in which a domain sends all it does, if some unit is faster than so.

        A unit in parts takes its latency besides. In units of what pieces send others.
        """
        job, size = self.step.model.job, self.step.model.volumes.ep_buffer
        groups = job.parallelism.ranks_of_group["ep"]
        sent = self.links.sent_bytes(groups, size, job.expert_copies)
        waits = [self._exchange_s(part)[1] for part in range(self.pieces)]
        wait_s = [min(waits[n : self.pieces - n + 1], default=inf) for n in least]
        return np.maximum(times - wait_s, 0.0) / (sent * self.ranks * self.members)

    def _worth(self, prices: FloatArray, busy_s: FloatArray, least: int) -> float:
        """Price of the dearest parts that fit all domains; none is smaller than so."""
        whole, room = self.pieces, max(self._rooms)[0]
        patterns: list[tuple[int, ...]] = [()]
        for part in range(least, prices.shape[1]):
            more = patterns if part == whole or part <= whole - least else []
            while more:
                more = [(*one, part) for one in more if sum(one) + part <= room]
                patterns += more
            if len(patterns) > MOST_PATTERNS:
                return inf
        sizes = np.arange(prices.shape[1])
        counts = np.array([np.bincount(one, minlength=len(sizes)) for one in patterns])
        held, sent = counts @ sizes, counts @ (sizes * (whole - sizes))
        paid, worth = counts @ prices.T, 0.0
        for (pieces, rate), number in self._rooms.items():
            in_time = sent[:, None] <= busy_s * rate * (1 + EXACT)
            fits = (held <= pieces)[:, None] & in_time
            worth += number * float(np.where(fits, paid, 0.0).max())
        return worth

    def _more_s(self, room: int) -> FloatArray:
        """What gradients expose where a stage has a unit of no part smaller than n.

        If all gradient groups with a member in a large part had many in its domain,
        these would not fit. So one of them drives few NICs. Shape (pieces + 1, P), s.
        """
        step, whole = self.step, self.pieces
        groups = [*sync_groups(step.model.job, step.model.volumes).values()]
        most = [
            max(max(Counter(row).values()) for row in self.unit[one].tolist())
            for one in groups
        ]

        @cache
        def exposed(*few: int) -> list[float]:
            limits = [
                (one, min(most, one.shape[1] // 2))
                for one, most in zip(groups, few, strict=True)
                if most < one.shape[1]
            ]
            slow = self.links.slow_steps(step, *limits)
            return [one.exposed_data_parallel_s for one in slow]

        found = []
        for least in range(1, whole + 1):
            # The others are so many parts at the most, and one has an even share.
            others = whole // least - 1
            part = -(-(whole - least) // others) if others else whole
            found.append(exposed(*(room * one // min(part, room) for one in most)))
        more_s = np.array([found[0], *found]) - step.exposed_data_parallel_s
        return np.minimum.accumulate(more_s[::-1])[::-1]

    def _step_s(self, seconds: FloatArray) -> FloatArray:
        """Least steps with a replica whose all-to-alls take so long, (C, P) s; (C,)."""
        step, model = self.step, self.step.model
        layer_s, none = model.cover.layer_forward_s, np.zeros(seconds.shape)
        forward, backward = expert_passes(model.job, model.volumes, layer_s, seconds)
        for axis, time in step.stage_times.items():
            if axis not in ("ep", "pp"):
                forward = forward + time.forward[0]
                backward = backward + time.backward[0]
        hop = none + step.stage_times["pp"].forward[0] if "pp" in step.axes else none
        rows = model.patterns(forward, backward, hop, step.slowness[:1])
        rest_s = step.step_time_s - step.pipeline_s(step.axes)
        return rest_s + np.array(step.pipelines_s(rows))


def shared(one: IntArray, other: IntArray | FloatArray) -> Counter[Any]:
    """Ranks that sets of either kind share, where they share any."""
    return Counter(zip(one.tolist(), other.tolist(), strict=True))


def others(one: IntArray, other: IntArray) -> Counter[int]:
    """How many sets of the other kind each of one kind shares ranks with."""
    return Counter(first for first, _ in shared(one, other))


def common(*counts: Counter[Any]) -> list[int]:
    """The number that all of each count are; empty where some differ."""
    found = [max(count.values()) for count in counts]
    alike = map(min, (count.values() for count in counts))
    return found if found == [*alike] else []
