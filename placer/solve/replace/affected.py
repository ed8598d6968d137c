"""Domains that lost ranks: how many ranks have no room left, and who is to go."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from placer.base.arrays import BoolArray, IntArray

if TYPE_CHECKING:
    from placer.solve.replace.state import RepairState


class Affected(NamedTuple):
    """One domain; a set is a set of ranks that the requirements tie together there.

    Attributes
    ----------
    ranks : ndarray, shape (any,)
        All that were in it, ascending.
    tied : ndarray, shape (any,)
        The set of each of them.
    size, kept : ndarray, shape (sets,), ranks
        All of each set, and those that have a seat.
    excess : int
        Ranks for which there is no room; may be negative.
    """

    ranks: IntArray
    tied: IntArray
    size: IntArray
    kept: IntArray
    excess: int


def affected_domains(state: RepairState, tier: int) -> Iterator[Affected]:
    """The domains of a tier that lost ranks."""
    home, is_lost = state.before.domain[tier], state.before.is_lost
    room = state.room_of_domains(tier)
    for domain in np.unique(home[is_lost]).tolist():
        ranks = np.flatnonzero(home == domain)
        tied = np.unique(state.sets[tier][ranks], return_inverse=True)[1]
        held = int(room[domain]) if domain < len(room) else 0
        yield Affected(
            ranks,
            tied,
            np.bincount(tied),
            np.bincount(tied, ~is_lost[ranks]).astype(np.int64),
            len(ranks) - held,
        )


def most_damaged(state: RepairState, block: int, count: int) -> list[int]:
    """Replicas to give up: ``count`` of them, in blocks of ``block`` consecutive ones.

    Those of which the most ranks would have to move: ranks on lost nodes, and all of a
    required group for which its domain has no room any more. Of equal ones the last.
    """
    replica = state.job.parallelism.coordinates["dp"]
    damage = np.bincount(replica // block, _has_to_move(state))
    order = np.lexsort((-np.arange(len(damage)), -damage))
    blocks = np.sort(order[: count // block])
    first = blocks[:, None] * block + np.arange(block)
    return [int(one) for one in first.ravel()]


def _has_to_move(state: RepairState) -> BoolArray:
    """Ranks that cannot stay; shape (R,)."""
    found = state.before.is_lost.copy()
    for tier in range(max(1, len(state.topology.tiers) - 1)):
        for domain in affected_domains(state, tier):
            if domain.excess <= 0:
                continue
            # The sets that move the fewest ranks go first, until the others fit.
            order = np.argsort(domain.kept, kind="stable")
            gone = np.cumsum(domain.size[order])
            leaving = order[: int(np.searchsorted(gone, domain.excess)) + 1]
            found[domain.ranks[np.isin(domain.tied, leaving)]] = True
    return found
