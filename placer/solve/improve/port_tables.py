"""What the loops of the search on the busiest ports know, as plain arrays and numbers.

Shapes: U units, F flows, L loads, D domains, Q tiers of uplinks.
"""

from __future__ import annotations

from typing import NamedTuple

from placer.arrays import FloatArray, IntArray

# Nothing is claimed by a change of this number.
UNCLAIMED = 1 << 40
SWAP, MOVE, EXCHANGE = range(3)


class Shares(NamedTuple):
    """Shares of the changes.

    Attributes
    ----------
    busy, far, into_room : float
        That begin with a busy unit, that go anywhere, and that take free room where
        there is some.
    loose : float
        Of the clusters, that go for those who are tied to their domain least.
    """

    busy: float = 0.5
    far: float = 0.1
    into_room: float = 0.5
    loose: float = 0.5


SHARES = Shares()


class Tables(NamedTuple):
    """Flows, machine and uplinks, as in `PortLoads`; uplinks by tier.

    Arrays are copies, row by row: loops are compiled for no others.
    """

    ends: IntArray
    port: IntArray
    size_bytes: FloatArray
    runs: FloatArray
    together: IntArray
    flows: IntArray
    first: IntArray
    degree: IntArray
    ports: int
    above: IntArray
    tier: int
    scale_up_tier: int
    bandwidth: FloatArray
    latency: FloatArray
    factor: FloatArray
    uplink_tier: IntArray
    uplink_first: IntArray
    uplink_children: IntArray
    uplink_child: IntArray
    uplink_pace: FloatArray


class Pricing(NamedTuple):
    """How busy loads are, and what that costs.

    Attributes
    ----------
    busy : ndarray, shape (L,), s
    kind : ndarray, shape (L,)
    target, scale, share : ndarray, shape (kinds,)
        Seconds up to which a load costs nothing, those of the best, and the share of
        all kinds.
    doublings : int
        Times that the excess is squared.
    """

    busy: FloatArray
    kind: IntArray
    target: FloatArray
    scale: FloatArray
    share: FloatArray
    doublings: int


class Seats(NamedTuple):
    """Who is where, and how busy.

    Attributes
    ----------
    home : ndarray, shape (U,)
        Domain of each unit; it and ``free`` alone follow the changes that are made.
    inside : ndarray, shape (U,)
        Units of one domain after the other, those that are tied to it least first.
    held, first : ndarray, shape (D,)
        How many each has there, and where they begin.
    free : ndarray, shape (D,)
        Room that is left, now.
    enclosure : ndarray, shape (D,)
        Units stay between domains with the same number here.
    busy_until : ndarray, shape (U,)
        Share of all that is busy which the units up to each have.
    """

    home: IntArray
    inside: IntArray
    held: IntArray
    first: IntArray
    free: IntArray
    enclosure: IntArray
    busy_until: FloatArray
