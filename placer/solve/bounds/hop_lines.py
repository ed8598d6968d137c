"""A bound on the cut of a tier, or of two: parts of lines must add up to whole lines.

A *line* is a ring or clique of one axis, one for each vertex *across* lines. A domain
holds a *part* of some lines.

* A line of ``n`` members pays for its parts alone: a ring the weight of an edge for
  every part, nothing if it stays whole; a clique ``w/2 (n^2 - sum k^2)`` for parts of
  ``k`` members.
* Across lines a domain has a boundary of ``sum over x of floor(m_x)`` or more, ``m_x``
  being the number of its parts with ``x`` members or more, and half of it counts. With
  ``floor(m) >= first + each m`` this is at least ``first`` times its largest part and
  ``each`` times its vertices.
* A domain of the next tier has room for ``R`` vertices, and a largest part of ``sum
  k^2 / R`` members or more, ``k`` being its shares of lines.

`Contents` counts what all domains pay.

**Cheapest parts of cliques are coarse.** Sizes and rooms are multiples of the *grain*.
Unless all parts are, single vertices can go around a cycle of lines and domains, or
from a domain with room to another, either way. With ``q`` lines on it both ways
together change at the most ``-2 q (w - first)`` at the inner tier: a part that gets one
more or one less saves ``w`` in all, and the largest part of a domain grows by 2 in all,
or by 1 where one part alone changes. At the outer tier what is paid is concave. So one
way costs no more, until a part vanishes or a room is full, if ``first <= w``. What is
dearer counts as no dearer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import gcd
from typing import NamedTuple

import numpy as np

from placer.base.arrays import FloatArray, IntArray
from placer.solve.bounds.hop_floors import hull_corners
from placer.solve.problem.axes import Axis
from placer.solve.programs.contents import Contents, Costs


class Lines(NamedTuple):
    """All lines of an axis, on one tier."""

    axis: Axis
    number: int  # how many there are
    across: FloatArray  # (M + 1,): least cost of a set across lines, by its size
    besides: FloatArray  # (S + 1,): what a domain costs besides, by its vertices
    rooms: IntArray  # (D,): vertices that each domain has room for
    priced: float  # what is not of the cut in the cost of all domains
    rise: float  # what a unit of the cut costs

    @property
    def vertices(self) -> int:
        """Of all lines."""
        return self.number * self.axis.size

    def support(self) -> tuple[float, float]:
        """``first`` and ``each``, with ``floor(m) >= first + each m``.

        Those that promise the most in all where rooms hold whole lines.
        """
        cost, sets = self.across[1:], np.arange(1, len(self.across))
        corners = hull_corners(cost)
        slopes = np.diff(cost[corners]) / np.diff(sets[corners])
        each = np.append(slopes, (cost / sets).min())
        first = (cost - each[:, None] * sets).min(axis=1)
        runs = np.minimum(self.rooms, self.axis.size).sum() / self.rooms.sum()
        best = int(np.where(first >= 0, first * runs + each, -np.inf).argmax())
        return float(first[best]), float(each[best])

    def part_costs(self) -> FloatArray:
        """What a part of 0, 1 .. members costs its line; shape (n + 1,)."""
        axis, members = self.axis, np.arange(self.axis.size + 1)
        if axis.is_clique:
            return np.asarray(axis.weight / 2 * members * (axis.size - members))
        # Each part of a ring ends in two cut edges, shared with others; two are one.
        edge = axis.weight / (2 if axis.size == 2 else 1)
        return np.where((members > 0) & (members < axis.size), edge, 0.0)


def contents_of(
    lines: Sequence[Lines], outer: IntArray | None = None
) -> tuple[Contents, float]:
    """Lines in the domains of one tier, or of two; and what is added to their cost.

    ``lines``: the same on the inner tier, and on the outer one. ``outer`` ((D,)):
    domain of the outer tier that holds each of the inner one.
    """
    inner, size = lines[0], lines[0].axis.size
    homes = np.zeros_like(inner.rooms) if outer is None else outer
    found = Counter(zip(homes.tolist(), inner.rooms.tolist(), strict=True))
    supports = [one.support() for one in lines]
    grain = 1
    if inner.axis.is_clique and not any(one.besides.any() for one in lines):
        grain = gcd(size, *inner.rooms.tolist())
    rooms: dict[int, dict[int, int]] = {}
    for (home, room), count in found.items():
        if room:
            rooms.setdefault(home, {})[room // grain] = count
    constant, prices = 0.0, []
    for one, (first, each) in zip(lines, supports, strict=True):
        constant += one.rise * (each * one.vertices - one.priced)
        first = min(first, inner.axis.weight) if grain > 1 else first
        prices.append((one.rise * first, one.rise * one.part_costs()[::grain]))
    part = grain * np.arange(size // grain + 1)
    (first, paid), *others = prices
    costs = Costs(
        paid.tolist(),
        (first * part).tolist(),
        (inner.rise * inner.besides[::grain]).tolist(),
    )
    share: list[Sequence[float]] = []
    for first, paid in others:
        totals = [
            grain * sum(room * count for room, count in own.items())
            for own in rooms.values()
        ]
        costs_of = {
            total: (paid + first * part**2 / total).tolist() for total in set(totals)
        }
        share += [costs_of[total] for total in totals]
    contents = Contents(size // grain, inner.number, [*rooms.values()], costs, share)
    return contents, constant
