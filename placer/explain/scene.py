"""Ranks, groups and hosts of a placement: where, with whom they talk, what for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from placer.base.arrays import IntArray
from placer.cost.fabric import Fabric
from placer.cost.step import StepModel
from placer.explain.exchanges import exchanges
from placer.explain.group_cost import GroupCosts
from placer.explain.ways import by_tier
from placer.job.model import Job
from placer.solve.problem.compiled import Objective
from placer.topology.model import Topology

MOST_MESSAGES = 8


@dataclass(frozen=True, eq=False)
class Part:
    """Ranks whose groups are counted as one: of a job, or of an instance of a role."""

    prefix: str  # before the axis in the name of a group: empty, or ``rollout:3.``
    first: int  # its first rank
    topology: Topology
    job: Job
    gpu_of_rank: IntArray  # (R,): of its own ranks

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

    def slowest_through(self, ranks: Sequence[int]) -> Iterator[dict[str, Any]]:
        """The slowest group of each axis that some ranks are in, of how many."""
        own = [rank for rank in ranks if self.holds(rank)]
        for axis in self.costs.axes:
            groups = {self.group_of_rank(axis, rank) for rank in own}
            known = sorted(group for group in groups if group is not None)
            facts = [self.facts(axis, group) for group in known]
            if facts:
                slowest = max(facts, key=lambda entry: entry.get("seconds", 0.0))
                yield {"through": len(facts), **slowest}


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
        sent = np.bincount(tiers, sizes, len(names))
        largest = np.lexsort((partners, -sizes))[:MOST_MESSAGES]
        yield (
            way,
            {
                "bytes": float(sizes.sum()),
                "ranks": len(mine),
                "bytes_by_tier": by_tier(fabric, sent),
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


@dataclass(frozen=True, eq=False)
class Scene:
    """A placement and all that can be asked about it."""

    topology: Topology
    job: Job
    goal: Objective
    gpu_of_rank: IntArray  # (R,)

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """The job, or the instances of its roles."""
        return parts_of(self.topology, self.job, self.gpu_of_rank)

    def part_of(self, axis: str) -> Part | None:
        """The part that an axis is named of; None for a role that there is not."""
        named = (part for part in self.parts if axis.startswith(part.prefix))
        return next(named, None)

    @cached_property
    def node_of_rank(self) -> IntArray:
        """Node of every rank; shape (R,)."""
        return self.topology.node_of_gpu[self.gpu_of_rank]

    def rank(self, rank: int, share: float) -> dict[str, Any]:
        """One rank: where it is, each group it is in, its exchanges."""
        found = self._seat(rank) | {
            **self._place(int(self.node_of_rank[rank])),
            "coordinates": self._coordinates(rank),
            "groups": [],
        }
        part = next(part for part in self.parts if part.holds(rank))
        for axis in part.costs.axes:
            group = part.group_of_rank(axis, rank)
            if group is not None:
                facts = part.facts(axis, group, rank)
                for hops in facts["neighbours"].values():
                    for hop in hops:
                        hop |= self._seat(hop["rank"])
                found["groups"].append(facts)
        sent = dict(messages(self.topology, self.job, self.gpu_of_rank, rank))
        for way in sent.values():
            for message in way["largest"]:
                message |= self._seat(message["rank"])
        if sent:
            found["messages"] = sent
        return found | {"exchanges": self._exchanges([rank], share)}

    def group(self, name: str, share: float) -> dict[str, Any]:
        """One group: where its members are, what it costs, its exchanges."""
        axis, index = name_parts(name)
        part = self.part_of(axis)
        if part is None:
            raise ValueError(f"no role has {axis}")
        facts = part.facts(axis.removeprefix(part.prefix), index)
        return {
            "group": f"{axis}:{index}",
            "facts": facts,
            "members": self._members(facts["ranks"]),
            "exchanges": self._exchanges(facts["ranks"], share, axis),
        }

    def host(self, name: str, share: float) -> dict[str, Any]:
        """One host: its ranks, the slowest of their groups on each axis, exchanges."""
        node = self.topology.node_names.index(name)
        ranks = np.flatnonzero(self.node_of_rank == node).tolist()
        return {
            "host": name,
            **self._place(node),
            "ranks": self._members(ranks),
            "groups": [
                entry for part in self.parts for entry in part.slowest_through(ranks)
            ],
            "exchanges": self._exchanges(ranks, share),
        }

    def _exchanges(
        self, ranks: Sequence[int], share: float, axis: str = ""
    ) -> list[dict[str, Any]]:
        """The exchanges, each with the hosts of the other unit.

        Those with other groups of ``axis`` among them, where these are of one size.
        """
        groups = None if self.job.roles else self.parts[0].costs.axes.get(axis)
        found = exchanges(
            self.topology,
            self.job,
            self.goal,
            self.gpu_of_rank,
            np.array(ranks, dtype=np.int64),
            share,
            {f"{axis} group": groups} if isinstance(groups, np.ndarray) else {},
        )
        names = self.topology.node_names
        for kind in found:
            for key in ("best", "next", "best_illegal"):
                if kind[key] is not None:
                    nodes = self.node_of_rank[kind[key]["with"]]
                    kind[key]["hosts"] = [*dict.fromkeys(names[n] for n in nodes)]
        return found

    def _members(self, ranks: Sequence[int]) -> list[dict[str, Any]]:
        return [
            self._seat(rank) | {"coordinates": self._coordinates(rank)}
            for rank in ranks
        ]

    def _seat(self, rank: int) -> dict[str, Any]:
        node = int(self.node_of_rank[rank])
        return {
            "rank": rank,
            "host": self.topology.node_names[node],
            "gpu": int(self.topology.index_of_gpu[self.gpu_of_rank[rank]]),
        }

    def _place(self, node: int) -> dict[str, Any]:
        """``domains`` around a node, and its ``compute_factor`` where it is slow."""
        topology = self.topology
        rows = zip(
            topology.tiers,
            topology.domain_names,
            topology.domain_of_node[:, node].tolist(),
            strict=True,
        )
        domains = {tier.name: names[domain] for tier, names, domain in rows}
        speed = float(topology.speed_of_node[node])
        return {"domains": domains} | ({"compute_factor": speed} if speed < 1 else {})

    def _coordinates(self, rank: int) -> dict[str, int]:
        """Coordinates on the axes that have several ranks; of experts, where apart.

        Of a workload, the instance by the name of its role.
        """
        axes = self.job.parallelism
        for role in self.job.roles:
            if role.first_rank <= rank < role.first_rank + role.world_size:
                return {role.name: (rank - role.first_rank) // role.job.world_size}
        experts = ("etp", "ep", "edp") if axes.divides_experts else ()
        shown = ("tp", "cp", "pp", "dp", *experts)
        return {
            axis: int(axes.coordinates[axis][rank])
            for axis in shown
            if axes.size(axis) > 1
        }


def name_parts(name: str) -> tuple[str, int]:
    """Axis and index of ``pp:37``; -1 where that is no number."""
    axis, _, index = name.rpartition(":")
    plain = index.isascii() and index.isdecimal() and len(index) < 10
    return axis, int(index) if plain else -1
