"""What the parts of expert groups send, and how long their all-to-alls take.

As the cost model has it, for all parts of all units at once. Shapes: D domains, H outer
domains, Q parts of a unit.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placer.arrays import FloatArray, IntArray


class Links(NamedTuple):
    """What the parts of a unit send, and over what.

    Attributes
    ----------
    size : int
        Pieces of a unit.
    members : int
        That a piece has of each of its groups.
    seconds, latency : tuple of float, s
        Of a message inside a domain, between domains of one outer domain, and between
        outer domains.
    room : ndarray, shape (D,), pieces
    outer : ndarray, shape (D,)
        Outer domain of each, from 0.
    carried : ndarray, shape (D,)
        Pairs a second that the uplink of each domain carries.
    outer_carried : ndarray, shape (H,)
        The same for outer domains.
    """

    size: int
    members: int
    seconds: tuple[float, float, float]
    latency: tuple[float, float, float]
    room: IntArray
    outer: IntArray
    carried: FloatArray
    outer_carried: FloatArray

    def leaving(self, pieces: IntArray) -> IntArray:
        """Pairs of a unit with one piece among so many, the other not."""
        return pieces * (self.size - pieces)


class Rows(NamedTuple):
    """Units in parts, an entry a part; places without one hold 0 pieces.

    Attributes
    ----------
    place, pieces, beside : ndarray, shape (..., Q)
        Domain of each part, its pieces, and those in its outer domain.
    own, latency : ndarray, shape (..., Q), s
        Time of its members' own ports, and latency.
    """

    place: IntArray
    pieces: IntArray
    beside: IntArray
    own: FloatArray
    latency: FloatArray

    @classmethod
    def of(cls, links: Links, place: IntArray, pieces: IntArray) -> Rows:
        """Rows of parts at places, of which each is named once."""
        outer = links.outer[place]
        alike = outer[..., :, None] == outer[..., None, :]
        beside = (alike * pieces[..., None, :]).sum(axis=-1)
        here = pieces * links.members - 1
        near = (beside - pieces) * links.members
        far = (links.size - beside) * links.members
        inside, close, away = links.seconds
        own = np.maximum(here * inside, near * close + far * away)
        latency = np.stack((here, near, far), axis=-1) @ np.array(links.latency)
        is_part = pieces > 0
        return cls(
            place, pieces, beside, np.where(is_part, own, 0.0), latency * is_part
        )

    def some(self, chosen: IntArray) -> Rows:
        """Some of the units."""
        place, pieces, beside = (row[chosen] for row in self[:3])
        return Rows(place, pieces, beside, self.own[chosen], self.latency[chosen])

    def seconds(
        self, links: Links, busy: FloatArray, outer_busy: FloatArray
    ) -> FloatArray:
        """Time of each unit, where uplinks at the places of parts are so busy."""
        leaves = (self.pieces > 0) & (self.pieces < links.size)
        far = (self.pieces > 0) & (self.beside < links.size)
        time = np.maximum(self.own, busy * leaves)
        time = np.maximum(time, outer_busy * far) + self.latency
        found: FloatArray = time.max(axis=-1)
        return found
