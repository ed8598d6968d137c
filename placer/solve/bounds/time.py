"""A lower bound on the step time of every placement.

The step is priced on the best network imaginable (`ideal.py`) in a few cases that
together cover all placements: walking through tp, cp, ep and pp, either all groups of
the axis lie inside scale-up domains, or this is the first axis with a group outside. In
a case the axes known to be inside tie their ranks together, which limits how many
members of a gradient group a domain can hold and so the NICs that group can drive; an
axis with a group outside pays at least one group's crossing. The bound is the cheapest
case.

Valid because the step is monotone in the time of every operation.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from placer.solve.bounds.ideal import IdealNetwork
from placer.solve.parts import Parts, join

if TYPE_CHECKING:
    from placer.cost.exchange import ExchangeCost
    from placer.cost.stage_times import StageTime
    from placer.cost.step import Step, StepModel

IntArray = npt.NDArray[np.int64]

CASE_AXES = ("tp", "cp", "ep", "pp")
# Beyond this many ways to place the crossing hops of a pipeline only one hop is
# charged.
MOST_HOP_CHOICES = 64


@dataclass(frozen=True)
class TimeBound:
    """A lower bound and what it rests on.

    Attributes
    ----------
    value : float, s
    argument : str
    """

    value: float
    argument: str


def time_bound(model: StepModel, parts: Parts, capacity_of_node: IntArray) -> TimeBound:
    """The bound for placements whose ranks stay together as ``parts`` say.

    Parameters
    ----------
    model : StepModel
    parts : Parts
    capacity_of_node : ndarray, shape (N,)
        Ranks each node may hold.
    """
    cases = list(_cases(model, parts, capacity_of_node))
    value, axis = min(cases, key=lambda case: case[0])
    if axis:
        text = f"cheapest when a {axis} group leaves its scale-up domain"
    else:
        text = "every tp, cp, ep and pp group at its nearest tier"
    return TimeBound(
        value,
        f"{text}, gradient groups on the most NICs their domains allow, "
        "rings over the fewest domains of each tier",
    )


def _cases(
    model: StepModel, parts: Parts, capacity: IntArray
) -> Iterator[tuple[float, str]]:
    """(bound, axis outside or empty) of every case."""
    scale_up = model.fabric.scale_up_tier
    label = parts.label
    largest = _largest_domain(model, capacity)
    for axis in CASE_AXES:
        if model.job.model is None or model.job.parallelism.size(axis) == 1:
            continue
        members = model.job.parallelism.ranks_of_group[axis]
        if scale_up < 0 or not _together(label[scale_up], members):
            outside = IdealNetwork(model.fabric, label, capacity)
            if scale_up < len(model.topology.tiers) - 1:
                yield _with_crossing(model, outside, axis), axis
            if scale_up < 0:
                return
            label = label.copy()
            for t in range(scale_up, len(label)):
                label[t] = join(label[t], members)
        if np.bincount(label[scale_up]).max() > largest:
            return
    network = IdealNetwork(model.fabric, label, capacity)
    yield model.step_on(network).step_time_s, ""


def _together(label: IntArray, members: IntArray) -> bool:
    rows = label[members]
    return bool((rows == rows[:, :1]).all())


def _largest_domain(model: StepModel, capacity: IntArray) -> int:
    """Most ranks that one scale-up domain may hold; 1 without any."""
    if model.fabric.scale_up_tier < 0:
        return 1
    domain = model.topology.domain_of_node[model.fabric.scale_up_tier]
    return int(np.bincount(domain, capacity).max())


def _with_crossing(model: StepModel, network: IdealNetwork, axis: str) -> float:
    """Least step time when a group of ``axis`` leaves its scale-up domain."""
    step = model.step_on(network)
    if axis == "pp":
        return min(_with_hops(step, network, hops) for hops in _hop_choices(model))
    slow = model.step_on(
        _Split(network.fabric, network.label, network.capacity_of_node)
    )
    return min(
        _with_one_stage(step, slow, axis, stage)
        for stage in range(model.job.parallelism.pp)
    )


@dataclass(frozen=True, eq=False)
class _Split(IdealNetwork):
    """The same when every group leaves its scale-up domain."""

    def _fewest_domains(self, members: IntArray) -> IntArray:
        fewest = super()._fewest_domains(members)
        inner = slice(0, self.fabric.scale_up_tier + 2)
        fewest[inner] = np.maximum(fewest[inner], min(2, members.shape[1]))
        return fewest

    def send(
        self, senders: IntArray, receivers: IntArray, size_bytes: float
    ) -> ExchangeCost:
        cost = super().send(senders, receivers, size_bytes)
        crossing = self.message_across(size_bytes)
        return replace(cost, seconds=np.maximum(cost.seconds, crossing))


def _with_one_stage(step: Step, slow: Step, axis: str, stage: int) -> float:
    """Step time when one stage of one replica has the slow time of ``axis``."""
    fast_time, slow_time = step.stage_times[axis], slow.stage_times[axis]
    forward, backward = fast_time.forward.copy(), fast_time.backward.copy()
    forward[0, stage] = slow_time.forward[0, stage]
    backward[0, stage] = slow_time.backward[0, stage]
    return _replaced(step, axis, replace(fast_time, forward=forward, backward=backward))


def _with_hops(step: Step, network: IdealNetwork, hops: tuple[int, ...]) -> float:
    """Step time when the given hops of one replica leave their scale-up domain."""
    time = step.stage_times["pp"]
    hop = time.forward.copy()
    crossing = network.message_across(step.model.volumes.pp_message)
    hop[0, list(hops)] = np.maximum(hop[0, list(hops)], crossing)
    return _replaced(step, "pp", replace(time, forward=hop, backward=hop))


def _hop_choices(model: StepModel) -> list[tuple[int, ...]]:
    """Which hops of a pipeline may be those that cross: a closed ring has two."""
    axes = model.job.parallelism
    if axes.vp > 1:
        pairs = list(combinations(range(axes.pp), 2))
        if len(pairs) <= MOST_HOP_CHOICES:
            return [tuple(pair) for pair in pairs]
    hops = axes.pp if axes.vp > 1 else axes.pp - 1
    return [(hop,) for hop in range(hops)]


def _replaced(step: Step, axis: str, time: StageTime) -> float:
    times = {**step.stage_times, axis: time}
    return replace(step, stage_times=times).step_time_s
