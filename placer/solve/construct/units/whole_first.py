"""Units whole where domains hold them, the few others in equal parts.

A nesting gives up a unit everywhere if it does not fit everywhere: an expert group of 8
is cut into halves on every node when some nodes have 7 GPUs. Here all domains first
take what they hold whole; only units that are left over are cut, into as few equal
parts as fit. They are the same pipeline stage of different replicas wherever that can
be, so that no replica waits for two of them.

Shapes: R ranks, N nodes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from placer.base.arrays import IntArray
from placer.solve.construct.units.units import Floor, Units, floors, units_of
from placer.solve.tree.fill import share_down, tree_order

if TYPE_CHECKING:
    from placer.solve.problem.compiled import Problem
    from placer.solve.run.incumbent import Candidate


def whole_first_fills(problem: Problem) -> Iterator[Candidate]:
    """(name, GPU of every rank) of every way to do that."""
    machine, job = problem.machine, problem.job
    for floor in floors(problem):
        for units in units_of(job, floor):
            for room in _rooms(floor, units.size, job.world_size):
                parts = units.size // room.part
                told = f"whole {units.axis} groups, others in {parts} parts"
                for node_of_rank in _filled(floor, units, room):
                    yield told, machine.gpus_on(node_of_rank)


@dataclass(frozen=True, eq=False)
class _Room:
    """How the machine holds all units.

    Attributes
    ----------
    whole, parted : ndarray, shape (N,)
        Ranks on each node of units that are whole, and of those that are not.
    part : int
        Ranks of a unit that is not whole that share a domain.
    outer : int
        Tier whose domains hold all of a unit.
    """

    whole: IntArray
    parted: IntArray
    part: int
    outer: int


def _rooms(floor: Floor, size: int, world: int) -> Iterator[_Room]:
    """Ways to hold all units of a size, when they do not all fit whole.

    A unit larger than every domain counts as whole in the fewest equal parts that can
    be. Few parts come first, then more where they lie nearer together.
    """
    least, capacity = floor.grain, floor.capacity
    most = int(floor.takes(capacity, least, least)[floor.tier].max())
    pieces = [
        piece
        for piece in range(min(size, most), least - 1, -1)
        if size % piece == 0 == piece % least
    ]
    nearest = len(floor.machine.tiers)
    for part in pieces[1:]:
        for outer in range(floor.tier + 1, nearest):
            takes = floor.takes(capacity, pieces[0], size, outer)
            rest = world - takes[-1]
            if rest <= 0:
                return
            whole = share_down(floor.machine, takes, takes[-1])
            left = floor.takes(capacity - whole, part, size, outer)
            if left[-1] >= rest:
                parted = share_down(floor.machine, left, rest)
                yield _Room(whole, parted, part, outer)
                nearest = outer
                break


def _filled(floor: Floor, units: Units, room: _Room) -> Iterator[IntArray]:
    """Node of every rank when units lie along the tree, axis by axis; shape (R,)."""
    along = tree_order(floor.machine)
    outer = floor.machine.domain_of_node[room.outer][along]
    outer = np.cumsum(np.append(0, outer[1:] != outer[:-1]))
    domain = floor.machine.domain_of_node[floor.tier][along]
    held = [ranks[along] for ranks in (room.whole, room.parted)]
    counts = [np.bincount(outer, one).astype(np.int64) // units.size for one in held]
    return floor.arranged(units, counts, [np.repeat(domain, one) for one in held])
