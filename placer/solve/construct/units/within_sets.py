"""Units whole where domains hold them, inside the sets that a rule keeps together.

Where all tp groups of a cp group lie whole on their nodes, they lie in one leaf with
it, as a *block*. A leaf takes whole blocks, so many that few of its units must be cut,
and those are cut inside the leaf. Other blocks lie across leaves in *slices*: one rank
of each unit of the block, which the rule keeps together. See docs/method.md, "Groups
across sets of a rule".

Shapes: D domains that take units, L domains that take blocks, U units, B blocks of c
units of n ranks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from placer.arrays import IntArray, by_appearance
from placer.solve.construct.units.parts import (
    Unit,
    even_parts,
    one_large_part,
    whole_units,
)
from placer.solve.construct.units.units import (
    Floor,
    Units,
    divide_evenly,
    floors,
    units_of,
)
from placer.solve.problem.colocation import join
from placer.solve.tree.fill import in_tree_order
from placer.solve.tree.outer_sets import set_size, sets_cut_least, slices_shared

if TYPE_CHECKING:
    from placer.solve.problem.compiled import Problem
    from placer.solve.run.budget import Budget
    from placer.solve.run.incumbent import Candidate, Incumbent


class Laid(NamedTuple):
    """The blocks of an outer domain.

    Attributes
    ----------
    whole, parted : list of ndarray, each shape (c, n)
        Domain of each rank, of blocks whose units are whole and of others.
    """

    whole: list[IntArray]
    parted: list[IntArray]


@dataclass(frozen=True, eq=False)
class Blocks:
    """Blocks of units, and the outer tier that a rule keeps them in.

    Attributes
    ----------
    floor : Floor
        Whose domains take units.
    units : Units
        Whole blocks; each has its units one after the other.
    shape : tuple of int
        Units of a block, and ranks of a unit.
    are_sliced : bool
        Whether a block may lie across outer domains, slice by slice.
    """

    floor: Floor
    tier: int
    units: Units
    shape: tuple[int, int]
    are_sliced: bool

    @classmethod
    def of(cls, floor: Floor, units: Units, tier: int) -> Blocks | None:
        """The blocks of some units; None where they are no larger, or differ."""
        kept = floor.colocation.label[tier]
        block = np.unique(join(kept, units.ranks), return_inverse=True)[1]
        size = set_size(block, units.size)
        if size is None or size == units.size:
            return None
        of_unit = block[units.ranks[:, 0]]
        order = np.argsort(of_unit, kind="stable").reshape(-1, size // units.size)
        ranks = units.ranks[order]
        # The same slice has the same place in all units.
        ranks = np.take_along_axis(ranks, np.argsort(kept[ranks], kind="stable"), 2)
        slices = kept[ranks].transpose(0, 2, 1).reshape(-1, order.shape[1])
        first = slices[:, 0]
        is_sliced = (first == slices.T).all() and len(np.unique(first)) == len(first)
        along = {axis: row[order[:, 0]] for axis, row in units.coordinate.items()}
        whole = Units.of(units.axis, ranks.reshape(len(order), -1), along)
        shape = order.shape[1], units.size
        return cls(floor, tier, whole, shape, bool(is_sliced) and floor.grain == 1)

    def ways(self) -> Iterator[tuple[str, list[Laid]]]:
        """Blocks of each outer domain, few units cut; none if none need be."""
        (each, size), grain = self.shape, self.floor.grain
        along, outer = self._domains()
        takes = self.floor.takes(self.floor.capacity, grain, grain)
        room = takes[self.floor.tier][along]
        total, held = (
            np.bincount(outer, one).astype(np.int64) for one in (room, room // size)
        )
        most, count = total // self.units.size, len(self.units.ranks)
        sets = sets_cut_least(held, most, each, count)
        across = self._across(total // each - sets * size, count - int(sets.sum()))
        is_whole = np.all(sets * each <= held) or divide_evenly(room, size)
        if across is None or (is_whole and not across):
            return
        for told, is_even in (("even parts", True), ("one large part", False)):
            found = []
            left = room.copy()
            for home, wanted in enumerate((sets * each).tolist()):
                inside = np.flatnonzero(outer == home)
                laid = _laid(room[inside], wanted, size, grain, is_even=is_even)
                if laid is None:
                    return
                rows = np.array([_of_ranks(unit, inside) for unit in laid], np.int64)
                left -= np.bincount(rows.ravel(), minlength=len(left))
                found.append(self._in_blocks(along[rows]))
            for block in across:
                domains = along[self._sliced(block, outer, left)]
                found[block[0][0]].parted.append(domains)
            yield told, found

    def _domains(self) -> tuple[IntArray, IntArray]:
        """Domains along the tree, and the outer domain of each; both shape (D,)."""
        along = in_tree_order(self.floor.machine, self.floor.tier)
        domain_of_node = self.floor.machine.domain_of_node
        first = np.unique(domain_of_node[self.floor.tier], return_index=True)[1]
        outer = domain_of_node[self.tier][first][along]
        return along, by_appearance(outer)[1]

    def _across(
        self, spare: IntArray, blocks: int
    ) -> list[list[tuple[int, int]]] | None:
        """Outer domains of blocks with slices in each; None where these do not fit."""
        if not blocks:
            return []
        return slices_shared(spare, self.shape[1], blocks) if self.are_sliced else None

    def _in_blocks(self, domain_of_rank: IntArray) -> Laid:
        """Units of an outer domain as blocks, those that are cut together."""
        blocks = domain_of_rank.reshape(-1, *self.shape)
        are_whole = (blocks == blocks[:, :, :1]).all(axis=(1, 2))
        return Laid(list(blocks[are_whole]), list(blocks[~are_whole]))

    def _sliced(
        self, block: list[tuple[int, int]], outer: IntArray, left: IntArray
    ) -> IntArray:
        """Place along the tree of each rank of a block across outer domains.

        It is taken off what is left of their room.
        """
        columns = []
        for home, slices in block:
            inside = np.flatnonzero(outer == home)
            rows = []
            for _ in range(self.shape[0]):
                row: list[int] = []
                while len(row) < slices:
                    rest, room = slices - len(row), left[inside]
                    # Where it fits best, or else as much as there is together.
                    best = np.where(room >= rest, -room, room - 2 * room.sum())
                    domain = int(inside[best.argmax()])
                    taken = min(rest, int(left[domain]))
                    left[domain] -= taken
                    row += [domain] * taken
                rows.append(row)
            columns.append(np.array(rows))
        return np.concatenate(columns, axis=1)

    def arranged(self, laid: list[Laid]) -> Iterator[IntArray]:
        """Node of every rank for each order of the blocks; shape (R,)."""
        parts = [[one for home in laid for one in home[split]] for split in (0, 1)]
        counts = [np.array([len(home[split]) for home in laid]) for split in (0, 1)]
        return self.floor.arranged(self.units, counts, parts)


def within_sets(problem: Problem, incumbent: Incumbent, _budget: Budget) -> None:
    """Units whole where they fit, the others cut inside the domain of their block."""
    incumbent.offer_all(islice(within_set_fills(problem), problem.fills_priced))


def within_set_fills(problem: Problem) -> Iterator[Candidate]:
    """(name, GPU of every rank) of every way to do that."""
    for floor in floors(problem):
        for units in units_of(problem.job, floor):
            for tier in range(floor.tier + 1, len(problem.machine.tiers) - 1):
                blocks = Blocks.of(floor, units, tier)
                if blocks is None:
                    continue
                for told, laid in blocks.ways():
                    size = blocks.units.size
                    name = f"{units.axis} groups in {told}, sets of {size} whole"
                    for node_of_rank in blocks.arranged(laid):
                        yield name, problem.machine.gpus_on(node_of_rank)


def _laid(
    room: IntArray, wanted: int, size: int, grain: int, *, is_even: bool
) -> list[Unit] | None:
    """Units on the domains of one outer domain, those that are cut first."""
    whole, left = whole_units(room, size, wanted)
    few, alike = wanted - len(whole), 0 * room
    parted: list[Unit] | None = []
    if few:
        parted = (
            even_parts(left, alike, size, few, grain)
            if is_even
            else one_large_part(left, alike, size, few)
        )
    return None if parted is None else [*parted, *whole]


def _of_ranks(unit: Unit, domains: IntArray) -> IntArray:
    """Domain of each rank of a unit."""
    parts = sorted(unit)
    places = [part.domain for part in parts]
    return np.asarray(np.repeat(domains[places], [part.size for part in parts]))
