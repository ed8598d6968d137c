"""How much of each replica a failure moves, to tell which ones to give up."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from placer.solve.replace.struck import struck_domains

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
    found = ground.before.is_lost.copy()
    for tier in range(max(1, len(ground.topology.tiers) - 1)):
        for domain in struck_domains(ground, tier):
            if domain.excess <= 0:
                continue
            # The parts that move the fewest ranks go first, until the others fit.
            order = np.argsort(domain.kept, kind="stable")
            gone = np.cumsum(domain.size[order])
            leaving = order[: int(np.searchsorted(gone, domain.excess)) + 1]
            found[domain.ranks[np.isin(domain.part, leaving)]] = True
    return found
