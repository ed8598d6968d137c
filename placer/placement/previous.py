"""Where the ranks of a job were in a plan made before, on the machine as it is now."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from placer.errors import InputError, Problem
from placer.job.axes import Parallelism

if TYPE_CHECKING:
    from placer.job.model import Job
    from placer.placement.plan import Plan
    from placer.topology.model import Topology

IntArray = npt.NDArray[np.int64]

# Ranks correspond by these coordinates. dp comes last, so that its size may change.
_CORRESPOND = ("tp", "cp", "pp", "dp")
_MUST_AGREE = ("tp", "cp", "pp", "ep", "etp")


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
    is_new: npt.NDArray[np.bool_]

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
    seats = np.where(is_new | gone, -1, topology.first_gpu_of_node[node[entry]] + gpu)
    lost = [
        LostNode(np.flatnonzero(~is_new & (entry == e)), _domains(plan, topology, e))
        for e in lost_entries.tolist()
    ]
    lost.sort(key=lambda one: int(one.ranks[0]))
    return Previous(seats, tuple(lost), is_new)


def _old_rank(plan: Plan, job: Job) -> IntArray:
    """Rank of the plan that does the work of each rank; -1 where there is none."""
    old, new = _axes_of(plan), job.parallelism
    if old is None:
        if plan.world_size != job.world_size:
            raise _of_another_job(
                f"{plan.world_size:,} ranks against {job.world_size:,}"
            )
        return np.arange(job.world_size)
    unlike = [
        f"{axis} {old.size(axis)} against {new.size(axis)}"
        for axis in _MUST_AGREE
        if old.size(axis) != new.size(axis)
    ]
    if unlike:
        raise _of_another_job(", ".join(unlike))
    old_of_work = np.full(max(old.world_size, new.world_size), -1, dtype=np.int64)
    old_of_work[_work(old)] = np.arange(old.world_size)
    return old_of_work[_work(new)]


def _work(axes: Parallelism) -> IntArray:
    """Number of each rank when ranks are numbered by `_CORRESPOND`; shape (R,)."""
    number = np.zeros(axes.world_size, dtype=np.int64)
    for position, axis in enumerate(_CORRESPOND):
        stride = prod(axes.size(inner) for inner in _CORRESPOND[:position])
        number += axes.coordinates[axis] * stride
    return number


def _axes_of(plan: Plan) -> Parallelism | None:
    sizes = plan.job.get("parallelism")
    if not sizes:
        return None
    known = {axis: sizes[axis] for axis in (*_CORRESPOND, "ep", "etp") if axis in sizes}
    return Parallelism(**known, order=tuple(plan.job["order"].split("-")))


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
