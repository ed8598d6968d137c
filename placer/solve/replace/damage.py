"""How much of each replica a failure moves, to tell which ones to give up."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from placer.solve.replace.ground import Ground

IntArray = npt.NDArray[np.int64]


def most_damaged(ground: Ground, block: int, count: int) -> list[int]:
    """Replicas to give up: ``count`` of them, in blocks of ``block`` consecutive ones.

    Those of which the most ranks would have to move: ranks on lost nodes, and all of a
    required group for which its domain has no room any more. Of equal ones the last.
    """
    replica = ground.job.parallelism.coordinates["dp"]
    damage = np.bincount(replica // block, _has_to_move(ground))
    order = np.lexsort((-np.arange(len(damage)), -damage))
    blocks = np.sort(order[: count // block])
    first = blocks[:, None] * block + np.arange(block)
    return [int(one) for one in first.ravel()]


def _has_to_move(ground: Ground) -> npt.NDArray[np.bool_]:
    """Ranks that cannot stay; shape (R,)."""
    is_lost = ground.before.is_lost
    found = is_lost.copy()
    for tier in range(max(1, len(ground.topology.tiers) - 1)):
        home, part = ground.before.domain[tier], ground.parts[tier]
        held = ground.room_of_domains(tier)
        for domain in np.unique(home[is_lost]).tolist():
            own = np.flatnonzero(home == domain)
            room = int(held[domain]) if domain < len(held) else 0
            names, which = np.unique(part[own], return_inverse=True)
            size, kept = np.bincount(which), np.bincount(which, ~is_lost[own])
            order = np.argsort(kept, kind="stable")
            left = len(own) - np.cumsum(size[order])
            leaving = order[: int(np.count_nonzero(left > room)) + 1]
            if len(own) > room:
                found[own[np.isin(part[own], names[leaving])]] = True
    return found
