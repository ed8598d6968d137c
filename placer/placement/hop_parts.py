"""What domains hold of lines costs so much at the least, by prices of the parts.

A *line* is a ring or clique. A domain holds *parts* of some, an outer one *shares* that
are made up of the parts in its domains. At any prices of parts and shares

    cost >= sum over the domains of    min (what they hold costs - prices of its parts)
          + sum over outer domains of  min (shares cost + prices of parts - of shares)
          + lines x                    min (prices of what a line is made up of)

No prices are wrong: some prove less. By hand: three lines of two in two domains of
three, where a part alone costs 1. At prices of 1 and 2 a domain gains 2, by a line with
a part or without, so all cost ``3 x 2 - 2 x 2`` or more.

Where that is not enough, a whole number is told apart: there are at most so many of
some parts, or one more. The price of such a bound counts in its case.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from typing import Literal, NamedTuple

import numpy as np

from placer.base.arrays import FloatArray

# Parts in the domains, domains by their largest part, or by all that they hold; shares
# in outer domains.
What = Literal["part", "largest", "total", "share"]


class Count(NamedTuple):
    """A whole number that cases tell apart."""

    what: What
    size: int
    outer: int  # in which outer domain, the only one where these cost nothing


class Prices(NamedTuple):
    """What proves a case."""

    part: FloatArray  # (O, n + 1): of a part of 0, 1 .. n members in each outer domain
    share: FloatArray  # (n + 1,): of a share; where outer domains cost nothing not used
    counts: Sequence[float]  # of what bounds the case, the outermost first


class Cases(NamedTuple):
    """At most so many, or more."""

    counted: Count
    most: int
    fewer: Cases | Prices
    more: Cases | Prices


class Holdings(NamedTuple):
    """Lines of n members, and the domains that hold them."""

    number: int  # of lines
    rooms: Sequence[Mapping[int, int]]  # domains by room, for each outer domain
    # part, largest: (n + 1,): what a part of 0, 1 .. members costs, and the largest one
    # besides. total: what a domain costs besides by all that it holds.
    part: FloatArray
    largest: FloatArray
    total: FloatArray
    share: FloatArray  # (O, n + 1): what a share costs; (0, n + 1) where none does


class _Bounded(NamedTuple):
    counted: Count
    sign: int  # 1: no less than the number; -1: no more
    number: int


def least_held(
    held: Holdings, cases: Cases | Prices, bounded: tuple[_Bounded, ...] = ()
) -> float:
    """What all domains cost at the least, in the cheapest of some cases."""
    if isinstance(cases, Prices):
        return _least_priced(held, cases, bounded)
    most = int(cases.most)
    fewer = _Bounded(cases.counted, -1, most)
    more = _Bounded(cases.counted, 1, most + 1)
    return min(
        least_held(held, cases.fewer, (*bounded, fewer)),
        least_held(held, cases.more, (*bounded, more)),
    )


def _least_priced(
    held: Holdings, prices: Prices, bounded: tuple[_Bounded, ...]
) -> float:
    """What all domains cost at the least in one case.

    A bound from below has no price below 0, one from above none above 0.
    """
    each = np.ones((len(held.rooms), 1))
    costs = {"part": held.part * each, "largest": held.largest * each}
    costs |= {"total": held.total * each, "share": held.share.copy()}
    cost = 0.0
    for (counted, sign, number), price in zip(bounded, prices.counts, strict=True):
        worth = sign * max(0.0, sign * float(price))
        costs[counted.what][counted.outer, counted.size] -= worth
        cost += worth * number
    none = np.zeros(len(held.part))
    for outer, rooms in enumerate(held.rooms):
        own = prices.part[outer].copy()
        part, largest = costs["part"][outer] - own, costs["largest"][outer]
        least = _filled(part, largest, costs["total"][outer], max(rooms))
        cost += sum(times * float(least[room]) for room, times in rooms.items())
        if len(held.share):
            own[max(rooms) + 1 :] = inf
            share = costs["share"][outer] + _made_up(own) - prices.share
            room = sum(room * times for room, times in rooms.items())
            cost += float(_filled(share, none, np.zeros(room + 1), room)[room])
    of_line = prices.share if len(held.share) else prices.part[0]
    cost += held.number * float(_made_up(of_line)[-1])
    return cost


def _filled(
    part: FloatArray, largest: FloatArray, total: FloatArray, room: int
) -> FloatArray:
    """Least cost of what a domain with room for 0, 1 .. ``room`` may hold."""
    packed, least = np.full(room + 1, inf), np.full(room + 1, inf)
    packed[0], least[0] = 0.0, largest[0]
    for size in range(1, min(len(part) - 1, room) + 1):
        pack(packed, size, float(part[size]))
        one_more = packed[: room + 1 - size] + part[size] + largest[size]
        least[size:] = np.minimum(least[size:], one_more)
    return np.asarray(np.minimum.accumulate(least + total[: room + 1]))


def pack(packed: FloatArray, size: int, cost: float) -> None:
    """Add any number of parts of a size to what is packed already, by its total."""
    for at in range(size, len(packed), size):
        some = packed[at : at + size]
        np.minimum(some, packed[at - size : at - size + len(some)] + cost, out=some)


def _made_up(price: FloatArray) -> FloatArray:
    """Least price of parts that add up to 0, 1 .. members."""
    made = np.full(len(price), inf)
    made[0] = 0.0
    for size in range(1, len(price)):
        pack(made, size, float(price[size]))
    return made
