"""What every exchange of a unit would do to the sum of weight x distance over edges.

It orders exchanges before they are priced, and is exact for the hop cost. Shapes: R
ranks, U units of k ranks, E edges.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from placer.base.arrays import FloatArray, IntArray
from placer.cost.fabric import Fabric

if TYPE_CHECKING:
    from collections.abc import Sequence

    from placer.explain.units import Units
    from placer.job.edges import AxisEdges
    from placer.topology.model import Topology


def exchange_changes(
    topology: Topology,
    axes: Sequence[AxisEdges],
    gpu_of_rank: IntArray,
    units: Units,
) -> FloatArray:
    """Change of the sum by the exchange with each unit, 0 for the own; shape (U,).

    An edge to a rank that stays is counted once for each of its ends that moves to
    another unit's place; edges of the unit's own ranks are looked at for every unit.
    """
    find = _Distances(topology)
    place = _Places(gpu_of_rank, units)
    change = np.zeros(len(units.members))
    for axis in axes:
        edges = axis.edges
        own = (place.unit[edges] == units.own).any(axis=1)
        away = edges[~own]
        before = find(gpu_of_rank[away[:, 0]], gpu_of_rank[away[:, 1]])
        together = place.unit[away[:, 0]] == place.unit[away[:, 1]]
        for turn, (mover, other) in enumerate((away.T, away[:, ::-1].T)):
            counts = place.unit[mover] >= 0
            if turn == 1:  # an edge inside a unit has been counted
                counts &= ~together
            there = np.where(together, place.own_seat(other), gpu_of_rank[other])
            after = find(place.own_seat(mover), there)
            change += axis.weight * np.bincount(
                place.unit[mover][counts],
                (after - before)[counts],
                len(change),
            )
        change += axis.weight * _own_edges(find, place, edges[own])
    change[units.own] = 0.0
    return change


class _Distances:
    """Distance between GPUs, elementwise."""

    def __init__(self, topology: Topology) -> None:
        self._fabric = Fabric.of(topology)
        self._distance = np.array(
            [tier.distance for tier in self._fabric.topology.tiers]
        )

    def __call__(self, gpus: IntArray, others: IntArray) -> FloatArray:
        found: FloatArray = self._distance[self._fabric.tier_between(gpus, others)]
        return found


class _Places:
    """Unit and position in it of every rank, -1 and 0 outside all units."""

    def __init__(self, gpu_of_rank: IntArray, units: Units) -> None:
        count, size = units.members.shape
        self.gpu_of_rank, self.units = gpu_of_rank, units
        self.unit = np.full(len(gpu_of_rank), -1)
        self.position = np.zeros(len(gpu_of_rank), dtype=np.int64)
        self.unit[units.members] = np.arange(count)[:, None]
        self.position[units.members] = np.arange(size)

    def own_seat(self, ranks: IntArray) -> IntArray:
        """GPU that each rank gets when its unit takes the place of the own one."""
        seats: IntArray = self.gpu_of_rank[self.units.ranks[self.position[ranks]]]
        return seats

    def seats(self, ranks: IntArray) -> IntArray:
        """GPU of each rank in every exchange of the own unit; shape (U, any)."""
        count = len(self.units.members)
        unit = self.unit[ranks]
        there = self.gpu_of_rank[self.units.members[:, self.position[ranks]]]
        moved = np.where(unit == self.units.own, there, self.gpu_of_rank[ranks])
        comes = unit == np.arange(count)[:, None]
        return np.where(comes, self.own_seat(ranks), moved)


def _own_edges(find: _Distances, place: _Places, edges: IntArray) -> FloatArray:
    """Change of the edges of the unit's own ranks in every exchange; shape (U,)."""
    first, second = edges.T
    before = find(place.gpu_of_rank[first], place.gpu_of_rank[second])
    after = find(place.seats(first), place.seats(second))
    change: FloatArray = (after - before).sum(axis=1)
    return change
