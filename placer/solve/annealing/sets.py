"""Sets of units that moves take together: groups of experts, chains, stages, blocks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from placer.arrays import IntArray

if TYPE_CHECKING:
    from placer.job.axes import Parallelism


def labels_of(axes: Parallelism, ranks: IntArray) -> Iterator[IntArray]:
    """Label of each unit in every family of sets; each shape (U,).

    Parameters
    ----------
    axes : Parallelism
    ranks : ndarray, shape (U, s)
        Of each unit.
    """
    block, stage = blocks_of(axes, ranks), axes.coordinates["pp"][ranks[:, 0]]
    if axes.ep > 1:
        group = _group(axes.ranks_of_group["ep"], axes.world_size)
        if (block_of := group[ranks[:, 0]]).max() + 1 < len(ranks):
            yield block_of
    if axes.pp > 1:
        lane = axes.coordinates["cp"][ranks[:, 0]]
        replica = axes.coordinates["dp"][ranks].min(axis=1)
        yield replica * axes.cp + lane
    yield block * axes.pp + stage
    if block.max() > 0:
        yield block


def blocks_of(axes: Parallelism, ranks: IntArray) -> IntArray:
    """Block of each unit: replicas that expert groups or units join; shape (U,)."""
    replica = axes.coordinates["dp"]
    label = np.arange(axes.dp)
    joins = [replica[ranks]]
    if axes.ep > 1:
        joins.append(replica[axes.ranks_of_group["ep"]])
    for rows in joins:
        for row in np.unique(np.sort(rows, axis=1), axis=0):
            labels = np.unique(label[row])
            if len(labels) > 1:
                label[np.isin(label, labels)] = labels[0]
    return np.unique(label[replica[ranks[:, 0]]], return_inverse=True)[1].reshape(-1)


def _group(groups: IntArray, count: int) -> IntArray:
    found = np.zeros(count, dtype=np.int64)
    found[groups] = np.arange(len(groups))[:, None]
    return found
