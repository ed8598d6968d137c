"""The least that gradients and sharded parameters add to a step, before any placement.

What compute does not hide of gathers and reductions (`placer.cost.data_parallel`), were
every group alone on the machine in its best place. So the bound holds for every
placement. By hand: each micro-batch of one stage gathers parameters for its forward (A)
and its backward, and reduces their gradients (R), beside one chunk's compute:

    exposed >= m x ( max(0, A - t_f) + max(0, A + R - t_b) )

A = 3, R = 4, t_f = 2, t_b = 4 and m = 2 expose 2 x (1 + 3) = 8. What is hidden slows
the work beside it (`placer.cost.data_parallel`). Shapes: P stages, V
chunks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from math import inf

import numpy as np

from placer.base.arrays import FloatArray, IntArray
from placer.cost.links import Cost
from placer.cost.volumes import volumes
from placer.cost.work import windows, work
from placer.job.model import Job
from placer.solve.bounds.ideal import IdealNetwork
from placer.solve.bounds.limits import Limit
from placer.tune.choice import Choice


@dataclass
class LeastSync:
    """Lower bounds on what gathers and reductions add to a step."""

    # The best network for so many ranks, in the order of Megatron where ranks of a node
    # follow one another.
    network_of: Callable[[int], IdealNetwork]
    _known: dict[tuple[int, int], tuple[IdealNetwork, IntArray]] = field(
        default_factory=dict
    )
    _parts: dict[tuple[int, int], int] = field(default_factory=dict)

    def exposed_s(self, job: Job) -> float:
        """Least seconds that they add."""
        mode, axes = job.data_parallel, job.parallelism
        sizes = volumes(job)
        reduce, gather = np.zeros((2, axes.pp, axes.vp))
        # Sizes of groups, how far apart in rank their members are, what they hold.
        for size, stride, held in (
            (axes.dp * axes.cp, axes.tp, sizes.dense_parameters),
            (axes.edp, axes.etp * axes.ep, sizes.expert_parameters),
        ):
            trained, gathered = held(), held(frozen=mode.shards_weights)
            shards = mode.shard_members(size, axes.dp * axes.cp)
            if shards == 1 or not gathered.any():
                continue
            (network, members), width = self.group_of(shards, stride), job.bytes
            if mode.sharding == "ddp":
                algorithm = job.collectives.all_reduce
                run = partial(network.all_reduce, members, algorithm=algorithm)
            else:
                run = partial(network.gather, members)
                gather += _seconds(run, gathered * width.parameter_gather)
            reduce += _seconds(run, trained * width.gradient)
        if mode.gathers_each:
            reduce += gather
        # As if buckets were so small that the first one took no time.
        hidden = windows(job, work(job, sizes), inf)
        return hidden.reductions_s(reduce, reduce) + hidden.gathers_s(gather, 0.0)

    def group_of(self, shards: int, stride: int) -> tuple[IdealNetwork, IntArray]:
        """One group of so many ranks so far apart, and the best network for it."""
        key = shards, stride
        if key not in self._known:
            members = np.arange(0, shards * stride, stride)[None]
            self._known[key] = self.network_of(shards * stride), members
        return self._known[key]

    def smallest_part(self, choice: Choice) -> int:
        """Members of the smallest part of some expert group, at the most.

        A part is what a scale-up domain holds of a group. Were all parts larger, ranks
        would have no room in domains that hold no more than this; were all groups
        whole, none in what they leave of each domain.
        """
        key = choice.ep, choice.gpus
        if key not in self._parts:
            network, _ = self.group_of(choice.ep, choice.etp)
            scale_up = network.fabric.scale_up_tier
            size, room = choice.ep, network.capacities[max(scale_up, 0)]
            self._parts[key] = size
            if scale_up >= 0 and int((room // size).sum()) * size < choice.gpus:
                fullest = np.sort(room)[::-1]
                used = int(np.searchsorted(np.cumsum(fullest), choice.gpus))
                last = int(fullest[min(used, len(fullest) - 1)])
                self._parts[key] = min(last, size // 2)
        return self._parts[key]


def in_parts(
    network: IdealNetwork, members: IntArray, part: int, size_bytes: float, job: Job
) -> IdealNetwork:
    """The network for a group of which some domain has so few members.

    What each of these sends to the others leaves through its NIC.
    """
    away_s = 0.0
    if not job.expert_copies:
        away = size_bytes * (1 - part / members.shape[1])
        away_s = network.outside_s(away)
    limit = Limit(members, part, exchange_s=away_s, far=network.fabric.scale_up_tier)
    return network.with_limits(limit)


def _seconds(run: Callable[..., Cost], size_bytes: FloatArray) -> FloatArray:
    """Least seconds of a collective of each size."""
    sizes, which = np.unique(size_bytes, return_inverse=True)
    found = [
        run(size_bytes=size).seconds[0] if size else 0.0 for size in sizes.tolist()
    ]
    return np.array(found)[which].reshape(size_bytes.shape)
