"""Grids and tori cut into boxes, so that no domain sends much.

A box is how long it is along each axis, and at how many ends it has neighbours. For a
time T it fits a domain if its units do, its uplink carries what leaves it within T, and
the domains inside it are enough for its parts; else the fewest domains are the least
sum over all ways to cut it in two (guillotine cuts; Gilmore and Gomory 1965, Oper. Res.
13). Shapes: U units, which are vertices of a graph.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf, prod
from typing import NamedTuple

import numpy as np

from placer.base.arrays import IntArray
from placer.solve.construct.traffic.grids import Axis, axes_of
from placer.solve.problem.flows import Flows

# Times between none and the longest that are tried: to a part in a thousand.
HALVINGS = 10
WORK = 400_000  # ways to cut boxes in two that are looked at
# Cuts inside each other that are looked at; a call each, and Python has few of them.
DEEPEST = 200
NOBODY = -1

# Length along each axis, and whether it has neighbours beyond its two ends.
Box = tuple[tuple[int, bool, bool], ...]
# Fewest domains, and where there are several, along which axis to cut, and where.
_Cut = tuple[float, int, int]


class Tier(NamedTuple):
    """Domains of a tier, as if all were as the smallest."""

    # room and number: units of one, and how many there are.
    room: int
    number: int
    inside: int  # domains of the tier below in one
    rate: float  # B/s: of its uplink, or of a port of the innermost
    latency: float  # s
    is_port: bool

    def seconds(self, box: Box, axes: Sequence[Axis]) -> float:
        """Time of the busiest port, or of the uplink, with a box in the domain."""
        if self.is_port:  # of the unit at a corner
            out = [(a + b) if length == 1 else (a or b) for length, a, b in box]
        else:
            out = [(a + b) * _units(box) // length for length, a, b in box]
        size = sum(n * axis.size_bytes for n, axis in zip(out, axes, strict=True))
        messages = sum(out) if self.is_port else 1
        return size / self.rate + messages * self.latency


def boxes(flows: Flows, units: int, tiers: Sequence[Tier]) -> Iterator[IntArray]:
    """Box of each unit on each tier from the innermost out, for the least time.

    Shape (tiers, U); then without the outermost tier, and so on.
    """
    axes = axes_of(flows, units)
    if not axes:
        return
    grid = np.full([axis.length for axis in axes], NOBODY)
    grid[tuple(axis.place for axis in axes)] = np.arange(units)
    work = WORK
    for kept in range(len(tiers), 0, -1):
        best, low = None, 0.0
        high = tiers[0].seconds(tuple((1, True, True) for _ in axes), axes)
        for _ in range(HALVINGS):
            cuts = _Cuts(axes, tiers[:kept], (low + high) / 2, work)
            is_enough, work = cuts.are_enough(), cuts.work_left
            if work <= 0:
                break
            if is_enough:
                best, high = cuts, cuts.seconds
            else:
                low = cuts.seconds
        if best is not None:
            yield best.rows(grid, units)
        if work <= 0:
            return


def _units(box: Box) -> int:
    return prod(length for length, *_ in box)


class _Cuts:
    """The fewest domains for boxes, for one time.

    ``work_left``: cuts to look at.
    """

    def __init__(
        self, axes: Sequence[Axis], tiers: Sequence[Tier], seconds: float, work: int
    ) -> None:
        self.seconds, self.work_left = seconds, work
        self._axes, self._tiers = axes, tiers
        self._known: list[dict[Box, _Cut]] = [{} for _ in tiers]
        self._depth = 0
        self._whole: Box = tuple((axis.length, False, False) for axis in axes)

    def are_enough(self) -> bool:
        """Whether the whole grid fits in domains of the outermost tier."""
        outermost = len(self._tiers) - 1
        return self._fewest(outermost, self._whole)[0] <= self._tiers[-1].number

    def rows(self, grid: IntArray, units: int) -> IntArray:
        """Box of each unit on each tier; ``grid`` has the unit in each place."""
        # Whoever is missing is the last.
        found = np.empty((len(self._tiers), units + 1), dtype=np.int64)
        parts = [(self._whole, grid)]
        for tier in range(len(self._tiers) - 1, -1, -1):
            parts = [
                part for box, cells in parts for part in self._parts(tier, box, cells)
            ]
            for number, (_, cells) in enumerate(parts):
                found[tier, cells] = number
        return found[:, :-1]

    def _parts(
        self, tier: int, box: Box, cells: IntArray
    ) -> Iterator[tuple[Box, IntArray]]:
        """Boxes for domains of a tier, and the units there."""
        count, axis, length = self._fewest(tier, box)
        if count == 1:
            yield box, cells
            return
        halves = np.split(cells, [length], axis)
        for half, own in zip(self._halves(box, axis, length), halves, strict=True):
            yield from self._parts(tier, half, own)

    def _fits(self, tier: int, box: Box) -> bool:
        own = self._tiers[tier]
        if _units(box) > own.room or own.seconds(box, self._axes) > self.seconds:
            return False
        return tier == 0 or self._fewest(tier - 1, box)[0] <= own.inside

    def _fewest(self, tier: int, box: Box) -> _Cut:
        known = self._known[tier]
        if box not in known:
            known[box] = (1, 0, 0) if self._fits(tier, box) else self._cut(tier, box)
        return known[box]

    def _cut(self, tier: int, box: Box) -> _Cut:
        """The best way to cut a box in two."""
        best: _Cut = inf, 0, 0
        room = self._tiers[tier].room
        least = -(-_units(box) // room)
        if self._depth == DEEPEST:
            self.work_left = 0
        self._depth += 1
        for axis, (whole, low, high) in enumerate(box):
            # From the middle outwards, so that smaller boxes are known before larger.
            # Where both ends are alike, the other half of all cuts says no more.
            lengths = range(1, whole // 2 + 1 if low == high else whole)
            for length in sorted(lengths, key=lambda n: (max(n, whole - n), n)):
                if self.work_left <= 0 or best[0] <= least:
                    break
                self.work_left -= 1
                near, far = self._halves(box, axis, length)
                fewest = -(-_units(far) // room)
                if -(-_units(near) // room) + fewest >= best[0]:
                    continue
                count = self._fewest(tier, near)[0]
                if count + fewest < best[0]:
                    count += self._fewest(tier, far)[0]
                    best = min(best, (count, axis, length))
        self._depth -= 1
        return best

    def _halves(self, box: Box, axis: int, length: int) -> tuple[Box, Box]:
        """A box cut in two; the nearer part is so long."""
        whole, low, high = box[axis]
        is_ring = self._axes[axis].is_ring and whole == self._axes[axis].length
        near = length, low or is_ring, True
        far = whole - length, True, high or is_ring
        before, after = box[:axis], box[axis + 1 :]
        return (*before, near, *after), (*before, far, *after)
