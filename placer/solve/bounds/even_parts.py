"""How even the parts of groups can be when domains do not hold all groups whole.

A group that lies in several domains has a part in each. Where no part of any group is
below ``p``, a domain holds groups of ``n`` ranks and parts of ``p`` to ``n - p``: of 7
GPUs it then uses 4 for halves of groups of 8. Where all domains together use fewer than
there are ranks, some group of every placement has a part below ``p``.

Shapes: D domains.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]


def most_even(room: IntArray, size: int, ranks: int) -> int:
    """The largest least part that the groups of any placement can have.

    Half a group at the most; also where all groups fit whole.

    Parameters
    ----------
    room : ndarray, shape (D,)
        Ranks that each domain may hold.
    size : int
        Ranks of a group.
    ranks : int
        Of all groups together.
    """
    rooms, count = np.unique(room, return_counts=True)
    for part in range(size // 2, 1, -1):
        used = [_used(one, size, part) for one in rooms.tolist()]
        if int(np.dot(used, count)) >= ranks:
            return part
    return 1


def _used(room: int, size: int, part: int) -> int:
    """Most ranks of a domain in whole groups and parts of them, none below ``part``."""
    found = []
    for whole in range(room // size + 1):
        parts = (room - whole * size) // part
        found.append(min(room, whole * size + parts * (size - part)))
    return max(found)
