"""Gradients that are to be fast ask for company: parts beside others of their stage.

Gradients that expose ``x`` seconds have ``q_s(x)`` members in each domain they touch. A
part of ``r`` ranks has members of ``r / m`` groups or more, where a unit has ``m`` of
one at most. So among ``T`` ranks of a stage no part has more than ``T m / q_s``. See
docs/method.md, "Fast gradients ask for company". Shapes: P stages, Q numbers of NICs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from placer.arrays import IntArray
from placer.solve.bounds.experts.part_gradients import EXPERTS

if TYPE_CHECKING:
    from placer.solve.bounds.experts.expert_units import Units
    from placer.solve.bounds.experts.part_gradients import HeldStages


class Company(NamedTuple):
    """What it takes to expose no more than some seconds of gradients.

    Attributes
    ----------
    exposed_s : float, s
    members : ndarray, shape (P,)
        That each group that reduces expert gradients of a stage must have in every
        domain it touches.
    """

    exposed_s: float
    members: IntArray

    @property
    def sort(self) -> IntArray:
        """Of the units of each stage, by how many members they ask for; shape (P,)."""
        return np.searchsorted(self.asked, self.members)

    @property
    def asked(self) -> IntArray:
        """All numbers of members that stages ask for, ascending, 1 always the first."""
        return np.unique(np.append(self.members, 1))

    def limits(self, units: Units, room: int) -> tuple[IntArray, ...]:
        """Of each sort but the first, the largest part beside so many pieces in all.

        Parameters
        ----------
        room : int, pieces
            Of the largest domain.
        """
        pieces = np.arange(room + 1)
        groups = -(-pieces * units.ranks // units.shared)
        return tuple(
            np.searchsorted(members * groups, pieces * units.ranks, side="right") - 1
            for members in self.asked[1:].tolist()
        )


def companies(held: HeldStages, room: int, least_s: float) -> list[Company]:
    """All that placements may expose, the most first, and what that takes.

    Parameters
    ----------
    room : int, ranks
        Of the largest domain.
    least_s : float, s
        Exposed at least.
    """
    model = held.step.model
    size = model.job.parallelism.ranks_of_group["edp"].shape[1]
    most = min(room, size)
    other_s = held.step.exposed_sync_s["embedding"]
    # Exposed where groups of a stage drive 1, 2 .. NICs at the most; (Q, P).
    by_nics = []
    for nics in range(1, most + 1):
        by_nics.append([sum(one) + other_s for one in held.exposed({EXPERTS: nics})])
        if max(by_nics[-1]) <= least_s:  # nothing exposes less
            break
    exposed = np.maximum(np.minimum.accumulate(by_nics), least_s)
    found = (
        Company(seconds, 1 + (exposed > seconds).sum(axis=0))
        for seconds in np.unique(exposed)[::-1].tolist()
    )
    return [one for one in found if one.members.max() <= most]
