"""Who needs whom in the same scale-up domain.

Transfers that keep to a time leave some ranks no choice: a NIC alone would take too
long, so so many of those that they talk to share their domain. Bounds count whether
domains hold them all, and constructions place them. Shapes: R ranks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from placer.base.arrays import BoolArray, IntArray

# Of times at which needs change.
ROUNDING = 1e-9


class Kind(NamedTuple):
    """Ranks that need as many of the same partners.

    Attributes
    ----------
    ranks, partners : ndarray of bool, shape (R,)
        Who has the needs, and who meets them.
    needs : int
        Partners that a domain with one of the ranks has.
    """

    ranks: BoolArray
    partners: BoolArray
    needs: int


class Need(NamedTuple):
    """Ranks that need partners; where these need them too, both.

    Attributes
    ----------
    ranks, partners : ndarray of int
        Who has the needs, and who meets them.
    needs, back : int
        Partners that a domain with one of the ranks has, and ranks that one with a
        partner has: 0 where partners have no needs.
    """

    ranks: IntArray
    partners: IntArray
    needs: int
    back: int

    @property
    def sizes(self) -> tuple[int, int, int, int]:
        """What alike needs have in common."""
        return len(self.ranks), len(self.partners), self.needs, self.back

    @property
    def can_be_parted(self) -> bool:
        """Whether two domains may have some of the ranks, and what these need."""
        ranks, partners, needs, back = self.sizes
        return 2 * needs <= partners and 2 * (back or 1) <= ranks


def needs_of(kinds: Sequence[Kind]) -> list[Need]:
    """The needs of kinds, two that need each other taken together."""
    found, left = [], dict(enumerate(kinds))
    by_ranks = {kind.ranks.tobytes(): number for number, kind in left.items()}
    while left:
        number, kind = next(iter(left.items()))
        del left[number]
        other = by_ranks.get(kind.partners.tobytes())
        back = 0
        if other in left and np.array_equal(left[other].partners, kind.ranks):
            back = left.pop(other).needs
        ranks, partners = np.flatnonzero(kind.ranks), np.flatnonzero(kind.partners)
        found.append(Need(ranks, partners, kind.needs, back))
    return found
