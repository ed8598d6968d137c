"""Sets of units that moves take together: groups of experts, chains, stages, blocks.

A *family* is a partition of all units, given as the label of each unit's set. A *block*
here is a set of replicas that wait for each other: expert groups, or units, join them.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from placer.base.arrays import IntArray, row_of_number
from placer.job.axes import Parallelism
from placer.job.model import Job
from placer.solve.problem.colocation import join


def own_labels(job: Job, ranks: IntArray) -> Iterator[IntArray]:
    """Labels of groups of the job's own, in families of groups that share nobody.

    Who is in none of a family is a set alone.
    """
    unit = row_of_number(ranks)
    for group in job.groups:
        label = np.arange(len(ranks))
        taken = np.zeros(len(ranks), dtype=bool)
        for members in group.ranks:
            units = np.unique(unit[list(members)])
            if taken[units].any():
                yield label
                label, taken = np.arange(len(ranks)), np.zeros(len(ranks), dtype=bool)
            label[units], taken[units] = units[0], True
        yield label


def labels_of(axes: Parallelism, ranks: IntArray) -> Iterator[IntArray]:
    """Label of each unit in every family of sets; each shape (U,).

    By expert groups, by pipelines, by stages of blocks and by blocks. ``ranks`` ((U,
    s)): of each unit.
    """
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


def shards_of(job: Job) -> IntArray | None:
    """Groups that shard what others hold too (hsdp, optimizer instances); (g, n).

    None where one group shards it over all.
    """
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
