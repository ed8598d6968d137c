"""What ranks send each other in a step, as one weighted graph.

The graph is what constructions and local search look at; it never is part of a value or
a bound. Shapes: R ranks, E edges.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from placer.base.arrays import FloatArray, IntArray
from placer.cost.custom import TRAFFIC
from placer.cost.step import Step
from placer.job.edges import EDGE_AXES, group_edges
from placer.job.traffic import Group
from placer.solve.problem.compiled import Problem

# What a byte is worth that compute hides at present.
HIDDEN = 0.05
# Members from which on not all pairs of a group become edges, and the edges a member
# then has: random cycles, which are as hard to cut anywhere.
MANY, CYCLES = 24, 8
# Bytes that cross each of two halves of a ring, in buffers, by collective.
PASSES = {"all_reduce": 2.0, "all_gather": 1.0, "reduce_scatter": 1.0}


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
    flows = (
        *_of_axes(step),
        *_of_groups(problem.seed, step),
        *_of_traffic(step),
        *_of_roles(problem, step),
    )
    for pairs, weight in flows:
        edges.append(pairs)
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


def _of_roles(problem: Problem, step: Step) -> Iterator[tuple[IntArray, FloatArray]]:
    """What instances of roles send inside; what nobody waits for counts less."""
    for time in step.roles:
        share = time.role.steps * (1.0 if time.seconds == step.roles_s else HIDDEN)
        for offset, own in zip(time.role.offsets, time.steps, strict=True):
            for edges, weight in (*_of_axes(own), *_of_groups(problem.seed, own)):
                yield edges + offset, share * weight


def _of_axes(step: Step) -> Iterator[tuple[IntArray, FloatArray]]:
    """Edges of each axis that the model makes busy, and the bytes of one of them."""
    parallelism, exposed = step.model.job.parallelism, step.exposed_s()
    for axis, traffic in step.traffic().items():
        if axis not in EDGE_AXES or parallelism.size(axis) < 2:
            continue
        edges = group_edges(axis, parallelism.ranks_of_group[axis])
        share = 1.0 if exposed[axis] > 0 else HIDDEN
        sent = share * float(traffic.bytes_by_tier.sum())
        yield edges, np.full(len(edges), sent / len(edges))


def _of_groups(seed: int, step: Step) -> Iterator[tuple[IntArray, FloatArray]]:
    """Edges of each group of the user's own, and the bytes of one of them."""
    rng, job = np.random.default_rng(seed), step.model.job
    for group in job.groups:
        share = 1.0 if step.exposed_custom_s[group.name] > 0 else HIDDEN
        by_size: dict[int, list[int]] = {}
        for index, ranks in enumerate(group.ranks):
            by_size.setdefault(len(ranks), []).append(index)
        for size, rows in by_size.items():
            # A group of all ranks has a part of itself everywhere.
            if 1 < size < job.world_size:
                members = np.array([group.ranks[row] for row in rows])
                edges, weight = _edges(group, members, rng)
                each = share * group.per_step * weight
                yield edges, np.full(len(edges), each)


def _of_traffic(step: Step) -> Iterator[tuple[IntArray, FloatArray]]:
    """The flows of the job's traffic, and their bytes."""
    traffic = step.model.job.traffic
    if traffic is not None:
        share = 1.0 if step.exposed_custom_s[TRAFFIC] > 0 else HIDDEN
        edges = np.stack((traffic.senders, traffic.receivers), axis=1)
        yield edges, share * traffic.size_bytes


def _edges(
    group: Group, members: IntArray, rng: np.random.Generator
) -> tuple[IntArray, float]:
    """Edges inside each row of members, and the bytes of one run on each."""
    size = members.shape[1]
    if group.collective in ("send_recv", "relay"):
        return group_edges("pp", members), group.size_bytes
    # The pairs of a group send this in sum, either way.
    total = group.size_bytes * PASSES.get(group.collective, size / 2) * (size - 1) / 2
    if size < MANY:
        edges = group_edges("ep", members)
    else:
        turned = [rng.permuted(members, axis=1) for _ in range(CYCLES)]
        edges = np.concatenate([group_edges("dp", rows) for rows in turned])
    return edges, total * len(members) / len(edges)
