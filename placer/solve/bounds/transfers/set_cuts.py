"""Pieces of a closed set by how many ranks of each component they hold.

Components differ in where their ranks are, and ranks of one side of a component hardly
do, so pieces are told apart by counts: of each component, of those with needs and of
their partners. The least *charge* of every count follows from the runs of ranks that
it takes. A node of the piece's own is charged as a whole. One that it shares with the
set before or after is charged to both,

    share(j)  =  (1/2 + j / g) / 2     of a node of g ranks, with j of them in the piece

and since ``share(j) + share(i) <= 1`` where ``j + i <= g``, all pieces of a domain are
charged no more than its nodes. Charges count in parts of a node, ``4 g`` to a node. By
hand: on nodes of four, ranks 0 to 4 of a stretch of eight are a node and a share of
3/8: charge 22. Alone they would take two nodes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from placer.arrays import IntArray
from placer.solve.problem.colocation import join

if TYPE_CHECKING:
    from placer.solve.bounds.transfers.closed_sets import ClosedSets
    from placer.solve.bounds.transfers.rack_ranks import Need
    from placer.solve.problem.params import Params

Counts = tuple[int, ...]

NEVER = 1 << 40


class Cut(NamedTuple):
    """The cut of the least price, and the charges of its pieces."""

    price: int
    charges: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class SetCuts:
    """All cuts of a set: counts, the least charge of each, and what pieces leave of it.

    Attributes
    ----------
    charge : ndarray, shape (N,)
        Of each count, that of nothing first and that of the whole set last.
    before, piece, after : ndarray, shape (T,)
        Counts that are left, of a piece of them, and without it; the first ascend.
    """

    charge: IntArray
    before: IntArray
    piece: IntArray
    after: IntArray

    @classmethod
    def of(cls, sets: ClosedSets, params: Params) -> SetCuts | None:
        """The cuts; None where a rank has several sides, or counts are too many."""
        places = len(sets.follows)
        sides = [of for need in sets.needs for of in need[:2]]
        taken = np.concatenate(sides)
        options = [_options(need) for need in sets.needs]
        loose = np.setdiff1d(np.arange(places), taken)
        if len(loose):
            sides.append(loose)
            options.append([(ranks,) for ranks in range(len(loose) + 1)])
        most = params.set_cuts
        if len(np.unique(taken)) < len(taken) or not all(options):
            return None
        if max(map(len, options)) ** 2 > most:
            return None
        parted = [_Parted.of(own) for own in options]
        tables = _tables(sets, sides, params.set_work)
        if tables is None or prod(len(one.steps) for one in parted) > most:
            return None
        counts, steps = [np.zeros((1, 0), dtype=np.int64)], np.zeros((1, 3), np.int64)
        for one in parted:
            size = len(one.counts)
            steps = (steps[:, None] * size + one.steps).reshape(-1, 3)
            grown = np.repeat(counts[-1], size, axis=0)
            repeated = np.tile(one.counts, (len(counts[-1]), 1))
            counts.append(np.hstack([grown, repeated]))
        charge = np.zeros(len(counts[-1]), dtype=np.int64)
        for own, table in tables:
            charge += table[tuple(counts[-1][:, own].T)]
        steps = steps[(steps[:, 1] > 0) & (charge[steps[:, 1]] < NEVER)]
        before, piece, after = steps[np.argsort(steps[:, 0], kind="stable")].T.copy()
        return cls(charge, before, piece, after)

    def cheapest(self, price: IntArray) -> Cut:
        """The cut of the least price; shape of ``price``: the largest charge and 1."""
        paid = np.append(price, NEVER)[np.minimum(self.charge, len(price))]
        of_piece = paid[self.piece]
        first = np.flatnonzero(np.diff(self.before, prepend=-1))
        least = np.full(len(self.charge), NEVER)
        least[0], is_new = 0, True
        while is_new:
            step = np.minimum.reduceat(of_piece + least[self.after], first)
            step = np.minimum(step, least[self.before[first]])
            is_new = bool((step < least[self.before[first]]).any())
            least[self.before[first]] = step
        charges, left = [], len(least) - 1
        while left and least[-1] < NEVER:
            begin, end = np.searchsorted(self.before, [left, left + 1])
            ways = of_piece[begin:end] + least[self.after[begin:end]]
            way = begin + int(ways.argmin())
            charges.append(int(self.charge[self.piece[way]]))
            left = int(self.after[way])
        return Cut(int(least[-1]), tuple(sorted(charges)))


class _Parted(NamedTuple):
    """What may be left of a component.

    Attributes
    ----------
    counts : ndarray, shape (N, sides)
        Ascending: nothing first, all last.
    steps : ndarray, shape (T, 3)
        Of what is left, a piece and what is left without it.
    """

    counts: IntArray
    steps: IntArray

    @classmethod
    def of(cls, options: Sequence[Counts]) -> _Parted:
        """All that pieces out of ``options`` leave, if it can be divided itself."""
        whole = max(options)
        nothing = (0,) * len(whole)
        left, ahead = {whole}, [whole]
        while ahead:
            for rest in _rests(ahead.pop(), options):
                if rest not in left:
                    left.add(rest)
                    ahead.append(rest)
        # From nothing on: what a piece makes of something that can be divided.
        divided, grown = {nothing}, {nothing}
        while grown:
            grown = {
                one
                for one in left - divided
                if any(rest in grown for rest in _rests(one, options))
            }
            divided |= grown
        number = {one: place for place, one in enumerate(sorted(divided))}
        steps = [
            (number[one], number[piece], number[rest])
            for one in number
            for piece in options
            if (rest := _less(one, piece)) in number and piece in number
        ]
        return cls(np.array(list(number)), np.array(steps))


def _less(one: Counts, other: Counts) -> Counts:
    return tuple(a - b for a, b in zip(one, other, strict=True))


def _rests(one: Counts, options: Sequence[Counts]) -> list[Counts]:
    """What any of the options leaves of counts."""
    rests = (_less(one, piece) for piece in options)
    return [rest for rest in rests if min(rest) >= 0]


def _options(need: Need) -> list[Counts]:
    """Ranks and partners that a domain may hold beside others with the same need."""
    ranks, partners, needs, back = need.sizes
    amid = product(
        range(back or 1, ranks - (back or 1) + 1), range(needs, partners - needs + 1)
    )
    if back:
        return [(0, 0), *amid, (ranks, partners)]
    none = [(0, others) for others in range(partners - needs + 1)]
    return [*none, *amid, *((ranks, n) for n in range(needs, partners + 1))]


def _tables(
    sets: ClosedSets, sides: Sequence[IntArray], work: int
) -> list[tuple[list[int], IntArray]] | None:
    """The least charge by counts of some sides; stretches with ranks of these add up.

    None where more than ``work`` entries are looked at.
    """
    side_of_place = np.empty(len(sets.follows), dtype=np.int64)
    for number, places in enumerate(sides):
        side_of_place[places] = number
    along = [side_of_place[places] for places in sets.stretches]
    joined = [np.stack([np.repeat(one[0], len(one)), one], axis=1) for one in along]
    label = join(np.arange(len(sides)), np.concatenate(joined))
    by_label: defaultdict[int, list[IntArray]] = defaultdict(list)
    for one in along:
        by_label[int(label[one[0]])].append(one)
    found = []
    for group, stretches in by_label.items():
        own = np.flatnonzero(label == group).tolist()
        shape = [len(sides[side]) + 1 for side in own]
        work -= prod(shape) * sum(len(stretch) ** 2 for stretch in stretches)
        if work < 0:
            return None
        table = np.full(shape, NEVER)
        table[(0,) * len(own)] = 0
        for stretch in stretches:
            table = _along(table, np.searchsorted(own, stretch), sets.block)
        found.append((own, table))
    return found


def _along(table: IntArray, sides: IntArray, block: int) -> IntArray:
    """The table with one stretch more, whose ranks are of such sides.

    Runs are taken one after the other, with a rank between them at least.
    """
    length = len(sides)
    not_held, best = [table], [table]
    for end in range(1, length + 1):
        not_held.append(best[-1])
        found, shift = best[-1], [0] * table.ndim
        for begin in range(end - 1, -1, -1):
            shift[sides[begin]] += 1
            charge = charge_of(end - begin, (begin == 0) + (end == length), block)
            found = np.minimum(found, _shifted(not_held[begin], shift) + charge)
        best.append(found)
    return best[-1]


def _shifted(table: IntArray, shift: Sequence[int]) -> IntArray:
    """Counts that are larger by so many."""
    moved = np.full(table.shape, NEVER)
    fits = [max(size - by, 0) for size, by in zip(table.shape, shift, strict=True)]
    to = tuple(slice(by, by + size) for by, size in zip(shift, fits, strict=True))
    moved[to] = table[tuple(map(slice, fits))]
    return moved


def node_charge(block: int) -> int:
    """Charge of a node of so many ranks."""
    return 4 * block


def charge_of(length: int, ends: int, block: int) -> int:
    """Charge of a run that reaches so many ends of its stretch.

    There it may share a node with ranks of another set.
    """
    shared = range(min(length, block - 1) + 1)
    return min(
        sum(block + 2 * ranks for ranks in of if ranks)
        + node_charge(block) * -(-(length - sum(of)) // block)
        for of in product(shared, repeat=ends)
        if sum(of) <= length
    )
