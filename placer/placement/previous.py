"""Where the ranks of a job were in a plan made before, on the machine as it is now."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from placer.arrays import BoolArray, IntArray
from placer.errors import InputError, Problem
from placer.job.axes import unlike_sizes

if TYPE_CHECKING:
    from placer.job.model import Job
    from placer.placement.plan import Plan
    from placer.topology.model import Topology

# Ranks correspond by these coordinates. dp comes last, so that its size may change.
_CORRESPOND = ("tp", "cp", "pp", "dp")


@dataclass(frozen=True, eq=False)
class LostNode:
    """A node of the previous plan that cannot be used, or not as it was.

    Attributes
    ----------
    ranks : ndarray, shape (any,)
        The ranks it held, ascending.
    domains : tuple of int
        Its domain at each tier, -1 where the machine has none of that name.
    """

    ranks: IntArray
    domains: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Previous:
    """The seats of a previous plan.

    Attributes
    ----------
    gpu_of_rank : ndarray, shape (R,)
        Global GPU index of every rank; -1 for a rank without a seat any more.
    lost : tuple of LostNode
    is_new : ndarray of bool, shape (R,)
        Ranks that the previous plan did not have.
    """

    gpu_of_rank: IntArray
    lost: tuple[LostNode, ...]
    is_new: BoolArray

    def kept(self, gpu_of_rank: IntArray) -> int:
        """How many ranks a placement leaves where they were."""
        return int(np.count_nonzero(self.gpu_of_rank == gpu_of_rank))

    def summary(self, gpu_of_rank: IntArray) -> dict[str, int]:
        """Ranks that a placement leaves where they were, moves, and adds."""
        kept, new = self.kept(gpu_of_rank), int(self.is_new.sum())
        return {"kept": kept, "moved": len(gpu_of_rank) - kept - new, "new": new}


def previous_seats(plan: Plan, topology: Topology, job: Job) -> Previous:
    """The seats of ``plan`` for the ranks of ``job`` that do the same work.

    Ranks correspond by their coordinates, so order and data parallel size may have
    changed; those of a plan that does not record its axes correspond by number.

    Raises
    ------
    InputError
        If the plan is of a job whose ranks do not correspond.
    """
    old_rank = _old_rank(plan, job)
    is_new = old_rank < 0
    index = {name: i for i, name in enumerate(topology.node_names)}
    entry = plan.node_of_rank[old_rank]
    node = np.array([index.get(name, -1) for name in plan.nodes], dtype=np.int64)
    gpu = plan.gpu_of_rank[old_rank]
    unfit = ~is_new & ((node[entry] < 0) | (gpu >= topology.gpus_of_node[node[entry]]))
    lost_entries = np.unique(entry[unfit])
    gone = ~is_new & np.isin(entry, lost_entries)
    stays = ~(is_new | gone)
    seats = np.full(len(gpu), -1, dtype=np.int64)
    seats[stays] = topology.gpu_at(node[entry][stays], gpu[stays])
    lost = [
        LostNode(np.flatnonzero(~is_new & (entry == e)), _domains(plan, topology, e))
        for e in lost_entries.tolist()
    ]
    lost.sort(key=lambda one: int(one.ranks[0]))
    return Previous(seats, tuple(lost), is_new)


def _old_rank(plan: Plan, job: Job) -> IntArray:
    """Rank of the plan that does the work of each rank; -1 where there is none."""
    old, new = plan.axes, job.parallelism
    if old is None:
        if plan.world_size != job.world_size:
            raise _of_another_job(
                f"{plan.world_size:,} ranks against {job.world_size:,}"
            )
        return np.arange(job.world_size)
    if unlike := unlike_sizes(old, new):
        raise _of_another_job(", ".join(unlike))
    old_of_work = np.full(max(old.world_size, new.world_size), -1, dtype=np.int64)
    old_of_work[old.numbers_in(_CORRESPOND)] = np.arange(old.world_size)
    return old_of_work[new.numbers_in(_CORRESPOND)]


def _domains(plan: Plan, topology: Topology, entry: int) -> tuple[int, ...]:
    """Domain of an entry of the plan's nodes at each tier."""
    names = [plan.nodes[entry]]
    names += [
        plan.domains.get(tier.name, [""] * len(plan.nodes))[entry]
        for tier in topology.tiers[1:-1]
    ]
    found = [
        known.index(name) if name in known else -1
        for name, known in zip(names, topology.domain_names, strict=False)
    ]
    return (*found, 0)[: len(topology.tiers)]


def _of_another_job(why: str) -> InputError:
    message = f"the previous plan is of another job: {why}"
    return InputError([Problem(message, key="previous")])
