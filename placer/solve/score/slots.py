"""Units of ranks, and slots of GPUs that have room for one each.

A placement is which slot each unit is on. What the cost can tell apart of GPUs is their
*site*: domains, rail and speed. Shapes: U units of s ranks, S slots, T tiers.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from placer.base.arrays import FloatArray, IntArray
from placer.cost.fabric import Fabric
from placer.solve.problem.compiled import Problem
from placer.solve.tree.domains import base_tier


@dataclass(frozen=True, eq=False)
class Slots:
    """Ranks that move together, and where they may be."""

    ranks: IntArray  # (U, s): of each unit
    gpus: IntArray  # (S, s): of each slot: rank ``i`` of the unit there is on GPU ``i``

    @cached_property
    def num_ranks(self) -> int:
        """Ranks of all units."""
        return int(self.ranks.size)

    def gpu_of_rank(self, slot_of_unit: IntArray) -> IntArray:
        """The placement that has each unit on its slot; shape (R,)."""
        found = np.empty(self.num_ranks, dtype=np.int64)
        found[self.ranks.ravel()] = self.gpus[slot_of_unit].ravel()
        return found

    def single(self) -> Slots:
        """Single ranks on single GPUs."""
        return Slots(self.ranks.reshape(-1, 1), self.gpus.reshape(-1, 1))

    def in_order(self, keys: IntArray) -> Slots:
        """Slots sorted so that every domain has a range of them.

        Parameters
        ----------
        keys : ndarray, shape (T, G)
            Domains of each GPU, the innermost first.
        """
        order = np.lexsort(keys[:, self.gpus[:, 0]])
        is_sorted = (order == np.arange(len(order))).all()
        return self if is_sorted else Slots(self.ranks, self.gpus[order])


@dataclass(frozen=True, eq=False)
class Sites:
    """The GPUs of a machine as a cost tells them apart: K sites."""

    # (t,): the tiers that matter: below the innermost nothing tells GPUs apart.
    tiers: IntArray
    scale_up: int  # which of them is the scale-up tier, -1 without one
    of_gpu: IntArray  # (G,)
    child: list[IntArray]  # (K,): child domain of each of `tiers` that a site is in
    # rail, factor and speed: (K,).
    rail: IntArray
    factor: FloatArray
    speed: FloatArray

    @classmethod
    def of_time(cls, fabric: Fabric) -> Sites:
        """The sites that a step tells apart."""
        count = fabric.domain_of_gpu.shape[1]
        rail = fabric.rail_of_gpu if fabric.has_rails else np.zeros(count, np.int64)
        speed = fabric.speed_of_gpu
        speeds = np.ones(count) if speed is None else speed
        tiers, cell = tiers_of_time(fabric)
        return cls._told_apart(fabric, tiers, cell, rail, fabric.factor_of_gpu, speeds)

    @classmethod
    def of_hops(cls, fabric: Fabric, cell: int) -> Sites:
        """The sites that hops tell apart: domains alone, from the base tier on.

        Parameters
        ----------
        cell : int
            The tier whose domains moves count units in.
        """
        count, base = fabric.domain_of_gpu.shape[1], base_tier(fabric.topology)
        tiers, alike = _tiers(base, fabric.num_tiers, cell), np.ones(count)
        rail = np.zeros(count, np.int64)
        return cls._told_apart(fabric, tiers, cell - base, rail, alike, alike)

    @classmethod
    def _told_apart(
        cls,
        fabric: Fabric,
        tiers: IntArray,
        scale_up: int,
        rail: IntArray,
        factor: FloatArray,
        speed: FloatArray,
    ) -> Sites:
        """The sites of GPUs with these rails, factors and speeds; each (G,)."""
        domains = fabric.domain_of_gpu[tiers[:-1]]
        # Without a scale-up tier every GPU has an uplink of its own.
        innermost = np.arange(len(rail)) if scale_up < 0 else np.zeros_like(rail)
        kinds = [np.unique(each, return_inverse=True)[1] for each in (factor, speed)]
        _, first, of_gpu = np.unique(
            np.stack([*domains, innermost, rail, *kinds]),
            axis=1,
            return_index=True,
            return_inverse=True,
        )
        number = np.arange(len(first)) if scale_up < 0 else innermost[first]
        child = [number, *domains[:, first]]
        rest = rail[first], factor[first], speed[first]
        return cls(tiers, scale_up, of_gpu.reshape(-1), child, *rest)

    @property
    def tree(self) -> IntArray:
        """Domain of each GPU at every tier but the last, then its site; (t, G)."""
        return np.stack([self.of_gpu, *(row[self.of_gpu] for row in self.child[1:])])


def tiers_of_time(fabric: Fabric) -> tuple[IntArray, int]:
    """The tiers that a step tells apart, and which of them is the scale-up tier.

    Where all tiers of NVLink are alike, only the outermost of them matters.
    """
    inner = fabric.scale_up_tier + 1
    alike = inner > 0 and all(
        (row[:inner] == row[0]).all() for row in (fabric.bandwidth, fabric.latency)
    )
    if alike and not fabric.detour[:inner].any():
        return _tiers(inner - 1, fabric.num_tiers, inner - 1), 0
    return _tiers(0, fabric.num_tiers, inner - 1), fabric.scale_up_tier


def _tiers(first: int, count: int, cell: int) -> IntArray:
    """Tiers of a machine of so many, from one on, of which one is outside of cells.

    Moves count units in domains of that: it is the last once more where cells are the
    whole machine, and nothing is sent over it.
    """
    return np.minimum(np.arange(first, max(count, cell + 2)), count - 1)


def cell_tier(problem: Problem) -> int:
    """The tier inside which it hardly matters where units are, -1 without one.

    Domains of a cell's tier hold several units: where a node holds but one, moves that
    take what a domain holds would take single units.
    """
    if problem.goal.name == "time":
        return problem.model.fabric.scale_up_tier
    machine, tier = problem.machine, base_tier(problem.machine)
    unit = max(problem.colocation.block, problem.job.parallelism.tp)
    rows = machine.domain_of_gpu
    while tier + 2 < len(rows) and np.bincount(rows[tier]).max() < 2 * unit:
        tier += 1
    return tier


def atoms_of(slots: Slots, sites: Sites) -> Slots:
    """Units where each slot is on one site; else single ranks."""
    at = sites.of_gpu[slots.gpus]
    whole = (at == at[:, :1]).all() and (sites.scale_up >= 0 or at.shape[1] == 1)
    return slots if whole else slots.single()


def exchanged(slots: IntArray, here: IntArray, there: IntArray) -> IntArray:
    """Slots (U,) when pairs of slots exchange the units on them, if any."""
    unit_at = np.full(np.concatenate((slots, here, there)).max() + 1, -1)
    unit_at[slots] = np.arange(len(slots))
    unit_at[here], unit_at[there] = unit_at[there], unit_at[here]
    taken = np.flatnonzero(unit_at >= 0)
    found = np.empty_like(slots)
    found[unit_at[taken]] = taken
    return found
