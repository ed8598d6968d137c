"""The bound that heavy messages set which cannot all stay in scale-up domains.

Where traffic takes no longer than T, two ranks are in one scale-up domain if what one
sends the other takes longer than T between domains. Sets of ranks joined by such pairs
then are whole, and domains must have room for all of them: for every k, a domain with
room for c ranks holds c // k sets of k ranks or more. The least T that passes is a
bound on the step. Shapes: P pairs of ranks.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

import numpy as np

from placer.arrays import IntArray
from placer.cost.links import weighted_counts
from placer.solve.problem.colocation import join

if TYPE_CHECKING:
    from placer.job.model import RankTraffic
    from placer.solve.bounds.network.ideal import IdealNetwork
    from placer.solve.problem.params import Params
    from placer.solve.run.budget import Budget


def least_of_heavy(
    network: IdealNetwork, traffic: RankTraffic, _params: Params, _budget: Budget
) -> float:
    """Least seconds that the heaviest messages allow.

    Parameters
    ----------
    network : IdealNetwork
        The best one for every placement.
    """
    fabric = network.fabric
    tier = fabric.scale_up_tier
    if not fabric.can_leave_scale_up:
        return 0.0
    ranks = network.label.shape[1]
    keys, which, messages = np.unique(
        traffic.senders * ranks + traffic.receivers,
        return_inverse=True,
        return_counts=True,
    )
    size = weighted_counts(which, traffic.size_bytes, len(keys))
    far_s = size / float(fabric.bandwidth[tier + 1 :].max())
    far_s += messages * float(fabric.latency[tier + 1 :].min())
    pairs = np.stack((keys // ranks, keys % ranks), axis=1)
    room = network.capacities[tier]
    times = np.unique(np.append(0.0, far_s))

    def fit(seconds: float) -> bool:
        return _fit(network.label[tier], pairs[far_s > seconds], room)

    return float(times[bisect_left(times[:-1], True, key=fit)])


def _fit(label: IntArray, pairs: IntArray, room: IntArray) -> bool:
    """Whether domains may have room for all sets that pairs join."""
    joined = join(label, pairs) if len(pairs) else label
    size = np.unique(joined, return_counts=True)[1]
    held = np.bincount(size)
    many = np.cumsum(held[::-1])[::-1]
    return all(many[k] <= (room // k).sum() for k in np.unique(size).tolist())
