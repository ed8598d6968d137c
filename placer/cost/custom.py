"""Exposed time of the user's own communicators."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from placer.cost.traffic import Traffic, total_traffic

if TYPE_CHECKING:
    from placer.cost.communicators import CollectiveCost
    from placer.cost.exchange import ExchangeCost
    from placer.cost.network import Network
    from placer.job.model import Collectives, Group

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class GroupTime:
    """Seconds a step that a custom group takes, and what it sends."""

    seconds: float
    traffic: Traffic | None


def group_time(network: Network, group: Group, algorithms: Collectives) -> GroupTime:
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
        costs = _costs(network, group, np.array(members), algorithms)
        seconds = np.sum([cost.seconds for cost in costs], axis=0)
        slowest = max(slowest, float(seconds.max()))
        traffic += [Traffic.of(cost, group.per_step) for cost in costs]
    return GroupTime(slowest * group.per_step, total_traffic(traffic))


def _costs(
    network: Network, group: Group, members: IntArray, algorithms: Collectives
) -> Sequence[CollectiveCost | ExchangeCost]:
    """The costs of what one run does in turn: the hops of a relay, else all at once."""
    if group.collective == "relay":
        hops = range(members.shape[1] - 1)
        return [
            network.send(members[:, hop], members[:, hop + 1], group.size_bytes)
            for hop in hops
        ]
    return [_collective(network, group, members, algorithms)]


def _collective(
    network: Network, group: Group, members: IntArray, algorithms: Collectives
) -> CollectiveCost | ExchangeCost:
    """The cost of one run, all members at once."""
    if group.collective == "all_to_all":
        return network.all_to_all(members, group.size_bytes)
    if group.collective == "send_recv":
        return network.send(members[:, :-1], members[:, 1:], group.size_bytes)
    if group.collective == "all_reduce":
        return network.all_reduce(members, group.size_bytes, algorithms.all_reduce)
    return network.gather(members, group.size_bytes, algorithms.gather)
