"""Whether nodes may hold runs of ranks that are cut one after the other, by prices.

No more runs may be longer than ``t`` than there are nodes with more than ``t`` GPUs:

    runs longer than t  <=  nodes with more than t GPUs        for t of 0 and each size

A price on each ``t`` makes this a shortest path through the ranks (Lagrange). Where it
costs more than all nodes are worth, nodes hold no such runs.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator
from math import inf

import numpy as np

from placer.base.arrays import FloatArray, IntArray

ROUNDS = 12  # paths with other prices: machines have few sizes of nodes
MIXES = 8  # of two of these paths
ROUNDING = 1e-6


def fitting_runs(
    gpus: IntArray,
    cheapest: Callable[[FloatArray], IntArray | None],
    may_be: Callable[[IntArray], bool] = lambda _: True,
) -> tuple[bool, IntArray | None]:
    """Whether nodes may hold runs; False is certain. Lengths of such runs, if known.

    Parameters
    ----------
    gpus : ndarray, shape (N,)
        Of each node.
    cheapest : callable
        Lengths of the runs that cost least, given the price of each length from 1 to
        the longest; None where there are none.
    may_be : callable
        Whether the first runs of one choice and the last ones of another do, too.
    """
    longer = np.union1d(0, np.unique(gpus)[:-1])
    nodes = (gpus > longer[:, None]).sum(axis=1)
    is_longer = np.arange(1, int(gpus.max()) + 1)[:, None] > longer
    price, sums = np.ones(len(longer)), np.zeros(len(longer))
    known: list[IntArray] = []
    for _ in range(ROUNDS):
        price /= price.max()
        lengths = cheapest((is_longer * price).sum(axis=1))
        if lengths is None:
            return False, None
        used = (lengths[:, None] > longer).sum(axis=0)
        if price @ (used - nodes) > ROUNDING:
            return False, None
        if (used <= nodes).all():
            return True, lengths
        for other in known:
            for pair in ((lengths, other), (other, lengths)):
                for mixed in _mixed(*pair, longer, nodes):
                    if may_be(mixed):
                        return True, mixed
        known.append(lengths)
        # Multiplicative weights: what is used too often becomes dearer.
        sums += (used - nodes) / nodes.clip(1)
        price = np.exp(np.clip(ROUNDS * sums, -ROUNDS, ROUNDS))
    return True, None


def first_fitting(
    values: FloatArray, fitting: Callable[[float], tuple[bool, IntArray | None]]
) -> int:
    """The first of ascending values, the last of which is, that may be kept to."""
    return bisect_left(values[:-1], True, key=lambda value: fitting(float(value))[0])


def _mixed(
    one: IntArray, other: IntArray, longer: IntArray, nodes: IntArray
) -> Iterator[IntArray]:
    """The first runs of one choice and the last ones of another that fit the nodes."""
    ends, others = np.cumsum(one), np.cumsum(other)
    _, before, after = np.intersect1d(ends, others, return_indices=True)
    first, last = ((runs[:, None] > longer).astype(np.int64) for runs in (one, other))
    used = np.cumsum(first, axis=0)[before]
    used += last.sum(axis=0) - np.cumsum(last, axis=0)[after]
    for at in np.flatnonzero((used <= nodes).all(axis=1))[:MIXES].tolist():
        yield np.concatenate((one[: before[at] + 1], other[after[at] + 1 :]))


def cheapest_runs(cost: FloatArray) -> IntArray | None:
    """Lengths of the runs on the cheapest way through all ranks; None without one.

    Parameters
    ----------
    cost : ndarray, shape (U, L)
        Of a run that begins at a unit, by its length from 1 on; inf where there is
        none.
    """
    units, lengths = cost.shape
    begin, index = np.nonzero(np.isfinite(cost))
    best, length_before = [0.0] + [inf] * (units + lengths), [0] * (units + lengths + 1)
    # Few runs serve, so one after the other is faster than all lengths at once.
    for start, length, more in zip(
        begin.tolist(), (index + 1).tolist(), cost[begin, index].tolist(), strict=True
    ):
        total = best[start] + more
        if total < best[start + length]:
            best[start + length] = total
            length_before[start + length] = length
    if best[units] == inf:
        return None
    found, end = [], units
    while end:
        found.append(length_before[end])
        end -= found[-1]
    return np.array(found[::-1])
