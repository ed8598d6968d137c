"""In which stages alone groups may be cut where every node holds one run of ranks.

Groups of some stages stay whole, others may be cut. A node that holds whole ones alone
leaves idle what is over of its room. Only where ranks of one sort end and those of the
other begin may a node have both: so often at the most as that happens in the order of
ranks. What is left of the room must hold the other stages. By hand: 56 groups of 3, in
four stages, on 19 nodes of 8 and 5 of 7. If only the first two stages are cut, 13 nodes
hold 26 of the other 28 groups, and some node the last 2 beside ranks of the second
stage: 187 - 35 - 64 - 6 = 82 GPUs are left for 84 ranks. So a third stage has a group
that is cut.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]


def may_cut_only(room: IntArray, size: int, is_cut: BoolArray) -> bool:
    """Whether all groups but some may be whole; False is certain.

    Parameters
    ----------
    room : ndarray, shape (N,)
        Ranks that each node may hold, in one run.
    size : int
        Ranks of a group; groups are of consecutive ranks.
    is_cut : ndarray, shape (G,)
        Whether each group may be cut.
    """
    whole = int((~is_cut).sum())
    ends = int((is_cut[1:] != is_cut[:-1]).sum())
    beside = np.arange(min(whole, ends * (int(room.max()) // size)) + 1)
    taken = least_room(room, size, whole)[whole - beside] + beside * size
    return bool(room.sum() - taken.min() >= is_cut.sum() * size)


def least_room(room: IntArray, size: int, groups: int) -> npt.NDArray[np.float64]:
    """Least room of nodes that hold so many whole groups, from 0 on; inf for too many.

    Parameters
    ----------
    room : ndarray, shape (N,)
    size, groups : int
        Ranks of a group, and groups at the most.
    """
    least = np.full(groups + 1, np.inf)
    least[0] = 0.0
    for one, count in zip(
        *np.unique(room[room >= size], return_counts=True), strict=True
    ):
        left, some = int(count), 1
        while left:
            some = min(some, left)  # 1, 2, 4, ... nodes: any number is a sum of these
            before = np.maximum(np.arange(groups + 1) - some * (int(one) // size), 0)
            least = np.minimum(least, least[before] + some * int(one))
            left, some = left - some, 2 * some
    return least
