"""Whether the hard requirements can hold at all, and if not, what would help."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from placer.errors import InfeasibleError
from placer.solve.problem.colocation import Parts, groups_of, parts_of
from placer.solve.problem.launch import feasible_parts, launch_blocks
from placer.solve.tree.capacity import node_capacity, parent_of_domain, whole_parts

if TYPE_CHECKING:
    from placer.job.model import Job
    from placer.topology.model import Topology

IntArray = npt.NDArray[np.int64]


def infeasible(topology: Topology, job: Job) -> InfeasibleError:
    """The error that says which rule cannot hold, by how much, and what would fit."""
    if job.world_size > topology.num_gpus:
        return InfeasibleError(
            f"the job needs {job.world_size:,} GPUs, the machine "
            f'"{topology.name}" has {topology.num_gpus:,} usable '
            f"({_left_out(topology)})"
            f"\n  hint: {_smaller_job(topology, job)}"
        )
    lines = _counts(topology, job)
    relaxed = smallest_relaxation(topology, job)
    if relaxed is None:
        hint = "no relaxation of the required tiers fits; use fewer ranks or more nodes"
    elif relaxed.require == job.require:
        hint = "use launcher: {ranks: free}; then it fits"
    else:
        changes = [
            f"{axis}={relaxed.require[axis]} instead of {axis}={tier}"
            for axis, tier in job.require.items()
            if relaxed.require[axis] != tier
        ]
        hint = f"it fits with {' and '.join(changes)}"
    return InfeasibleError("\n".join([*lines, f"  hint: {hint}"]))


def smallest_relaxation(topology: Topology, job: Job) -> Job | None:
    """The job with the fewest tiers given up so that it fits, None when none does."""
    tiers = [tier.name for tier in topology.tiers]
    axes = list(job.require)
    levels = [range(tiers.index(job.require[axis]), len(tiers)) for axis in axes]
    choices = sorted(product(*levels), key=lambda choice: (sum(choice), choice))
    for choice in choices:
        require = {axis: tiers[t] for axis, t in zip(axes, choice, strict=True)}
        candidate = replace(job, require=require)
        if feasible_parts(topology, candidate):
            return candidate
    if job.launcher != "free":
        free = replace(job, launcher="free")
        return free if feasible_parts(topology, free) else None
    return None


def _counts(topology: Topology, job: Job) -> list[str]:
    """Lines that say how many parts of each tier are needed and how many fit."""
    blocks = launch_blocks(topology, job)
    if not blocks:
        return [_no_block(topology, job)]
    parts = parts_of(topology, job, blocks[0])
    capacity = node_capacity(topology, parts.block)
    sizes = parts.uniform_sizes()
    if sizes is None:
        return _too_large(topology, job, parts, capacity) or [
            "the required groups cannot be packed into the domains they must lie in "
            f"({', '.join(f'{a}: {t}' for a, t in job.require.items())})"
        ]
    takes = whole_parts(topology, capacity, sizes)
    required = [
        t
        for t, tier in enumerate(topology.tiers[:-1])
        if tier.name in job.require.values()
    ]
    if all(int(takes[t].sum()) >= job.world_size for t in required):
        return [
            f"the {job.world_size:,} ranks do not fit: with {parts.block} consecutive "
            f"ranks on every node, {int(takes[-1].sum()):,} have a place"
        ]
    return [_line(topology, job, takes, sizes, t) for t in required]


def _too_large(
    topology: Topology, job: Job, parts: Parts, capacity: IntArray
) -> list[str]:
    """Lines that name the required groups whose ranks no one domain can take."""
    lines = []
    for axis, name in job.require.items():
        tier = topology.tier_index(name)
        sizes, label = parts.sizes(tier), parts.label[tier]
        room = int(np.bincount(topology.domain_of_node[tier], capacity).max())
        tied = max(int(sizes[label[rows]].max()) for rows in groups_of(job, axis))
        if tied > room:
            lines.append(
                f"{axis} ties {tied:,} ranks together in one {name}: "
                f"the roomiest {name} can take {room:,} ranks"
            )
    return lines


def _line(
    topology: Topology,
    job: Job,
    takes: list[IntArray],
    sizes: tuple[int, ...],
    tier: int,
) -> str:
    """How many parts of a tier are needed, how many fit, and its largest domain."""
    name = topology.tiers[tier].name
    tied = [axis for axis, own in job.require.items() if _within(topology, own, tier)]
    inner = takes[tier - 1][_fullest(topology, takes, tier)] if tier else None
    room = int(topology.gpus_of_node.max()) if inner is None else int(inner.sum())
    return (
        f"{' x '.join(tied)} groups tie {sizes[tier]:,} ranks together in one {name}: "
        f"{job.world_size // sizes[tier]:,} such parts are needed, "
        f"{int(takes[tier].sum()) // sizes[tier]:,} fit "
        f"(the roomiest {name} can take {room:,} ranks)"
    )


def _within(topology: Topology, name: str, tier: int) -> bool:
    return topology.tier_index(name) <= tier


def _fullest(topology: Topology, takes: list[IntArray], tier: int) -> IntArray:
    """Children of the domain of ``tier`` that can take the most ranks."""
    parent = parent_of_domain(topology, tier)
    inside = np.bincount(parent, takes[tier - 1])
    return np.flatnonzero(parent == int(inside.argmax()))


def _no_block(topology: Topology, job: Job) -> str:
    return (
        f"no number of ranks a node divides the {job.world_size:,} ranks and has "
        f"enough nodes of that size ({topology.num_nodes:,} nodes, "
        f"{topology.num_gpus:,} usable GPUs)"
    )


def _left_out(topology: Topology) -> str:
    """Nodes that are not used, by reason."""
    reasons = Counter(topology.unavailable.values())
    if not reasons:
        return "no node is marked unavailable"
    return "left out: " + ", ".join(
        f"{count} x {reason}" for reason, count in sorted(reasons.items())
    )


def _smaller_job(topology: Topology, job: Job) -> str:
    axes = job.parallelism
    most = topology.num_gpus // (axes.world_size // axes.dp)
    if most:
        return f"dp {most} would fit instead of dp {axes.dp}"
    return f"one replica alone takes {axes.world_size // axes.dp:,} GPUs"
