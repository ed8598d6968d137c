"""Which ranks talk to each other: the edges of the hop cost.

Shapes: E edges.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from placer.base.arrays import IntArray
from placer.job.model import Job

EDGE_AXES = ("tp", "cp", "ep", "pp", "dp", "edp")
# How the members of a group of the user's own talk: as those of an axis, else dp.
LIKE_AXIS = {"all_to_all": "ep", "send_recv": "pp", "relay": "pp"}


class AxisEdges(NamedTuple):
    """The edges of one axis; all have the same weight."""

    axis: str
    weight: float
    edges: IntArray  # (E, 2)


def hop_edges(job: Job) -> tuple[AxisEdges, ...]:
    """Edges of every axis that has a weight and more than one member.

    A ring in every ``tp``, ``cp``, ``dp`` and ``edp`` group (one edge for two members),
    a chain along ``pp``, all pairs in an ``ep`` group.
    """
    parallelism = job.parallelism
    return tuple(
        AxisEdges(
            axis,
            float(job.weights[axis]),
            group_edges(axis, parallelism.ranks_of_group[axis]),
        )
        for axis in EDGE_AXES
        if job.weights.get(axis) and parallelism.size(axis) > 1
    )


def all_edges(job: Job) -> tuple[AxisEdges, ...]:
    """`hop_edges`; without weights those of all that the job sends, at weight 1.

    These are the axes where there is a model, the groups of the user's own, joined
    by their collective, and the traffic between ranks. Without experts there is no
    ``edp``: ``dp`` does its work.
    """
    if job.weights:
        return hop_edges(job)
    axes = EDGE_AXES if job.parallelism.divides_experts else EDGE_AXES[:-1]
    sent = dict.fromkeys(axes if job.model else (), 1.0)
    found = list(hop_edges(replace(job, weights=sent)))
    for group in job.groups:
        like = LIKE_AXIS.get(group.collective, "dp")
        edges = [group_edges(like, np.array([ranks])) for ranks in group.ranks]
        found.append(AxisEdges(group.name, 1.0, np.concatenate(edges)))
    if job.traffic is not None:
        pairs = np.stack((job.traffic.senders, job.traffic.receivers), axis=1)
        found.append(AxisEdges("traffic", 1.0, np.unique(np.sort(pairs), axis=0)))
    return tuple(found)


def group_edges(axis: str, groups: IntArray) -> IntArray:
    """Edges inside every group (one row a group, members in ring order)."""
    members = groups.shape[1]
    if axis == "ep":
        first, second = np.triu_indices(members, k=1)
    else:
        first, second = np.arange(members - 1), np.arange(1, members)
        if axis != "pp" and members > 2:
            first, second = np.append(first, 0), np.append(second, members - 1)
    return np.stack([groups[:, first].ravel(), groups[:, second].ravel()], axis=1)
