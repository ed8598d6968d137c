"""Tp groups beside gradient groups that need many members on a domain.

The ranks of a tp group are in as many gradient groups. With ``q`` members of each
wherever it has some, a domain of room ``r`` holds ``r / q`` ranks of a tp group at the
most. A *slot* is a stage of a replica; let its tp groups all be whole, on ``w``
domains. Each of ``t`` gradient groups has ``k`` of its ``n`` members there, and these
domains hold ``w q`` or more of it, and leave none of it or ``q``:

    t m <= w r,   m = max(w q, k),  or n where m > n - q

By hand: tp 2 and cp 4 on nodes of 7 GPUs, gradient groups of 8. Four pairs take two
nodes. With three members on each, two are left over, too few; and all 16 ranks find no
room on two nodes. So with ``q = 3`` every slot has a pair that is cut.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from placer.arrays import IntArray

if TYPE_CHECKING:
    from placer.job.model import Job


def largest_parts(
    job: Job, groups: IntArray, room: int, members: IntArray
) -> tuple[int, ...]:
    """Most ranks on a domain of some tp group of each slot, an entry a stage.

    Parameters
    ----------
    groups : ndarray, shape (g, n)
        Gradient groups.
    room : int
        Ranks that the largest domain may hold.
    members : ndarray, shape (P,)
        Fewest members that a gradient group of each stage has in every domain that it
        touches.
    """
    axes, size = job.parallelism, groups.shape[1]
    replica = axes.coordinates["dp"][groups]
    of_slot = int((replica == replica[:, :1]).sum(axis=1).min())
    found = []
    for few in members.tolist():
        most = max(1, min(axes.tp, room // few))
        if most == axes.tp and not _may_be_whole(axes.tp, of_slot, size, room, few):
            most -= 1
        found.append(max(1, most))
    return tuple(found)


def _may_be_whole(tp: int, of_slot: int, size: int, room: int, few: int) -> bool:
    """Whether all tp groups of a slot may be whole; False is certain."""
    for domains in range(-(-of_slot // (room // tp)), size // few + 1):
        held = max(domains * few, of_slot)
        if tp * (held if held <= size - few else size) <= domains * room:
            return True
    return False
