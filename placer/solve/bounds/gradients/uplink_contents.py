"""Gradients and messages of pipelines that share thin uplinks.

Rings of gradients of all stages in a domain share its uplink, and so do the messages of
pipelines that go on elsewhere. Short rings ask for few stages in a domain, so that
pipelines are cut often; messages ask for few ranks beside each other. So what a
placement exposes of gradients says what domains may hold (`stage_contents.py`), and
that what pipelines take, in the mean over all *lanes*, a rank of every stage each.

A lane takes ``c + sum of w_s hop_s`` or longer, whatever its hops: a path through the
step. That path is taken which is the longest where all hops leave a domain.

Shapes: P stages, J paces of rings.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from heapq import heapify, heappop, heappush
from itertools import pairwise
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from placer.arrays import FloatArray
from placer.cost.gradients import REPLICATE, SyncTime, sync_groups
from placer.cost.schedule import pipeline_times
from placer.solve.bounds import Proof
from placer.solve.bounds.gradients.stage_contents import Domain, messages_s
from placer.solve.bounds.gradients.uplink_room import UplinkRoom
from placer.solve.bounds.network.limit import Limit, gradient_groups, slow_sync

if TYPE_CHECKING:
    from placer.cost.step import Step
    from placer.solve.bounds.network.ideal import IdealNetwork
    from placer.solve.problem.params import Params
    from placer.solve.run.budget import Budget

# Paces that are told apart for each ring more.
PARTS = 4
# What gradients expose is told apart by so much of a step.
CLOSE = 2e-4


def least_of_contents(
    step: Step, network: IdealNetwork, params: Params, incumbent: float, budget: Budget
) -> Proof | None:
    """The bound from what domains may hold; None where it says nothing.

    Parameters
    ----------
    step : Step
        On ``network``.
    incumbent : float, s
        Of a known placement: a bound that reaches it is not improved further.
    """
    if not _applies(step, network):
        return None
    room = _room(network)
    message_s = network.message_from(room.tier, step.model.volumes.pp_message)
    path = Path.of(step, message_s)
    domain = None if path is None else _domain(step, room, path, message_s, params)
    if path is None or domain is None:
        return None
    paces = _Paces(step, network, domain, path)
    # Spans of the slowest ring's pace, by what a step takes at the least in each.
    ends = pairwise([*range(domain.stages + 1), inf])
    spans = [(paces.alone_s(pace), pace, beyond, False) for pace, beyond in ends]
    heapify(spans)
    while True:
        least, pace, beyond, is_known = heappop(spans)
        if is_known and ((beyond - pace) * PARTS <= 1 or beyond == inf):
            break
        if least >= incumbent or budget.is_over():
            break
        if not is_known:
            least = max(least, paces.least_s(pace, beyond))
            heappush(spans, (least, pace, beyond, True))
            continue
        middle = (pace + beyond) / 2
        heappush(spans, (least, pace, middle, False))
        heappush(spans, (least, middle, beyond, False))
    text = "gradients and messages of pipelines share thin uplinks"
    return Proof(least if least < inf else 0.0, f"{text}, whatever domains hold")


def _applies(step: Step, network: IdealNetwork) -> bool:
    """Whether rings of gradients, and messages, leave domains by thin uplinks."""
    model, fabric = step.model, network.fabric
    job = model.job
    if job.model is None or job.parallelism.pp == 1:
        return False
    if not (fabric.can_leave_scale_up and fabric.has_thin_leaves):
        return False
    # All-reduces may also run in trees.
    sorts = sync_groups(job, model.volumes)
    in_trees = job.data_parallel.sharding == "ddp"
    in_trees |= any(axis.endswith(REPLICATE) for axis in sorts)
    return not in_trees and gradient_groups(job).shape[1] > 1


def _room(network: IdealNetwork) -> UplinkRoom:
    return UplinkRoom(network, network.fabric.scale_up_tier + 1)


def _domain(
    step: Step, room: UplinkRoom, path: Path, message_s: float, params: Params
) -> Domain | None:
    """The largest domain, with the largest uplink; None where sets are of no stage."""
    model, sets = step.model, room.sets
    groups, ranks = gradient_groups(model.job), sets.shape[1]
    stage = model.job.parallelism.coordinates["pp"][sets]
    most = int(room.ranks.max()) // ranks
    if (stage != stage[:, :1]).any() or most == 0:
        return None
    uplink, rings = float(room.uplink.max()), room.fewest(sets, groups)
    return Domain(
        most=most,
        whole=min(room.beside(groups) // ranks, most + 1),
        ranks=ranks,
        rings=rings,
        nics=uplink / (rings * room.nic),
        sent_s=model.volumes.pp_message * ranks / uplink,
        message_s=message_s,
        inner_s=tuple(path.inner_s.tolist()),
        times=tuple(path.times.tolist()),
        contents=params.contents,
    )


class Path(NamedTuple):
    """A path through a step of a lane: no lane takes less.

    Attributes
    ----------
    seconds : float, s
        All of it with hops inside domains.
    inner_s : ndarray, shape (P,), s
        Those hops.
    times : ndarray, shape (P,)
        How often it takes the hop after each stage.
    """

    seconds: float
    inner_s: FloatArray
    times: FloatArray

    @classmethod
    def of(cls, step: Step, message_s: float) -> Path | None:
        """The longest where all messages take about so long; None where several are.

        Times of pipelines are the largest of sums, so convex in the hops: where one
        rises with each hop as it falls, its tangent is one of these sums.
        """
        job, stages = step.model.job, step.model.job.parallelism.pp
        plain = step.patterns(tuple(step.stage_times)).min(axis=0)
        hop = slice(2 * stages, 3 * stages)
        inner_s, change = plain[hop].copy(), message_s / 100_000
        # Hops that differ a little, so that few paths are equally long.
        at = np.maximum(inner_s, message_s * (1 + np.arange(stages) / (99 * stages)))
        rows = np.tile(plain, (1 + 2 * stages, 1))
        rows[:, hop] = at
        rows[1 : 1 + stages, hop] += change * np.eye(stages)
        rows[1 + stages :, hop] -= change * np.eye(stages)
        schedule = job.micro_batches, job.parallelism.vp, job.overlap.pp
        found = pipeline_times(rows, *schedule)
        rises = (found[1 : 1 + stages] - found[0]) / change
        falls = (found[0] - found[1 + stages :]) / change
        times = np.round(rises)
        if np.abs(np.stack((rises, falls)) - times).max() > 1e-3:
            return None
        return cls(float(found[0] - times @ (at - inner_s)), inner_s, times)


@dataclass(frozen=True, eq=False)
class _Paces:
    """The step where the slowest ring of gradients has some pace.

    Paces are in units of the rings of a set.

    Attributes
    ----------
    step : Step
    network : IdealNetwork
    domain : Domain
    path : Path
    """

    step: Step
    network: IdealNetwork
    domain: Domain
    path: Path
    _known: dict[float, SyncTime] = field(default_factory=dict, init=False, repr=False)

    def least_s(self, pace: float, beyond: float) -> float:
        """The least where the slowest is at ``pace`` or slower, and not ``beyond``."""
        slowest, steps = self._at(pace), np.arange(PARTS, PARTS * pace) / PARTS
        rings = [0.0, *steps.tolist(), *([pace] if pace else []), beyond]
        exposed = [self._exposed(self._at(one), slowest) for one in rings[:-1]]
        trade = _Trade(
            self.domain, self.path, np.array(exposed), np.array(rings), self._lane_s
        )
        return self._beside_s + trade.least()

    def alone_s(self, pace: float) -> float:
        """The same without messages."""
        exposed = self._exposed(self._at(0.0), self._at(pace))
        return self._beside_s + self._lane_s + min(exposed)

    @cached_property
    def _lane_s(self) -> float:
        return self.step.pipeline_s(tuple(self.step.stage_times))

    @property
    def _beside_s(self) -> float:
        step = self.step
        return step.step_time_s - self._lane_s - step.exposed_data_parallel_s

    def _at(self, pace: float) -> SyncTime:
        """Data-parallel times where all rings have a pace."""
        if pace not in self._known:
            groups = gradient_groups(self.step.model.job)
            ring = self.domain.rings / float(_room(self.network).uplink.max())
            limit = Limit(groups, groups.shape[1], pace * ring)
            self._known[pace] = slow_sync(self.step.model, self.network, limit)
        return self._known[pace]

    def _exposed(self, slow: SyncTime, slowest: SyncTime) -> list[float]:
        """Data-parallel time with each stage slow in turn, and some the slowest; s.

        That is any stage, for each chunk the one that takes the least.
        """
        base, step = self.step.sync, self.step
        if base is None:
            return [0.0] * self.domain.stages
        found = []
        for stage in range(self.domain.stages):
            changed: dict[str, Any] = {}
            for name in ("reduce", "gather", "again_reduce"):
                least = getattr(slowest, name).min(axis=0)
                if not name.startswith("again"):
                    least[0] = 0.0  # which it is counts where a step begins or ends
                rows = np.vstack((getattr(base, name), least))
                rows[stage] = getattr(slow, name)[stage]
                changed[name] = rows
            bucket = (slow if stage == 0 else base).first_bucket
            sync = replace(base, **changed, first_bucket=bucket)
            found.append(replace(step, sync=sync).exposed_data_parallel_s)
        return found


@dataclass(frozen=True, eq=False)
class _Trade:
    """What gradients expose against what pipelines take.

    Attributes
    ----------
    domain : Domain
    path : Path
    exposed : ndarray, shape (J, P), s
        With a stage at each pace.
    rings : ndarray, shape (J + 1,)
        Those paces, and one that no stage reaches.
    lane_s : float, s
        Of a pipeline at its best.
    """

    domain: Domain
    path: Path
    exposed: FloatArray
    rings: FloatArray
    lane_s: float
    _known: dict[float, float] = field(default_factory=dict, init=False, repr=False)

    def least(self) -> float:
        """Least of both together, s."""
        levels = np.unique(self.exposed).tolist()
        best, spans = inf, [(0, len(levels) - 1)]
        # What is exposed allows more and more, and pipelines take less and less.
        while spans:
            low, high = spans.pop()
            least = levels[low] + self._pipeline_s(levels[high])
            if least >= best:
                continue
            if levels[high] - levels[low] < CLOSE * least:
                best = least
                continue
            for level in (levels[low], levels[high]):
                best = min(best, level + self._pipeline_s(level))
            if low + 1 < high:
                middle = (low + high) // 2
                spans += [(middle, high), (low, middle)]
        return best

    def _pipeline_s(self, exposed_s: float) -> float:
        """Least time of pipelines where gradients expose no more, s."""
        if exposed_s not in self._known:
            too_slow = self.exposed > exposed_s
            never = np.ones((1, too_slow.shape[1]), dtype=bool)
            first = np.concatenate((too_slow, never)).argmax(axis=0)
            waiting = messages_s(self.domain, tuple(self.rings[first].tolist()))
            self._known[exposed_s] = max(self.lane_s, self.path.seconds + waiting)
        return self._known[exposed_s]
