"""Exposed time of the user's own communicators."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from placer.cost.traffic import Traffic, total_traffic

if TYPE_CHECKING:
    from placer.cost.exchange import ExchangeCost
    from placer.cost.network import Network
    from placer.cost.rings import RingCost
    from placer.job.model import Group

IntArray = npt.NDArray[np.int64]

RING_PASSES = {"all_reduce": 2.0, "all_gather": 1.0, "reduce_scatter": 1.0}


@dataclass(frozen=True, eq=False)
class GroupTime:
    """Seconds a step that a custom group takes, and what it sends."""

    seconds: float
    traffic: Traffic | None


def group_time(network: Network, group: Group) -> GroupTime:
    """The time of one custom group kind: its slowest communicator, all of them at once.

    Communicators of one size run together; those of other sizes are timed on their own.
    """
    by_size: defaultdict[int, list[tuple[int, ...]]] = defaultdict(list)
    for ranks in group.ranks:
        by_size[len(ranks)].append(ranks)
    slowest = 0.0
    traffic = []
    for size, members in sorted(by_size.items()):
        if size == 1:
            continue
        cost, rounds = _collective(network, group, np.array(members))
        slowest = max(slowest, float(cost.seconds.max()) * rounds)
        traffic.append(Traffic.of(cost, rounds * group.per_step))
    return GroupTime(slowest * group.per_step, total_traffic(traffic))


def _collective(
    network: Network, group: Group, members: IntArray
) -> tuple[RingCost | ExchangeCost, float]:
    """The cost of one round, and the rounds of the collective."""
    if group.collective == "all_to_all":
        return network.all_to_all(members, group.size_bytes), 1.0
    if group.collective == "send_recv":
        return network.send(members[:, :-1], members[:, 1:], group.size_bytes), 1.0
    return network.ring(members, group.size_bytes), RING_PASSES[group.collective]
