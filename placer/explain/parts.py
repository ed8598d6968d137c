"""Groups and messages by rank: of a job, or of every instance of a workload's roles."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from placer.base.arrays import IntArray
from placer.cost.fabric import Fabric
from placer.cost.step import StepModel
from placer.explain.group_cost import GroupCosts

if TYPE_CHECKING:
    from placer.job.model import Job
    from placer.topology.model import Topology

MOST_MESSAGES = 8


@dataclass(frozen=True, eq=False)
class Part:
    """Ranks whose groups are counted together: all of a job, or one instance of a role.

    Attributes
    ----------
    prefix : str
        Before the axis in the name of a group: empty, or ``rollout:3.``.
    first : int
        Its first rank.
    topology, job : Topology, Job
    gpu_of_rank : ndarray, shape (R,)
        Of its own ranks.
    """

    prefix: str
    first: int
    topology: Topology
    job: Job
    gpu_of_rank: IntArray

    @cached_property
    def costs(self) -> GroupCosts:
        """What its groups cost, as if it ran alone."""
        model = StepModel(self.topology, self.job)
        return GroupCosts(model.step(self.gpu_of_rank), self.gpu_of_rank)

    def holds(self, rank: int) -> bool:
        """Whether a rank is one of its own."""
        return self.first <= rank < self.first + len(self.gpu_of_rank)

    def group_of_rank(self, axis: str, rank: int) -> int | None:
        """The group of an axis that a rank shares with others; None without one."""
        return self.costs.group_of_rank(axis, rank - self.first)

    def facts(self, axis: str, group: int, rank: int | None = None) -> dict[str, Any]:
        """What `GroupCosts.facts` says, with the names and ranks of the whole job."""
        own = None if rank is None else rank - self.first
        facts = self.costs.facts(axis, group, own)
        facts["axis"] = f"{self.prefix}{axis}"
        facts["ranks"] = [member + self.first for member in facts["ranks"]]
        for hops in facts.get("neighbours", {}).values():
            for hop in hops:
                hop["rank"] += self.first
        return facts


def parts_of(topology: Topology, job: Job, gpu_of_rank: IntArray) -> tuple[Part, ...]:
    """The parts of a job, by rank."""
    if not job.roles:
        return (Part("", 0, topology, job, gpu_of_rank),)
    return tuple(
        Part(
            f"{role.name}:{index}." if role.instances > 1 else f"{role.name}.",
            first,
            topology,
            role.job,
            gpu_of_rank[first : first + role.job.world_size],
        )
        for role in job.roles
        for index, first in enumerate(role.offsets)
    )


def messages(
    topology: Topology, job: Job, gpu_of_rank: IntArray, rank: int
) -> Iterator[tuple[str, dict[str, Any]]]:
    """What a rank ``sends`` and ``receives`` beside its groups, as plain data.

    ``bytes`` to so many ``ranks``, ``bytes_by_tier``, and the ``largest`` messages.
    """
    if job.traffic is None:
        return
    flows, fabric = job.traffic, Fabric.of(topology)
    names = [tier.name for tier in fabric.topology.tiers]
    ways = {
        "sends": (flows.senders, flows.receivers),
        "receives": (flows.receivers, flows.senders),
    }
    for way, (own, others) in ways.items():
        mine = np.flatnonzero(own == rank)
        sizes, partners = flows.size_bytes[mine], others[mine]
        if not len(mine):
            continue
        tiers = fabric.tier_between(gpu_of_rank[rank], gpu_of_rank[partners])
        by_tier = np.bincount(tiers, sizes, len(names))
        largest = np.lexsort((partners, -sizes))[:MOST_MESSAGES]
        yield (
            way,
            {
                "bytes": float(sizes.sum()),
                "ranks": len(mine),
                "bytes_by_tier": {
                    name: float(size)
                    for name, size in zip(names, by_tier, strict=True)
                    if size
                },
                "largest": [
                    {
                        "rank": int(partners[k]),
                        "tier": names[tiers[k]],
                        "bytes": float(sizes[k]),
                    }
                    for k in largest.tolist()
                ],
            },
        )
