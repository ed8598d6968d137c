"""The base tier: the largest inside which it costs no more than within a node."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from placer.topology.machine import Machine


def base_tier(topology: Machine) -> int:
    """Largest tier, the last aside, inside which a hop costs the least."""
    return _widest_alike([tier.distance for tier in topology.tiers])


def linked_tier(topology: Machine) -> int:
    """Largest tier, the last aside, whose links are as fast as those of a node."""
    return _widest_alike(
        [(t.bandwidth, t.latency, t.efficiency, t.scale_up) for t in topology.tiers]
    )


def fastest_tier(topology: Machine) -> int:
    """Largest tier, the last aside, inside which a byte takes the least time."""
    seconds = [1 / (tier.bandwidth * tier.efficiency) for tier in topology.tiers]
    return _widest_alike(np.maximum.accumulate(seconds).tolist())


def _widest_alike(value_of_tier: Sequence[object]) -> int:
    """Largest tier, the last aside, up to which all tiers are like the innermost."""
    tier = 0
    while tier + 2 < len(value_of_tier) and value_of_tier[tier + 1] == value_of_tier[0]:
        tier += 1
    return tier
