"""What ranks send each other in a step, as one weighted graph.

The graph is what constructions and local search look at; it never is part of a value or
a bound. Shapes: R ranks, E edges.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from placer.base.arrays import FloatArray, IntArray
from placer.cost.custom import TRAFFIC
from placer.cost.step import Step
from placer.job.edges import EDGE_AXES, group_edges
from placer.job.model import Job
from placer.job.traffic import Group
from placer.solve.problem.compiled import Problem

# What a byte is worth that compute hides at present.
HIDDEN = 0.05
# Random cycles of a group that has more pairs: they are as hard to cut anywhere.
CYCLES = 12


class Flows(NamedTuple):
    """A weighted graph of ranks."""

    edges: IntArray  # (E, 2): any pair once at most, the lower rank first
    weight: FloatArray  # (E,), bytes a step


def flows_of(problem: Problem, gpu_of_rank: IntArray) -> Flows:
    """What the ranks of a job with groups of its own send each other.

    ``problem``: its objective is time. ``gpu_of_rank`` ((R,)): a placement, which tells
    what each axis sends and what compute hides.
    """
    step = problem.model.step(gpu_of_rank)
    edges, weights = [np.zeros((0, 2), dtype=np.int64)], [np.zeros(0)]
    parts = [(0, step)]
    for time in step.roles:
        parts += zip(time.role.offsets, time.steps, strict=True)
    for offset, part in parts:
        for pairs, weight in _sent(problem.seed, part):
            edges.append(pairs + offset)
            weights.append(weight)
    return merged(
        np.concatenate(edges), np.concatenate(weights), problem.job.world_size
    )


def merged(edges: IntArray, weight: FloatArray, count: int) -> Flows:
    """Edges between ``count`` vertices, those that join the same two as one."""
    low, high = edges.min(axis=1), edges.max(axis=1)
    apart = low != high
    keys, which = np.unique(low[apart] * count + high[apart], return_inverse=True)
    total = np.bincount(which, weight[apart], len(keys)).astype(np.float64)
    return Flows(np.stack((keys // count, keys % count), axis=1), total)


def _sent(seed: int, step: Step) -> Iterator[tuple[IntArray, FloatArray]]:
    """Edges of each axis, each group and the traffic, and the bytes on each of them."""
    exposed, rng = step.exposed_s(), np.random.default_rng(seed)
    for name, sent in step.traffic().items():
        if name not in exposed:  # of a role
            continue
        share = 1.0 if exposed[name] > 0 else HIDDEN
        edges, size = _edges(step.model.job, name, rng)
        if size is None:
            each = float(sent.bytes_by_tier.sum()) / max(len(edges), 1)
            size = np.full(len(edges), each)
        yield edges, share * size


def _edges(
    job: Job, name: str, rng: np.random.Generator
) -> tuple[IntArray, FloatArray | None]:
    """Edges of what a step sends under a name, and bytes where these differ."""
    axes, traffic = job.parallelism, job.traffic
    if name == TRAFFIC and traffic is not None:
        return np.stack((traffic.senders, traffic.receivers), 1), traffic.size_bytes
    found = [np.zeros((0, 2), dtype=np.int64)]
    if name in EDGE_AXES and axes.size(name) > 1:
        found.append(group_edges(name, axes.ranks_of_group[name]))
    for group in (group for group in job.groups if group.name == name):
        by_size = defaultdict(list)
        for ranks in group.ranks:
            by_size[len(ranks)].append(ranks)
        for size, rows in by_size.items():
            # A group of all ranks has a part of itself everywhere.
            if 1 < size < job.world_size:
                found.append(_group_edges(group, np.array(rows), rng))
    return np.concatenate(found), None


def _group_edges(group: Group, members: IntArray, rng: np.random.Generator) -> IntArray:
    """Edges inside each row of members."""
    if group.collective in ("send_recv", "relay"):
        return group_edges("pp", members)
    if members.shape[1] <= 2 * CYCLES:
        return group_edges("ep", members)
    turned = [rng.permuted(members, axis=1) for _ in range(CYCLES)]
    return np.concatenate([group_edges("dp", rows) for rows in turned])
