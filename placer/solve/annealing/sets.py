"""Sets of units that moves take together: groups of experts, chains, stages, blocks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from placer.arrays import IntArray, row_of_number
from placer.solve.problem.colocation import join

if TYPE_CHECKING:
    from placer.job.axes import Parallelism
    from placer.job.model import Job


def labels_of(job: Job, ranks: IntArray) -> Iterator[IntArray]:
    """Label of each unit in every family of sets; each shape (U,).

    Parameters
    ----------
    job : Job
    ranks : ndarray, shape (U, s)
        Of each unit.
    """
    axes = job.parallelism
    block, stage = blocks_of(axes, ranks), axes.coordinates["pp"][ranks[:, 0]]
    if axes.ep > 1:
        group = row_of_number(axes.ranks_of_group["ep"])
        if (block_of := group[ranks[:, 0]]).max() + 1 < len(ranks):
            yield block_of
    if axes.pp > 1:
        lane = axes.coordinates["cp"][ranks[:, 0]]
        replica = axes.coordinates["dp"][ranks].min(axis=1)
        yield replica * axes.cp + lane
    yield block * axes.pp + stage
    if block.max() > 0:
        yield block
    if (shards := shards_of(job)) is not None:
        yield row_of_number(shards)[ranks[:, 0]]


def shards_of(job: Job) -> IntArray | None:
    """Ranks that share weights where others hold the same, by group; shape (g, n)."""
    axes, mode = job.parallelism, job.data_parallel
    members = axes.ranks_of_group["dp_cp"]
    size = mode.shard_members(members.shape[1], axes.dp * axes.cp)
    return members.reshape(-1, size) if size < members.shape[1] else None


def blocks_of(axes: Parallelism, ranks: IntArray) -> IntArray:
    """Block of each unit: replicas that expert groups or units join; shape (U,)."""
    replica = axes.coordinates["dp"]
    label = join(np.arange(axes.dp), replica[ranks])
    if axes.ep > 1:
        label = join(label, replica[axes.ranks_of_group["ep"]])
    return np.unique(label[replica[ranks[:, 0]]], return_inverse=True)[1].reshape(-1)
