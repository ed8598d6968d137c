"""Exposed time of the user's own communicators."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from placer.base.arrays import FloatArray, IntArray
from placer.cost.kinds import kind_times, run_at_once
from placer.cost.links import Cost, Traffic, total_traffic
from placer.cost.network import Network, PlacedNetwork
from placer.job.model import Job
from placer.job.parallel import Collectives
from placer.job.traffic import Group, RankTraffic

# What the score calls the flows of a traffic matrix.
TRAFFIC = "traffic"


@dataclass(frozen=True, eq=False)
class GroupTime:
    """What a custom group costs in a step."""

    seconds: float  # s
    group_seconds: FloatArray  # (communicators,), s: one run of each
    traffic: Traffic | None  # in a step; None where nobody sends


def custom_times(network: Network, job: Job) -> dict[str, GroupTime]:
    """The time of each kind of groups, and of the traffic between ranks."""
    groups = job.groups
    several = len(groups) > 1
    if several and isinstance(network, PlacedNetwork) and not network.fabric.links:
        found = _together(network, job)
    else:
        found = {g.name: group_time(network, g, job.collectives) for g in groups}
    if job.traffic is not None:
        found[TRAFFIC] = flows_time(network, job.traffic)
    return found


def _together(network: PlacedNetwork, job: Job) -> dict[str, GroupTime]:
    """The time of several kinds of groups, in one go."""
    times = kind_times(network, job)
    found = {}
    for kind, group in enumerate(job.groups):
        seconds = times.group_seconds[kind]
        slowest = float(seconds.max(initial=0.0))
        sends = any(len(ranks) > 1 for ranks in group.ranks)
        traffic = Traffic(partial(times.sent_by, kind)) if sends else None
        found[group.name] = GroupTime(slowest * group.per_step, seconds, traffic)
    return found


def hidden_kinds(job: Job) -> frozenset[str]:
    """Kinds of groups, and the traffic, that hide behind compute."""
    found = {group.name for group in job.groups if group.overlap}
    if job.traffic is not None and job.traffic.overlap:
        found.add(TRAFFIC)
    return frozenset(found)


def group_time(network: Network, group: Group, algorithms: Collectives) -> GroupTime:
    """The time of one custom group kind: its slowest communicator, all of them at once.

    Communicators of one size run together; those of other sizes are timed on their own.
    """
    by_size: defaultdict[int, list[int]] = defaultdict(list)
    for index, ranks in enumerate(group.ranks):
        by_size[len(ranks)].append(index)
    group_seconds = np.zeros(len(group.ranks))
    runs: list[Cost] = []
    for size, indices in sorted(by_size.items()):
        if size == 1:
            continue
        members = np.array([group.ranks[index] for index in indices])
        costs = _costs(network, group, members, algorithms)
        seconds = np.sum([cost.seconds for cost in costs], axis=0)
        group_seconds[indices] = seconds.reshape(len(members), -1).max(axis=1)
        runs += costs
    slowest = float(group_seconds.max(initial=0.0))
    traffic = total_traffic(cost.traffic.times(group.per_step) for cost in runs)
    return GroupTime(slowest * group.per_step, group_seconds, traffic)


def flows_time(network: Network, traffic: RankTraffic) -> GroupTime:
    """The time of the slowest flow of a step, all of them at once."""
    ends = traffic.senders, traffic.receivers
    cost = network.flows(*ends, traffic.size_bytes, traffic.pair_share)
    slowest = float(cost.seconds.max(initial=0.0)) + traffic.fixed_s
    return GroupTime(slowest, cost.seconds, cost.traffic)


def _costs(
    network: Network, group: Group, members: IntArray, algorithms: Collectives
) -> Sequence[Cost]:
    """The costs of what one run does in turn: the hops of a relay, else all at once."""
    if group.collective == "relay":
        return network.relay(members, group.size_bytes)
    kind, size = group.collective, group.size_bytes
    return [run_at_once(network, kind, members, size, algorithms, size)]
