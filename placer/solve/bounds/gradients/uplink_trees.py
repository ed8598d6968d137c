"""What double trees of all-reduces put on thin uplinks at the least, all together.

A tree between scale-up domains falls into pieces that fit the domains that uplinks lead
to. Each edge between two pieces puts half a buffer on the uplinks at both of its ends,
either way. By hand: 16 nodes, four in a rack. NCCL's tree has subtrees of 1, 3, 7 and
15 vertices; five pieces of at most four are the fewest, so of both trees eight edges
leave, and the four uplinks carry two buffers each.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from placer.arrays import IntArray
from placer.cost.trees import parent_in_tree
from placer.solve.bounds.network.limit import ring_buffers

if TYPE_CHECKING:
    from placer.solve.bounds.gradients.uplink_room import UplinkRoom

# Vertices of a tree that is cut; of more only the number of domains counts.
MOST_VERTICES = 256


class Known(NamedTuple):
    """What is known of groups.

    Attributes
    ----------
    domains : int
        That each of them is in.
    together : int, optional
        Most members that a scale-up domain has of one; no more NICs does it drive.
    leave : ndarray, shape (C,), optional
        Groups that leave each domain, if any ranks are there.
    alike : int
        Of these, how many drive as many NICs each.
    """

    domains: int = 1
    together: int | None = None
    leave: IntArray | None = None
    alike: int = 1


NOTHING = Known()


def least_in_trees(room: UplinkRoom, groups: IntArray, known: Known = NOTHING) -> float:
    """Least seconds a byte of the buffer, by when the last of the groups is done.

    Each takes a ring or double trees as it likes.

    Parameters
    ----------
    groups : ndarray, shape (g, n)
    """
    number, size = groups.shape
    together = known.together or size
    nics = min(room.nics_of(groups), together)
    domains = max(known.domains, room.network.fewest_domains(groups, room.tier))
    cuts = max(domains - 1, _cuts_in_rooms(room, groups, together))
    if cuts == 0:
        return 0.0
    # Groups in more domains use more uplinks, but then they put more on them.
    used = np.sort(room.uplink)[::-1][: number * (cuts + 1)].sum()
    in_rings = ring_buffers(size) * domains * np.arange(number + 1)
    in_trees = 2 * cuts * np.arange(number, -1, -1)
    least = float(np.maximum(in_rings, in_trees).min() / used)
    if known.leave is None:
        return least
    # All in trees, or a ring that shares the uplinks of its domains with the others.
    others = known.leave - known.alike
    beside = np.where(known.leave > 0, known.alike + others / nics, 0.0)
    ring = ring_buffers(size) * float((beside / room.uplink)[room.ranks > 0].min())
    return max(least, min(ring, float(in_trees[0] / used)))


def _cuts_in_rooms(room: UplinkRoom, groups: IntArray, together: int) -> int:
    """Edges of a tree of one of the groups that leave the domains, at the least."""
    network = room.network
    scale_up = network.fabric.scale_up_tier
    inside = room.ranks if scale_up < 0 else np.bincount(room.home_of(scale_up))
    first, most = network.fewest_domains(groups, scale_up + 1), int(inside.max())
    first = max(first, -(-groups.shape[1] // together))
    if most < 1 or first > MOST_VERTICES:
        return 0
    return _least_cuts(first, groups.shape[1], most)


@lru_cache(maxsize=1024)
def _least_cuts(first: int, last: int, most: int) -> int:
    """The same of a tree with ``first`` to ``last`` vertices, ``most`` in a piece."""
    found = fewest_cuts(first, most)
    count = first + 1
    # More vertices than in so many pieces are cut as often anyway.
    while count <= min(last, most * found):
        if count > MOST_VERTICES:
            return 0
        found = min(found, fewest_cuts(count, most))
        count += 1
    return found


def fewest_cuts(count: int, most: int) -> int:
    """Fewest edges that cut NCCL's tree into pieces of so many vertices at the most.

    From the leaves on, what is largest is cut off where a piece gets too large (Kundu
    and Misra 1977, A linear tree partitioning algorithm).
    """
    vertices = np.arange(count)
    parents = parent_in_tree(vertices, np.full(count, count)).tolist()
    below: list[list[int]] = [[] for _ in range(count)]
    cuts = 0
    for vertex in sorted(range(count), key=lambda v: v & -v if v else count):
        pieces = sorted(below[vertex])
        while 1 + sum(pieces) > most:
            pieces.pop()
            cuts += 1
        if vertex:
            below[parents[vertex]].append(1 + sum(pieces))
    return cuts
