"""Units that no domain holds whole, in parts of several sizes along the tree.

`whole_first` cuts them into equal parts, of which domains of odd sizes hold few: of
racks with 52 and 28 GPUs a group of 64 lies in 36 and 28, and on parts of 16 it would
take four. Shapes: R ranks, D domains.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice, repeat, zip_longest
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from placer.base.arrays import IntArray
from placer.solve.construct.units.parts import (
    Part,
    Unit,
    even_parts,
    one_large_part,
    whole_units,
)
from placer.solve.construct.units.units import Floor, Units, floors, units_of
from placer.solve.tree.fill import in_tree_order, tree_order

if TYPE_CHECKING:
    from placer.solve.problem.compiled import Problem
    from placer.solve.run.incumbent import Candidate

T = TypeVar("T")

# Rings, of cp or tp, are cut at two edges wherever their parts begin.
# On step time, though, those of tp are as slow as their least part as well.
OF_LEAST_PART = {"hop-cost": ("etp", "ep"), "time": ("tp", "etp", "ep")}


def in_parts_fills(problem: Problem) -> Iterator[Candidate]:
    """(name, GPU of every rank) of every way to do that, each way in turn."""
    machine, job = problem.machine, problem.job
    for floor in floors(problem):
        for units in units_of(job, floor):
            if units.axis not in OF_LEAST_PART[problem.goal.name]:
                continue
            ways = (
                zip(repeat(told), arranged(floor, units, placed), strict=False)
                for told, placed in _ways(floor, units)
            )
            for told, node_of_rank in _in_turn(ways):
                yield f"{units.axis} groups in {told}", machine.gpus_on(node_of_rank)


def _in_turn(ways: Iterable[Iterator[T]]) -> Iterator[T]:
    """The first of each way as soon as there is one, then the others in turn."""
    begun = []
    for way in ways:
        begun.append(way)
        yield from islice(way, 1)
    for turn in zip_longest(*begun):
        yield from filter(None, turn)


def _ways(floor: Floor, units: Units) -> Iterator[tuple[str, list[Unit]]]:
    """Domains of the parts of all units, those along the tree first."""
    grain = floor.grain
    room = floor.takes(floor.capacity, grain, grain)[floor.tier]
    along = in_tree_order(floor.machine, floor.tier)
    yield from _ways_in_order(floor, units, room, along)
    by_room = along[np.argsort(-room[along], kind="stable")]
    if (room[by_room] != room[along]).any():
        for told, placed in _ways_in_order(floor, units, room, by_room):
            yield f"{told}, large domains first", placed


def _ways_in_order(
    floor: Floor, units: Units, room: IntArray, order: IntArray
) -> Iterator[tuple[str, list[Unit]]]:
    """Ways for domains in a given order."""
    size, count, grain = units.size, len(units.ranks), floor.grain
    room = room[order]
    most = int((room // size).sum())
    if most >= count or room.sum() < size * count:
        return
    outer = _stretches(floor)[order]
    # Soonest found, and on the hop cost the best by far.
    whole, left = whole_units(room, size, most)
    parted = one_large_part(left, outer, size, count - most, _far(floor))
    yield "one large part", _named([*whole, *parted], order)
    # The fewer are whole, the more even the parts of the others can be.
    for wholes in dict.fromkeys(most * quarter // 4 for quarter in (4, 3, 2, 1, 0)):
        whole, left = whole_units(room, size, wholes)
        few = count - wholes
        for told, within in (("", 0 * outer), (" of one domain", outer)):
            in_even = even_parts(left, within, size, few, grain)
            if in_even is not None:
                yield f"even parts{told}", _named([*whole, *in_even], order)


def _far(floor: Floor) -> float:
    """Hops of a pair in different outer domains, in those of a pair in one."""
    inside, near, *outer = [tier.distance for tier in floor.machine.tiers[floor.tier :]]
    return (outer[0] - inside) / (near - inside) if outer and near > inside else 1.0


def _named(placed: list[Unit], order: IntArray) -> list[Unit]:
    """Places along the tree, in that order, as the domains there."""
    return [
        [Part(int(order[p.domain]), p.size) for p in sorted(unit)] for unit in placed
    ]


def arranged(floor: Floor, units: Units, placed: list[Unit]) -> Iterator[IntArray]:
    """Node of every rank for each order of the units; shape (R,)."""
    place = np.argsort(in_tree_order(floor.machine, floor.tier))
    main = np.array([max(unit, key=lambda part: part.size).domain for unit in placed])
    stretch = _stretches(floor)[main]
    along = np.lexsort((place[main], stretch))
    least = np.array([min(part.size for part in unit) for unit in placed])
    is_split = least < least.max()
    homes = int(stretch.max()) + 1
    whole = np.bincount(stretch[~is_split], minlength=homes)
    parted = np.bincount(stretch[is_split], minlength=homes)
    sets = [[placed[i] for i in along if is_split[i] == split] for split in (0, 1)]
    parts = [
        np.array([part for unit in one for part in unit], np.int64).reshape(-1, 2)
        for one in sets
    ]
    counts = whole, parted
    return floor.arranged(units, counts, [np.repeat(*part.T) for part in parts])


def _stretches(floor: Floor) -> IntArray:
    """Domain of the next tier of each domain, numbered along the tree; shape (D,)."""
    along = tree_order(floor.machine)
    outer = floor.machine.domain_of_node[floor.tier + 1][along]
    number = np.cumsum(np.append(0, outer[1:] != outer[:-1]))
    domain = floor.machine.domain_of_node[floor.tier][along]
    stretch = np.empty(int(domain.max()) + 1, dtype=np.int64)
    stretch[domain] = number
    return stretch
