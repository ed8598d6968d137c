"""Runs of ranks: what a node of a node-contiguous launch holds of a group at the most.

A node holds one run of consecutive ranks, of any length up to its GPUs ``g``. So,

    members of a group on a node  <=  its most members among any g consecutive ranks
    members of a group in a domain  <=  the sum of that over the nodes of the domain
    domains that a group touches  >=  fewest whose sums reach its size

since a run shorter than ``g`` lies in one of ``g`` ranks.
"""

from __future__ import annotations

import numpy as np

from placer.base.arrays import IntArray


def most_in_runs(members: IntArray, lengths: IntArray) -> IntArray:
    """Most members of one row among so many consecutive ranks; shape of ``lengths``.

    ``k`` members fit a run of ``g`` ranks where the first and the last of ``k``
    neighbours in a row are less than ``g`` apart: found by bisection over ``k``.
    """
    in_order = np.sort(members, axis=1)
    sizes, place = np.unique(lengths.astype(np.int64), return_inverse=True)
    most = []
    for size in sizes.tolist():
        low, high = min(size, 1), min(size, in_order.shape[1])
        while low < high:
            count = (low + high + 1) // 2
            apart = in_order[:, count - 1 :] - in_order[:, : 1 - count]
            low, high = (count, high) if (apart < size).any() else (low, count - 1)
        most.append(low)
    return np.array(most, dtype=np.int64)[place]


def most_alike(values: IntArray) -> int:
    """How often a value comes in a row, at the most; found like `most_in_runs`."""
    in_order = np.sort(values, axis=1)
    low, high = 1, in_order.shape[1]
    while low < high:
        count = (low + high + 1) // 2
        alike = in_order[:, count - 1 :] == in_order[:, : 1 - count]
        low, high = (count, high) if alike.any() else (low, count - 1)
    return low
