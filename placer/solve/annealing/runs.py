"""Runs on nodes: a launch by nodes as an order of nodes, and what each of them holds.

Shapes: U units of s consecutive ranks, S slots, N nodes, P of them with ranks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from math import gcd
from typing import TYPE_CHECKING

import numpy as np

from placer.base.arrays import IntArray, equal_runs, row_of_number
from placer.cost.fabric import Fabric
from placer.job.model import Job
from placer.solve.annealing.in_full import RunsInFull
from placer.solve.annealing.sets import shards_of
from placer.solve.annealing.units import Units, cell_of_gpu
from placer.solve.annealing.walks import Walks
from placer.solve.problem.axes import sizes_kept_whole
from placer.solve.problem.colocation import colocation_of, join
from placer.solve.problem.compiled import Problem
from placer.solve.score.groups import Rows
from placer.solve.score.slots import Sites, Slots, cell_tier

if TYPE_CHECKING:
    from placer.solve.score._kernel import Annealer


@dataclass(frozen=True, eq=False)
class Runs(Units):
    """Units of consecutive ranks on the nodes of a machine, any number on each.

    Each node has as many slots as it has room for.
    """

    @classmethod
    def on_nodes(cls, problem: Problem) -> Runs | None:
        """Units of `unit_size` ranks; None if nodes have no room for all."""
        machine, size = problem.machine, unit_size(problem)
        room = machine.gpus_of_node // size
        if problem.job.world_size % size or room.sum() * size < problem.job.world_size:
            return None
        first = np.repeat(machine.first_gpu_of_node[:-1], room)
        place = np.arange(len(first)) - np.repeat(np.cumsum(room) - room, room)
        gpus = (first + place * size)[:, None] + np.arange(size)
        ranks = np.arange(problem.job.world_size).reshape(-1, size)
        tier = cell_tier(problem)
        return cls(problem, Slots(ranks, gpus), cell_of_gpu(machine, tier), tier)

    def walks(self) -> RunWalks:
        """Walks of their own."""
        return RunWalks(self)

    def in_full(self) -> RunsInFull:
        """Walks that need nothing compiled."""
        return RunsInFull(self)

    def simple_starts(self) -> Iterator[IntArray]:
        """None: runs begin with placements that are known."""
        return iter(())

    def labels(self) -> Iterator[IntArray]:
        """Label of each unit in every family of sets that moves know; shape (U,)."""
        yield from super().labels()
        if (shards := shards_of(self.problem.job)) is not None:
            yield row_of_number(shards)[self.slots.ranks[:, 0]]

    @cached_property
    def tied(self) -> list[tuple[int, IntArray]]:
        """Tiers inside one domain of which several units must lie: set of each unit."""
        problem, ranks = self.problem, self.slots.ranks
        rows = colocation_of(problem.machine, problem.job, 1).label[:-1]
        found = ((t, join(row, ranks)[ranks[:, 0]]) for t, row in enumerate(rows))
        return [(t, own) for t, own in found if np.bincount(own).max() > 1]

    def gpu_of_rank(self, slot_of_unit: IntArray) -> IntArray:
        """The placement of runs, given as rows (node, units); shape (R,)."""
        nodes, units = slot_of_unit.T
        return self.problem.machine.gpus_on(np.repeat(nodes, units * self.size))

    def slot_of_unit(self, gpu_of_rank: IntArray) -> IntArray:
        """Nodes in turn, and the units of each, as a placement has them; shape (P, 2).

        Runs cannot say that a node holds part of a unit, or that ranks come back to it
        after others, as they may on islands. Then nodes are filled in the order that
        the placement has them in.
        """
        machine = self.problem.machine
        begins, lengths = equal_runs(machine.node_of_gpu[gpu_of_rank])
        nodes = machine.node_of_gpu[gpu_of_rank[begins]]
        units = lengths // self.size
        first = np.sort(np.unique(nodes, return_index=True)[1])
        if (lengths % self.size).any() or len(first) < len(nodes):
            nodes = nodes[first]
            rest = np.setdiff1d(np.arange(machine.num_nodes), nodes)
            return self.filled(np.append(nodes, rest))
        return np.stack((nodes, units), axis=1)[units > 0]

    def filled(self, nodes: IntArray) -> IntArray:
        """Nodes in turn (N,), each filled before the next; shape (P, 2)."""
        room = np.cumsum(self.problem.machine.gpus_of_node[nodes] // self.size)
        units = np.diff(np.minimum(room, len(self.slots.ranks)), prepend=0)
        return np.stack((nodes, units), axis=1)[units > 0]

    @property
    def size(self) -> int:
        """Ranks of a unit."""
        return int(self.slots.ranks.shape[1])


def may_hold_runs(problem: Problem) -> bool:
    """Whether nodes that hold different numbers of ranks may be better.

    They are where nodes differ, or stages end inside of one, and for flows of the job's
    own where any GPU is spare.
    """
    if problem.job.launcher == "free" or problem.forced_block:
        return False
    if not problem.choices:
        return True
    if problem.has_own_traffic:
        return problem.job.world_size < problem.machine.num_gpus
    block, axes = problem.choices[0].block, problem.job.parallelism
    is_even = (problem.machine.gpus_of_node == block).all()
    return not is_even or axes.world_size // axes.pp % block > 0


def unit_size(problem: Problem) -> int:
    """Ranks of a unit: what divides the sizes of groups and nodes.

    At least a tp group where these must lie in a node; single ranks where any cut may
    be of use.
    """
    job, machine = problem.job, problem.machine
    axes = job.parallelism
    if problem.has_own_traffic and not job.groups:
        return 1
    sizes = [size for size in kept_whole(job) if size > 1]
    rooms = np.unique(machine.gpus_of_node[machine.gpus_of_node > 0]).tolist()
    found = gcd(job.world_size, *sizes, *rooms)
    tied = axes.tp if job.require.get("tp") == machine.tiers[0].name else 1
    return max(found, tied)


def kept_whole(job: Job) -> list[int]:
    """Ranks of groups that are better not cut: of tp, cp, experts and shards."""
    shards = shards_of(job)
    inside = job.parallelism.tp * shards.shape[1] if shards is not None else 1
    return [*sizes_kept_whole(job.parallelism), inside]


class RunWalks(Walks):
    """Annealing of runs; starts are a row (node, units) for each node in turn."""

    units: Runs

    def __post_init__(self) -> None:
        super().__post_init__()
        problem, slots = self.units.problem, self.units.slots
        set_runs(self.annealer, problem, slots)
        self._counted = self.annealer.moves

    @property
    def _nodes_of_places(self) -> IntArray:
        return np.arange(self.units.problem.machine.num_nodes)[:, None]

    def load(self, slot_of_unit: IntArray) -> float:
        """Begin with units on nodes; the cost."""
        self.annealer.load_runs(*np.ascontiguousarray(slot_of_unit.T))
        return self.annealer.best

    @property
    def best(self) -> tuple[float, IntArray]:
        """The least cost of a walk, and its runs."""
        runs = np.asarray(self.annealer.best_runs, np.int64).reshape(-1, 2)
        return self.annealer.best, runs


def set_runs(annealer: Annealer, problem: Problem, slots: Slots) -> None:
    """Tell an annealer of the nodes that slots are on."""
    machine, size = problem.machine, slots.ranks.shape[1]
    if problem.goal.name == "time":
        sites = Sites.of_time(problem.model.fabric)
    else:
        sites = Sites.of_hops(Fabric.of(machine), cell_tier(problem))
    at = sites.of_gpu[slots.gpus]
    kind = np.unique(at, axis=0, return_inverse=True)[1].reshape(-1)
    room = machine.gpus_of_node // size
    in_turn = np.argsort(slots.gpus[:, 0])
    of_kind = Rows.pairs(kind, np.arange(len(kind)), int(kind.max()) + 1)
    sizes = {one // size for one in kept_whole(problem.job) if one > size}
    annealer.set_runs(
        room=room,
        host=machine.host_of_node,
        kind=kind[in_turn],
        kind_of_slot=kind,
        node_of_slot=machine.node_of_gpu[slots.gpus[:, 0]],
        slots_of_kind=of_kind,
        sizes=np.array(sorted(sizes) or [1]),
    )
