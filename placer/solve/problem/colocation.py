"""Which ranks must stay together, tier by tier, and how many such sets fit.

A hard requirement says that every group of an axis lies in one domain of a tier. Groups
of several axes that share ranks are tied together, so the ranks fall into *sets*, each
of which must lie in one domain. Sets of an inner tier nest in the sets of the outer
ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from placer.base.arrays import IntArray, by_appearance
from placer.base.errors import InputError, Problem
from placer.job.even import axis_of, is_even, part_size
from placer.job.model import Job
from placer.topology.machine import Machine


@dataclass(frozen=True, eq=False)
class Colocation:
    """The sets of a job on a machine."""

    label: IntArray  # (T, R): set of every rank at each tier, numbered by lowest rank
    # Ranks that a node holds, all consecutive, when every node holds as many
    # (node-contiguous launch); 0 when nodes differ; 1 when any rank may go anywhere.
    block: int

    def sizes(self, tier: int) -> IntArray:
        """Ranks of each set of a tier."""
        return np.bincount(self.label[tier])

    def share(self, tier: int, place: IntArray) -> bool:
        """Whether the ranks of each set of a tier have one place; shape (R,)."""
        label = self.label[tier]
        of_part = np.empty(int(label.max()) + 1, dtype=np.int64)
        of_part[label] = place
        return bool((of_part[label] == place).all())

    def uniform_sizes(self) -> tuple[int, ...] | None:
        """Size of the sets of each tier, None when a tier has several sizes."""
        sizes = [np.unique(self.sizes(t)) for t in range(len(self.label))]
        if any(len(values) > 1 for values in sizes):
            return None
        return tuple(int(values[0]) for values in sizes)


def check_requirements(topology: Machine, job: Job) -> None:
    """Refuse requirements that name a tier the machine does not have.

    Raises `InputError` naming every such requirement.
    """
    known = [tier.name for tier in topology.tiers]
    problems = [
        Problem(
            f'the machine "{topology.name}" has no tier "{tier}"',
            key=f"require.{axis}",
            hint=f"its tiers are {', '.join(known)}",
        )
        for axis, tier in job.require.items()
        if tier not in known
    ]
    if problems:
        raise InputError(problems)


@lru_cache(maxsize=8)  # one problem asks for few, each of them often
def colocation_of(topology: Machine, job: Job, block: int) -> Colocation:
    """The sets of ``job`` when nodes hold blocks of ``block`` ranks."""
    num_tiers = len(topology.tiers)
    world = job.world_size
    label = np.arange(world) // max(block, 1)
    rows = []
    for t, tier in enumerate(topology.tiers):
        for axis, required in job.require.items():
            if required == tier.name and not is_even(axis):
                for members in groups_of(job, axis):
                    label = join(label, members)
        if t == topology.node_tier > 0:
            label = join(label, _host_blocks(topology, job, block))
        rows.append(np.zeros(world, dtype=np.int64) if t == num_tiers - 1 else label)
    if num_tiers == 1:
        rows = [label]
    # Sets are numbered by their lowest rank.
    return Colocation(np.array([by_appearance(row)[1] for row in rows]), block)


def _host_blocks(topology: Machine, job: Job, block: int) -> IntArray:
    """Ranks that each host holds when its islands hold ``block``, a row a host.

    As many islands of every host as can be; a launch that may cut hosts anywhere ties
    single ranks only.
    """
    world = job.world_size
    ranks = np.arange(world)
    if job.launcher == "free" or block < 2:
        return ranks[:, None]
    host = topology.host_of_node
    islands = np.bincount(host, topology.gpus_of_node >= block).astype(np.int64)
    for count in range(int(islands.max()), 1, -1):
        size = count * block
        if world % size == 0 and int((islands >= count).sum()) * size >= world:
            return ranks.reshape(-1, size)
    return ranks.reshape(-1, block)


def groups_of(job: Job, axis: str) -> Sequence[IntArray]:
    """Members of all groups of an axis or custom group, one array a row length.

    Those of ``ep/16`` are the parts of 16 consecutive members of an ep group each.
    """
    if size := part_size(axis):
        return [rows.reshape(-1, size) for rows in groups_of(job, axis_of(axis))]
    found = job.parallelism.ranks_of_group.get(axis)
    if found is not None:
        return [found]
    of_roles = [
        members[None]
        for role in job.roles
        if role.axis(axis)
        for members in role.groups(role.axis(axis))
    ]
    return of_roles + [
        np.array([ranks], dtype=np.int64)
        for group in job.groups
        if group.name == axis
        for ranks in group.ranks
    ]


def are_together(label: IntArray, groups: IntArray) -> bool:
    """Whether the ranks of each group, (g, n), are all of one set."""
    rows = label[groups]
    return bool((rows == rows[:, :1]).all())


def join(label: IntArray, members: IntArray) -> IntArray:
    """Labels after tying together the ranks of each row of ``members``."""
    root = np.arange(label.max() + 1)
    rows = label[members]
    while True:
        lowest = root[rows].min(axis=1)
        before = root.copy()
        np.minimum.at(root, rows, lowest[:, None])
        root = np.minimum(root, root[root])
        if np.array_equal(root, before):
            return root[label]
