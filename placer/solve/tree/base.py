"""The base tier: the largest inside which it costs no more than within a node."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from placer.topology.machine import Machine


def base_tier(topology: Machine) -> int:
    """Largest tier, the last aside, inside which a hop costs the least."""
    return _widest_alike([tier.distance for tier in topology.tiers])


def linked_tier(topology: Machine) -> int:
    """Largest tier, the last aside, whose links are as fast as those of a node."""
    return _widest_alike(
        [(t.bandwidth, t.latency, t.efficiency, t.scale_up) for t in topology.tiers]
    )


def paced(machine: Machine) -> Machine:
    """The machine with the seconds of a byte as distances, the fastest at 1."""
    seconds = [1 / (tier.bandwidth * tier.efficiency) for tier in machine.tiers]
    pace = np.maximum.accumulate(np.array(seconds))
    tiers = zip(machine.tiers, (pace / pace[0]).tolist(), strict=True)
    return replace(
        machine, tiers=tuple(replace(tier, distance=far) for tier, far in tiers)
    )


def _widest_alike(value_of_tier: Sequence[object]) -> int:
    """Largest tier, the last aside, up to which all tiers are like the innermost."""
    tier = 0
    while tier + 2 < len(value_of_tier) and value_of_tier[tier + 1] == value_of_tier[0]:
        tier += 1
    return tier
