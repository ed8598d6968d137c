"""What moves as one, and where it may go: a problem as units on slots.

Shapes: U units of s ranks, S slots, C cells (scale-up domains).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

import numpy as np

from placer.base.arrays import (
    BoolArray,
    IntArray,
    by_appearance,
    grouped,
    row_of_number,
)
from placer.solve.annealing.in_full import InFull
from placer.solve.annealing.sets import labels_of, own_labels
from placer.solve.annealing.starts import column_starts, cut_starts, run_starts
from placer.solve.annealing.walks import Walks
from placer.solve.problem.colocation import join
from placer.solve.problem.compiled import Problem
from placer.solve.problem.flows import flows_of
from placer.solve.score.groups import Rows
from placer.solve.score.slots import Slots, cell_tier
from placer.topology.machine import Machine


@dataclass(frozen=True, eq=False)
class Units:
    """Units of a problem on the slots of its machine."""

    problem: Problem
    slots: Slots
    cell_of_gpu: IntArray  # (G,)
    tier: int  # of cells, -1 where GPUs all differ

    @classmethod
    def of(
        cls, problem: Problem, seats: IntArray | None = None, *, keeps: bool = False
    ) -> Units | None:
        """Units of a launch, None if none fit.

        A launch by nodes moves what a node holds, a free one tp groups with all that
        must lie in one cell.

        ``seats`` ((R,)): GPU of every rank, -1 for none: units that have them together
        keep those. ``keeps``: whether all units of a free launch must, be they parts of
        tp groups.
        """
        machine, job = problem.machine, problem.job
        tier = cell_tier(problem)
        cell = cell_of_gpu(machine, tier)
        if job.launcher != "free":
            if not problem.choices:
                return None
            block = problem.choices[0].block
            is_roomy = machine.gpus_of_node >= block
            nodes = np.flatnonzero(is_roomy & ~problem.limits.closed)
            first = np.asarray(machine.first_gpu_of_node)[nodes]
            ranks = np.arange(job.world_size).reshape(-1, block)
            gpus = first[:, None] + np.arange(block)
            if seats is not None:
                own = seats[ranks]
                own = own[_are_together(own, machine.node_of_gpu)]
                own = own[np.isin(machine.node_of_gpu[own[:, 0]], nodes)]
                gpus[np.searchsorted(nodes, machine.node_of_gpu[own[:, 0]])] = own
        else:
            for ranks, own, others in _free_units(problem, tier, seats):
                gpus = np.concatenate((own, others))
                if len(gpus) >= len(ranks) and len(own) >= keeps * len(ranks):
                    break
            else:
                return None
        if len(gpus) < len(ranks):
            return None
        return cls(problem, Slots(ranks, gpus), cell, tier)

    def joined(self, sets: IntArray) -> Units | None:
        """Units of several, which lie in one cell each; None where they do not fit.

        ``sets`` ((R,)): those of a set become one.
        """
        own = sets[self.slots.ranks]
        size = np.unique(own[:, 0], return_counts=True)[1]
        if (own != own[:, :1]).any() or (size != size[0]).any():
            return None
        if 1 in (len(size), size[0]):
            return None
        ranks = self.slots.ranks[np.argsort(own[:, 0], kind="stable")]
        ranks = ranks.reshape(len(size), -1)
        cell = self.cell_of_gpu
        gpus = _joined(self.slots.gpus, cell, ranks.shape[1])
        if len(gpus) < len(ranks):
            return None
        return Units(self.problem, Slots(ranks, gpus), cell, self.tier)

    def walks(self) -> Walks:
        """Walks of their own."""
        return Walks(self)

    def in_full(self) -> InFull:
        """Walks that need nothing compiled."""
        return InFull(self)

    def gpu_of_rank(self, slot_of_unit: IntArray) -> IntArray:
        """The placement that has each unit on its slot; shape (R,)."""
        return self.slots.gpu_of_rank(slot_of_unit)

    def simple_starts(self) -> Iterator[IntArray]:
        """Slot of each unit (U,) where cells are filled one after the other."""
        return chain(cut_starts(self), column_starts(self), run_starts(self))

    def labels(self) -> Iterator[IntArray]:
        """Label of each unit in every family of sets that moves know; shape (U,)."""
        job, ranks = self.problem.job, self.slots.ranks
        return chain(own_labels(job, ranks), labels_of(job.parallelism, ranks))

    @cached_property
    def cell_of_slot(self) -> IntArray:
        """Cell of each slot; shape (S,)."""
        return self.cell_of_gpu[self.slots.gpus[:, 0]]

    @cached_property
    def slots_of_cell(self) -> list[IntArray]:
        """Slots of each cell that has any."""
        return grouped(np.arange(len(self.slots.gpus)), self.cell_of_slot)

    @cached_property
    def tied(self) -> list[tuple[int, IntArray]]:
        """Tiers inside one domain of which several units must lie: set of each unit."""
        rows = self.problem.colocation.label
        first = self.slots.ranks[:, 0]
        found = ((t, rows[t][first]) for t in range(max(self.tier, 0), len(rows) - 1))
        return [(t, own) for t, own in found if np.bincount(own).max() > 1]

    @cached_property
    def partners(self) -> Rows | None:
        """Units that each sends to or receives from, where the job names ranks."""
        problem, count = self.problem, len(self.slots.ranks)
        if problem.goal.name != "time" or not problem.has_own_traffic:
            return None
        flows = flows_of(problem, np.arange(problem.job.world_size))
        ends = row_of_number(self.slots.ranks)[flows.edges]
        ends = ends[ends[:, 0] != ends[:, 1]]
        both = np.concatenate((ends, ends[:, ::-1]))
        return Rows.pairs(both[:, 0], both[:, 1], count) if len(both) else None

    def slots_at(self, gpu_of_rank: IntArray) -> IntArray:
        """Slot of each unit that is on just the GPUs of one; -1 for others; (U,)."""
        slots, wanted = self.slots, gpu_of_rank[self.slots.ranks]
        by_gpu = np.argsort(slots.gpus[:, 0])
        found = np.searchsorted(slots.gpus[by_gpu, 0], wanted[:, 0])
        found = by_gpu[np.minimum(found, len(by_gpu) - 1)]
        same = (slots.gpus[found] == wanted).all(axis=1)
        return np.where(same, found, -1)

    def slot_of_unit(self, gpu_of_rank: IntArray) -> IntArray:
        """Slots of units as a placement has them, or near by where it cuts them."""
        cells = self.cell_of_gpu[gpu_of_rank[self.slots.ranks]]
        free = {
            int(self.cell_of_slot[some[0]]): some[::-1].tolist()
            for some in self.slots_of_cell
        }
        job = self.problem.job
        if job.launcher != "free" or job.rules:
            found = self.slots_at(gpu_of_rank)
            if (found >= 0).all():
                return found
        found = np.full(len(cells), -1)
        is_cut = (cells != cells[:, :1]).any(axis=1)
        often = (cells[:, :, None] == cells[:, None, :]).sum(axis=2)
        turn = np.lexsort((cells, -often))
        wanted = np.take_along_axis(cells, turn, axis=1).tolist()
        for unit in np.argsort(is_cut, kind="stable").tolist():
            first = wanted[unit][0]
            cell = next((c for c in wanted[unit] if free.get(c)), None)
            if cell is None:
                cell = min((c for c in free if free[c]), key=lambda c: abs(c - first))
            found[unit] = free[cell].pop()
        return found


def cell_of_gpu(machine: Machine, tier: int) -> IntArray:
    """Domain of each GPU inside which units may be anywhere; shape (G,)."""
    return machine.domain_of_gpu[tier] if tier >= 0 else np.arange(machine.num_gpus)


def _free_units(
    problem: Problem, tier: int, seats: IntArray | None
) -> Iterator[tuple[IntArray, IntArray, IntArray]]:
    """Ranks of units of a free launch, and GPUs of slots: their seats, and others.

    Of whole tp groups, then of ever smaller parts of them: no cell may hold a group.
    """
    label, machine = problem.colocation.label, problem.machine
    inner, every = label[: tier + 1], np.arange(machine.num_gpus)
    is_open = ~problem.limits.closed[machine.node_of_gpu]
    groups = problem.job.parallelism.ranks_of_group["tp"]
    tied = inner[-1] if len(inner) else np.arange(problem.job.world_size)
    for part in range(groups.shape[1], 0, -1):
        if groups.shape[1] % part:
            continue
        unit = join(tied, groups.reshape(-1, part))
        rows = (*inner, by_appearance(unit)[1])
        sizes = [np.unique(np.bincount(row)) for row in rows]
        if any(len(found) > 1 for found in sizes):
            continue
        size = int(sizes[-1][0])
        ranks = np.lexsort((np.arange(len(unit)), *inner, unit)).reshape(-1, size)
        domains = [
            machine.domain_of_gpu[min(t, tier)] if tier >= 0 else every
            for t in range(len(sizes))
        ]
        own = np.empty((0, size), dtype=np.int64)
        if seats is not None:
            own = seats[ranks]
            for domain, (many,) in zip(domains, sizes, strict=True):
                parts = own.reshape(-1, int(many))
                together = _are_together(parts, domain).reshape(len(own), size // many)
                own = own[together.all(axis=1)]
        slots = np.setdiff1d(every[is_open], own)[:, None]
        for domain, (many,) in zip(domains, sizes, strict=True):
            slots = _joined(slots, domain, int(many))
        yield ranks, own, slots


def _are_together(gpus: IntArray, domain: IntArray) -> BoolArray:
    """Whether GPUs, -1 for none, lie in one domain in each row."""
    at = domain[gpus]
    return np.asarray((gpus >= 0).all(axis=1) & (at == at[:, :1]).all(axis=1))


def _joined(rows: IntArray, domain: IntArray, size: int) -> IntArray:
    """Rows of so many GPUs of one domain each, made of rows; the rest is no slot."""
    many = size // rows.shape[1]
    if not len(rows):
        return rows.reshape(-1, size)
    parts = grouped(np.arange(len(rows)), domain[rows[:, 0]])
    whole = [part[: len(part) // many * many].reshape(-1, many) for part in parts]
    return rows[np.concatenate(whole)].reshape(-1, size)
