"""Units whole where domains hold them, inside the sets that a rule keeps together.

``require: {cp: leaf}`` says nothing about tp groups. Where all tp groups of a cp group
lie whole on their nodes, they lie in one leaf with it, as a *set*. A leaf takes whole
sets, so many that few of its units must be cut, and those are cut inside the leaf.
Shapes: R ranks, D domains that take units, L domains that take sets, U units.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from placer.placement.placement import Placement
from placer.solve.construct.in_parts import arranged, in_tree_order
from placer.solve.construct.parts import (
    Part,
    Unit,
    even_parts,
    one_large_part,
    whole_units,
)
from placer.solve.construct.units import Floor, Units, divide_evenly, floors, units_of
from placer.solve.problem.colocation import join
from placer.solve.tree.outer_sets import set_size, sets_cut_least

if TYPE_CHECKING:
    from placer.solve.problem.compiled import Problem
    from placer.solve.run.budget import Budget
    from placer.solve.run.incumbent import Candidate, Incumbent

IntArray = npt.NDArray[np.int64]


def within_sets(problem: Problem, incumbent: Incumbent, _budget: Budget) -> None:
    """Units whole where they fit, the others cut inside the domain of their set."""
    incumbent.offer_all(islice(within_set_fills(problem), problem.fills_priced))


def within_set_fills(problem: Problem) -> Iterator[Candidate]:
    """(name, GPU of every rank) of every way to do that."""
    for floor in floors(problem):
        for units in units_of(problem.job, floor):
            for tier in range(floor.tier + 1, len(problem.machine.tiers) - 1):
                label = join(floor.colocation.label[tier], units.ranks)
                size = set_size(label, units.size)
                if size is None:
                    continue
                for told, placed in _ways(floor, units, tier, size):
                    name = f"{units.axis} groups in {told}, sets of {size} whole"
                    for _, node_of_rank in arranged(floor, units, placed, name):
                        home = problem.machine.domain_of_node[tier][node_of_rank]
                        if not _is_alike(home, label):
                            continue
                        placement = Placement.on_nodes(problem.machine, node_of_rank)
                        yield name, placement.gpu_of_rank


def _is_alike(value: IntArray, label: IntArray) -> bool:
    """Whether all ranks of each set have one value."""
    of_set = np.empty(int(label.max()) + 1, dtype=np.int64)
    of_set[label] = value
    return bool((of_set[label] == value).all())


def _ways(
    floor: Floor, units: Units, tier: int, size: int
) -> Iterator[tuple[str, list[Unit]]]:
    """Domains of the parts of all units, few of them cut; none if none need be."""
    grain, along = floor.grain, in_tree_order(floor)
    room = floor.takes(floor.capacity, grain, grain)[floor.tier][along]
    first = np.unique(floor.machine.domain_of_node[floor.tier], return_index=True)[1]
    outer = floor.machine.domain_of_node[tier][first][along]
    held, whole_here = (
        np.bincount(outer, one).astype(np.int64) for one in (room, room // units.size)
    )
    count = units.ranks.size // size
    sets = sets_cut_least(whole_here, held // size, size // units.size, count)
    is_whole = np.all(sets * (size // units.size) <= whole_here)
    if sets.sum() < count or is_whole or divide_evenly(room, units.size):
        return
    for told, is_even in (("even parts", True), ("one large part", False)):
        placed: list[Unit] = []
        for domain, count in enumerate(sets.tolist()):
            inside = np.flatnonzero(outer == domain)
            wanted = count * size // units.size
            whole, left = whole_units(room[inside], units.size, wanted)
            few = wanted - len(whole)
            parted: list[Unit] | None = []
            if few:
                alike = 0 * inside
                parted = (
                    even_parts(left, alike, units.size, few, grain)
                    if is_even
                    else one_large_part(left, alike, units.size, few)
                )
            if parted is None:
                return
            places = along[inside]
            placed += [
                [Part(int(places[part.domain]), part.size) for part in sorted(unit)]
                for unit in (*whole, *parted)
            ]
        yield told, placed
