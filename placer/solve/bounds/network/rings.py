"""The best of a ring and of an exchange: rates, latencies, and speeds of GPUs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from placer.base.arrays import FloatArray, IntArray

if TYPE_CHECKING:
    from placer.cost.fabric import Fabric
    from placer.topology.machine import Machine


def fastest_stages(topology: Machine, stages: int, ranks: int) -> FloatArray:
    """Speeds that no placement exceeds, the fastest stage first; shape (stages,).

    ``ranks`` GPUs work on a stage; all stages must fit the machine.
    """
    if topology.compute_factor is None:
        return np.ones(stages)
    speed = np.repeat(topology.compute_factor, topology.gpus_of_node)
    return np.sort(speed)[::-1][ranks - 1 : stages * ranks : ranks]


def ring_latency(fabric: Fabric, num_members: int, spread: IntArray) -> float:
    """Least latency of a ring's n-1 steps over the fewest domains of each tier, s.

    A ring over ``D`` domains of a tier leaves them ``D`` times; at each wider tier
    fewer hops need to go so far.

    Parameters
    ----------
    spread : ndarray, shape (T + 1,)
        Fewest domains that hold the members: single GPUs, then those of each tier.
    """
    if num_members == 1:
        return 0.0
    latency = fabric.latency
    first_outer = fabric.scale_up_tier + 1
    inner, outer = latency[:first_outer], latency[first_outer:]
    domains = int(spread[first_outer])
    cheapest = float(inner.min(initial=np.inf))
    if domains == 1 or (domains < num_members and cheapest > outer.min()):
        return float((num_members - 1) * latency.min())
    leaving = np.where(spread > 1, spread, 0)[first_outer:-1]
    rising = np.minimum.accumulate(outer[::-1])[::-1]
    outer_sum = float(leaving @ np.diff(rising, prepend=0.0))
    inner_sum = (num_members - domains) * cheapest if domains < num_members else 0.0
    return (domains - 1) / domains * outer_sum + inner_sum


def exchange_latency(latency: FloatArray, most: IntArray) -> float:
    """Least latency of one member's messages to all others, one after the other, s.

    No more of the others lie in its domain of a tier than that can hold, so all
    further messages leave it. By hand: 36 members, 4 a node, all in a rack: 3 messages
    of 1 us and 32 of 2 us.

    Parameters
    ----------
    latency : ndarray, shape (T,), s
        Of each tier.
    most : ndarray, shape (T,)
        Members that one domain of each tier may hold; the last tier holds all.
    """
    within = np.minimum.accumulate(most[::-1])[::-1]
    cheapest = np.minimum.accumulate(latency[::-1])[::-1]
    return float(cheapest @ np.diff(within, prepend=1))
