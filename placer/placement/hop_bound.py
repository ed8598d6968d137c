"""The bound on the hop cost that prices prove, without the code that found them.

At any price ``p`` of a rank, ``floor(s)`` being the least weight of the edges out of
``s`` ranks, the edges between the domains of a tier, which hold all R ranks, weigh

    C >= 1/2 (p R + sum over the domains of  min_s (floor(s) - p s))

or more. Prices of ends of pipelines, paid once in all, are taken back. By hand: a ring
of six on two nodes of three, 1 apart inside and 3 outside. Two edges or more leave any
three ranks, so at no price ``J >= 1 x 6 + (3 - 1) x 2``. No prices are wrong: some
prove less. ``floor`` is counted by slices (Bollobas and Leader 1991).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from fractions import Fraction
from math import ceil, gcd, inf, lcm
from typing import NamedTuple

import numpy as np

from placer.base.arrays import FloatArray
from placer.job.axes import pipeline_groups_agree
from placer.job.edges import hop_edges
from placer.job.model import Job
from placer.topology.machine import Machine

# Each with pp numbers all ranks: two axes of a stage, then that of its copies.
GRIDS = (("tp", "cp", "dp"), ("ep", "etp", "edp"))
RING_WORK = 5_000_000  # slices of longer rings are packed in any order
ROUNDING, NEAR = 1e-9, 1e-6  # of a cut; of the weight that divides it


class TierPrices(NamedTuple):
    """What proves a least cut of a tier."""

    tier: int
    rank: float  # of each rank
    end: float  # besides, of one on the first stage, and of one on the last


def priced_hop_cost(machine: Machine, job: Job, prices: Iterable[TierPrices]) -> float:
    """What every placement costs at the least, by prices of any tiers."""
    of_tier = {one.tier: one for one in prices}
    distance = [tier.distance for tier in machine.tiers]
    cost = min(distance) * sum(one.weight * len(one.edges) for one in hop_edges(job))
    for tier in range(len(distance) - 1):
        rise = min(distance[tier + 1 :]) - min(distance[tier:])
        if tier in of_tier and rise > 0:
            rooms = Counter(np.bincount(machine.domain_of_gpu[tier]).tolist())
            cost += rise * _least_cut(job, rooms, of_tier[tier])
    return cost


def _least_cut(job: Job, rooms: Mapping[int, int], prices: TierPrices) -> float:
    """Weight of the edges between domains, given how many have each room."""
    world = job.world_size
    spare = sum(room * count for room, count in rooms.items()) - world
    floor = least_edges(job, min(max(rooms), world), prices.end)
    twice = prices.rank * world - 2 * prices.end * (world // job.parallelism.pp)
    for room, count in rooms.items():
        # All others cannot hold more than they have room for.
        ranks = np.arange(max(0, room - spare), min(room, world) + 1)
        twice += count * float((floor[ranks] - prices.rank * ranks).min())
    # The weights divide every cut without rest.
    weights = [Fraction(str(one.weight)) for one in hop_edges(job)]
    scale = lcm(*(one.denominator for one in weights))
    unit = gcd(*(int(one * scale) for one in weights)) / scale
    return max(0.0, unit * ceil(twice / 2 / unit * (1 - ROUNDING) - NEAR))


def least_edges(job: Job, size: int, end: float) -> FloatArray:
    """Least weight of edges out of 0, 1 .. size ranks, with the prices of ends."""
    axes, weights, floor = job.parallelism, job.weights, np.zeros(size + 1)
    # Pipelines are of both grids, and each has half.
    grids = [
        names
        for names in GRIDS[: 1 + pipeline_groups_agree(axes)]
        if any(weights.get(axis) and axes.size(axis) > 1 for axis in names)
    ] or [GRIDS[0]]
    for first, second, copies in grids:
        ends = np.zeros(axes.pp)
        ends[0] = end / len(grids)
        ends[-1] += end / len(grids)
        stages = _ring(_ring(np.zeros(2), job, first, size), job, second, size)
        replica = _path(stages, ends, weights.get("pp", 0.0) / len(grids), size)
        floor += _ring(replica, job, copies, size)
    return floor


def _path(floor: FloatArray, prices: FloatArray, edge: float, size: int) -> FloatArray:
    """Slices in a row, given the floor of one, whose ranks pay the price of its place.

    ``edge``: what a rank costs that only one of two neighbours has.
    """
    size = min(size, (len(floor) - 1) * len(prices))
    least = np.full((len(floor), size + 1), inf)  # by the last slice and all ranks
    least[:, 0] = 0.0
    for place, price in enumerate(prices.tolist()):
        for ranks in range(1, len(floor)) if place else ():
            np.minimum(least[ranks], least[ranks - 1] + edge, out=least[ranks])
        for ranks in range(len(floor) - 1, 0, -1) if place else ():
            np.minimum(least[ranks - 1], least[ranks] + edge, out=least[ranks - 1])
        for ranks in range(len(floor)):
            before = least[ranks, : max(0, size + 1 - ranks)].copy()
            least[ranks] = inf
            least[ranks, ranks:] = before + floor[ranks] + price * ranks
    return np.asarray(least.min(axis=0))


def _ring(floor: FloatArray, job: Job, axis: str, size: int) -> FloatArray:
    """Slices along a ring, or single ranks of a clique; ``floor`` is that of one."""
    length, weight = job.parallelism.size(axis), job.weights.get(axis, 0.0)
    size = min(size, (len(floor) - 1) * length)
    if axis == "ep" and length > 1:
        return np.asarray([weight * n * (length - n) for n in range(size + 1)])
    # From the least to the largest and back; edges of etp are those of tp.
    spread = 0.0 if axis == "etp" else weight * min(2, length - 1)
    if length == 1 or length * (len(floor) - 1) * size <= RING_WORK:
        return _path(floor, np.zeros(length), spread, size)
    packed, least = np.full(size + 1, inf), np.full(size + 1, inf)
    packed[0] = least[0] = 0.0
    for ranks in range(1, min(len(floor), size + 1)):
        for at in range(ranks, size + 1, ranks):
            some = packed[at : at + ranks]
            fewer = packed[at - ranks : at - ranks + len(some)]
            np.minimum(some, fewer + floor[ranks], out=some)
        np.minimum(least, packed + spread * ranks, out=least)  # one slice is empty
    # Or none is: slices pay no less than their lower convex hull at the mean.
    corners = [1]
    while (at := corners[-1]) < len(floor) - 1:
        slopes = (floor[at + 1 :] - floor[at]) / np.arange(1, len(floor) - at)
        corners.append(at + 1 + int(slopes.argmin()))
    sets = np.arange(length, size + 1)
    hull = length * np.interp(sets / length, corners, floor[corners])
    least[length:] = np.minimum(least[length:], np.maximum(hull, packed[length:]))
    return least
