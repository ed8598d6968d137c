"""Simple starts of walks: cells filled one after the other.

Walks begin with these, and with placements that are known, and so end elsewhere. They
are legal or not, good or bad: all are priced, and the best kept.

Shapes: U units, S slots.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, zip_longest
from math import prod
from operator import itemgetter
from typing import TYPE_CHECKING

import numpy as np

from placer.base.arrays import IntArray, row_of_number
from placer.solve.annealing.in_full import InFull
from placer.solve.annealing.sets import shards_of
from placer.solve.annealing.walks import Walks
from placer.solve.run.budget import Budget

if TYPE_CHECKING:
    from placer.solve.annealing.units import Units

Part = tuple[int, int, int]  # group, cell, units

STARTS = 2  # of placements that are known, and as many simple ones
# What parts are worth, one against the other, when a cell is filled.
ENDS_GROUP, OPENS_WHOLE, FILLS_CELL = 2.0, 1.8, 1.5
MOST_WIDTHS, MOST_RUNS = 40, 200


def best_starts(
    walks: Walks | InFull,
    known: Iterable[IntArray],
    budget: Budget,
    *,
    may_break: bool = False,
) -> list[IntArray]:
    """Slots to begin with: in turn of placements (R,) that are known and simple ones.

    Of either those that break least of the rules, the cheapest of them, come first:
    walks from a bad start end elsewhere. ``may_break``: whether they may break any.
    """
    units, sorts = walks.units, []
    for some in (map(units.slot_of_unit, known), units.simple_starts()):
        priced = list[tuple[int, float, int, IntArray]]()
        for slots in some:
            if budget.is_over():
                break
            if may_break or units.problem.allows(units.gpu_of_rank(slots)):
                cost = walks.load(slots)
                priced.append((walks.broken, cost, len(priced), slots))
        if priced:
            sorts.append(sorted(priced)[:STARTS])
    pairs = zip_longest(*sorted(sorts, key=lambda some: some[0][:2]))
    return [start[-1] for start in chain.from_iterable(pairs) if start is not None]


def cut_starts(units: Units) -> Iterator[IntArray]:
    """Slot of each unit: expert or shard groups cut into parts that are not small.

    The least part sets how many NICs a group's slowest domain has, so the largest least
    part that can be had is looked for first.
    """
    ranks, job = units.slots.ranks, units.problem.job
    axes = job.parallelism
    rows = axes.ranks_of_group["ep"] if axes.ep > 1 else shards_of(job)
    if rows is None:
        return
    group = row_of_number(rows)
    of_unit = np.unique(group[ranks[:, 0]], return_inverse=True)[1].reshape(-1)
    count = np.bincount(of_unit)
    if len(np.unique(count)) > 1 or count[0] == 1:
        return
    room = _rooms(units)
    size, groups = int(count[0]), len(count)
    every, roomy = np.arange(len(room)), np.argsort(-room, kind="stable")
    found = list[IntArray]()
    for least in range(size // 2, 0, -1):
        for order in (every[::-1], roomy, every):
            parts = _fill(room[order], groups, size, least, len(ranks))
            if parts is not None:
                placed = [(g, int(order[c]), n) for g, c, n in parts]
                found.append(_slots(units, placed, of_unit))
        if found:
            yield from found
            return


def _fill(
    room: IntArray,
    groups: int,
    size: int,
    least: int,
    units: int,
) -> list[Part] | None:
    """Parts of groups that fill cells in turn, none below the least, if any do."""
    spare = int(room.sum()) - units
    left: dict[int, int] = {}
    opened, parts = 0, []
    for cell, free in enumerate(room.tolist()):
        here: set[int] = set()
        while free > 0:
            options = [
                option
                for group, open_units in left.items()
                if group not in here
                for option in _parts_of(group, open_units, free, size, least)
            ]
            if opened < groups:
                options += _first_parts(opened, free, size, least)
            if not options:
                break
            _, group, units_here = max(options, key=itemgetter(0))
            if group == opened:
                opened += 1
                left[group] = size
            here.add(group)
            left[group] -= units_here
            parts.append((group, cell, units_here))
            free -= units_here
            if not left[group]:
                del left[group]
        spare -= free
        if opened == groups and not left:
            return parts
        if spare < 0:
            return None
    return None


def _parts_of(
    group: int, left: int, free: int, size: int, least: int
) -> Iterator[tuple[float, int, int]]:
    """(worth, group, units) of parts of an open group that a cell may take."""
    if left <= free:
        fits = left == free
        rests = fits or free - left >= least
        yield (ENDS_GROUP + fits if rests else 0.5) + left / size, group, left
    if left - free >= least and free >= least:
        yield FILLS_CELL, group, free


def _first_parts(
    group: int, free: int, size: int, least: int
) -> Iterator[tuple[float, int, int]]:
    """Worth, group and size of first parts of a group, in a cell with so much free."""
    if free >= size:
        rest = free - size
        yield (OPENS_WHOLE if rest >= least or rest == 0 else 0.9), group, size
    most = free if free <= size - least else size - least
    for worth, part in (
        (1.6 if most == free else 1.0, most),
        (1.2, free - least),
        (1.3, free // 2),
    ):
        if least <= part <= size - least and part <= free:
            yield worth, group, part


def _rooms(units: Units) -> IntArray:
    """Slots of each cell that has any."""
    return np.array([len(slots) for slots in units.slots_of_cell])


def _slots(units: Units, parts: list[Part], of_unit: IntArray) -> IntArray:
    """Units on slots as parts say, groups of one block and stage side by side."""
    slots = [own.tolist() for own in units.slots_of_cell]
    by_group = np.argsort(of_unit, kind="stable").reshape(int(of_unit.max()) + 1, -1)
    done = np.zeros(len(by_group), dtype=np.int64)
    found = np.full(len(of_unit), -1)
    for group, cell, many in parts:
        own = by_group[group, done[group] : done[group] + many]
        done[group] += many
        for unit in own.tolist():
            found[unit] = slots[cell].pop(0)
    return found


def column_starts(units: Units) -> Iterator[IntArray]:
    """Slot of each unit: the same stage of some replicas side by side."""
    axes = units.problem.job.parallelism
    ranks, room = units.slots.ranks, _rooms(units)
    if axes.pp == 1:
        return
    first = ranks[:, 0]
    replica, stage, lane = (
        axes.coordinates[axis][first] for axis in ("dp", "pp", "cp")
    )
    orders = (
        np.arange(len(room)),
        np.argsort(-room, kind="stable"),
        np.argsort(room, kind="stable"),
    )
    by_cell = units.slots_of_cell
    filled = [np.concatenate([by_cell[c] for c in order]) for order in orders]
    widths = list(range(1, axes.dp + 1))
    if axes.dp > MOST_WIDTHS:
        widths = sorted({max(1, axes.dp // k) for k in range(1, MOST_WIDTHS)})
    sequences = [
        np.lexsort((lane, replica % width, stage, replica // width)) for width in widths
    ]
    for stages in (1, 2, 3):  # the first so many of all replicas, then the others
        rest = np.where(stage < stages, 0, 1)
        sequences.append(np.lexsort((lane, stage, replica, rest)))
    for sequence in sequences:
        for slots in filled:
            found = np.empty(len(ranks), dtype=np.int64)
            found[sequence] = slots[: len(ranks)]
            yield found


def run_starts(units: Units) -> Iterator[IntArray]:
    """Slot of each unit: a cell holds copies of one run of stages, and nothing else.

    So all pipelines are cut alike, and gradient groups share cells. Behind thin uplinks
    few copies of short runs are better than full cells.
    """
    axes = units.problem.job.parallelism
    stage = axes.coordinates["pp"][units.slots.ranks[:, 0]]
    if axes.pp == 1 or (np.bincount(stage) != len(stage) // axes.pp).any():
        return
    by_stage = np.argsort(stage, kind="stable").reshape(axes.pp, -1)
    cells = units.slots_of_cell
    roomy = sorted(cells, key=len, reverse=True)
    ways = axes.pp, axes.pp, len(roomy[0]), 2
    draw, count = np.random.default_rng(units.problem.seed), prod(ways)
    tried = draw.choice(count, min(count, MOST_RUNS), replace=False)
    for number, turn, copies, order in zip(*np.unravel_index(tried, ways), strict=True):
        runs = np.array_split(np.roll(by_stage, turn, axis=0), number + 1)
        found = _in_runs(runs, int(copies) + 1, roomy if order else cells)
        if found is not None:
            yield found


def _in_runs(
    runs: list[IntArray], copies: int, cells: list[IntArray]
) -> IntArray | None:
    """The slots when cells in turn hold copies of a run, at most so many.

    As evenly as can be: of fourteen, at most four a cell, they hold 4, 4, 3 and 3.
    """
    found = np.empty(sum(run.size for run in runs), dtype=np.int64)
    turn = iter(cells)
    for run in runs:
        done, most = 0, copies * len(runs[0]) // len(run)
        while done < run.shape[1]:
            slots = next(turn, None)
            if slots is None:
                return None
            left, fits = run.shape[1] - done, min(most, len(slots) // len(run))
            share = -(-left // -(-left // fits)) if fits else 0
            units = run[:, done : done + share].ravel()
            found[units] = slots[: len(units)]
            done += share
    return found
