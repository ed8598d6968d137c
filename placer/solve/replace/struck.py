"""Domains that lost ranks: the parts in each, and how many ranks have no room left."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from placer.solve.replace.ground import Ground

IntArray = npt.NDArray[np.int64]


class Struck(NamedTuple):
    """One domain; a part is a set of ranks that the requirements tie together there.

    Attributes
    ----------
    ranks : ndarray, shape (any,)
        All that were in it, ascending.
    part : ndarray, shape (any,)
        The part of each of them.
    size, kept : ndarray, shape (parts,), ranks
        All of each part, and those that have a seat.
    excess : int
        Ranks for which there is no room; may be negative.
    """

    ranks: IntArray
    part: IntArray
    size: IntArray
    kept: IntArray
    excess: int


def struck_domains(ground: Ground, tier: int) -> Iterator[Struck]:
    """The domains of a tier that lost ranks."""
    home, is_lost = ground.before.domain[tier], ground.before.is_lost
    room = ground.room_of_domains(tier)
    for domain in np.unique(home[is_lost]).tolist():
        ranks = np.flatnonzero(home == domain)
        part = np.unique(ground.parts[tier][ranks], return_inverse=True)[1]
        held = int(room[domain]) if domain < len(room) else 0
        yield Struck(
            ranks,
            part,
            np.bincount(part),
            np.bincount(part, ~is_lost[ranks]).astype(np.int64),
            len(ranks) - held,
        )
