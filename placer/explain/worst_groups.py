"""The slowest group of each axis beside the fastest: where they lie and what differs.

Shapes: R ranks, n members of a group.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from placer.base.arrays import FloatArray, IntArray
from placer.cost.fabric import Fabric
from placer.cost.links import Traffic
from placer.cost.rings import build_rings
from placer.cost.step import Step
from placer.explain.ways import child_name, ways

# What one number of `group_seconds` counts.
OPERATIONS = {
    "tp": "one collective",
    "cp": "the keys and values of one layer",
    "ep": "one all-to-all",
    "pp": "one message on every hop",
    "dp": "reducing one chunk",
}
SAME = 1e-9  # relative difference below which two groups are as fast


@dataclass(frozen=True)
class Uplink:
    """A shared uplink or link, and the seconds a step that one axis keeps it busy."""

    tier: str
    domain: str
    direction: str
    busy_s: float


@dataclass(frozen=True)
class GroupFacts:
    """Where one group lies."""

    group: int  # its index, groups counted by their first rank
    ranks: tuple[int, ...]
    seconds: float  # s: one operation
    common_tier: str  # lowest tier of which one domain holds all members
    domains: dict[str, int]  # domains it touches at each tier
    members: dict[str, int]  # members in each scale-up domain
    hops: dict[str, int]  # hops between members (ring, chain or pairs) by tier
    # NICs it drives in a scale-up domain: its members in the one that has the fewest.
    nics: int
    slowest_node: str
    # Share of the nominal bandwidth that the slowest node reaches.
    bandwidth_factor: float
    # The one on its way that this axis keeps busy longest; None inside one scale-up
    # domain and where the traffic is not known.
    fullest_uplink: Uplink | None


def worst_groups(step: Step, gpu_of_rank: IntArray) -> dict[str, dict[str, Any]]:
    """The worst and the best group of every axis, and what sets them apart.

    ``why`` names the facts in which the worst group is the worse one; it is empty when
    all groups take the same time.
    """
    axes, traffic = step.model.job.parallelism, step.traffic()
    found = {}
    for axis, members, seconds in timed_groups(step):
        groups = PlacedGroups(
            step.model.fabric,
            axis,
            gpu_of_rank,
            members,
            traffic[axis],
            axes.hops if axis == "pp" else members.shape[1],
        )
        worst = groups.facts(int(seconds.argmax()), float(seconds.max()))
        best = groups.facts(int(seconds.argmin()), float(seconds.min()))
        same = worst.seconds - best.seconds <= SAME * worst.seconds
        found[axis] = {
            "operation": OPERATIONS[axis],
            "groups": len(members),
            "worst": asdict(worst),
            "best": asdict(best),
            "why": [] if same else groups.harms(worst, best),
        }
    return found


def timed_groups(step: Step) -> Iterator[tuple[str, IntArray, FloatArray]]:
    """Axis, members and seconds of the groups of every axis that has several ranks."""
    ranks_of_group = step.model.job.parallelism.ranks_of_group
    for axis, time in step.stage_times.items():
        yield axis, ranks_of_group[axis], time.group_seconds
    if step.sync is not None and "dp" in step.sync.group_seconds:
        # Shard groups (hsdp) are pieces of the gradient groups, in order.
        seconds = step.sync.group_seconds["dp"]
        members = ranks_of_group["dp_cp"].reshape(len(seconds), -1)
        if members.shape[1] > 1:
            yield "dp", members, seconds


@dataclass(frozen=True, eq=False)
class PlacedGroups:
    """The groups of one axis on a machine."""

    fabric: Fabric
    axis: str
    gpu_of_rank: IntArray
    members: IntArray
    traffic: Traffic | None
    num_hops: int

    def facts(self, group: int, seconds: float) -> GroupFacts:
        """Where ``group`` lies."""
        fabric, topology = self.fabric, self.fabric.topology
        gpus = self.gpu_of_rank[self.members[group]]
        tiers = [tier.name for tier in topology.tiers]
        common = int(fabric.common_tier(gpus[None])[0])
        islands, counts = np.unique(
            fabric.scale_up_domain_of_gpu[gpus], return_counts=True
        )
        slowest = gpus[fabric.factor_of_gpu[gpus].argmin()]
        return GroupFacts(
            group=group,
            ranks=tuple(self.members[group].tolist()),
            seconds=seconds,
            common_tier=tiers[common],
            domains={
                tier: len(np.unique(row[gpus]))
                for tier, row in zip(tiers, fabric.domain_of_gpu, strict=True)
            },
            members={
                child_name(fabric, fabric.scale_up_tier + 1, int(island)): int(count)
                for island, count in zip(islands, counts, strict=True)
            },
            hops=dict(zip(tiers, self._hops(gpus).tolist(), strict=True)),
            nics=int(counts.min()),
            slowest_node=topology.host_names[topology.host_of_gpu[slowest]],
            bandwidth_factor=float(fabric.factor_of_gpu[slowest]),
            fullest_uplink=self._fullest_uplink(gpus, common),
        )

    def harms(self, worst: GroupFacts, best: GroupFacts) -> list[str]:
        """Names of the facts in which ``worst`` is worse than ``best``."""
        tiers = [tier.name for tier in self.fabric.topology.tiers]
        outermost_first = tiers[: self.fabric.scale_up_tier : -1]
        ring = self.axis in ("tp", "dp")
        both_leave = min(len(worst.members), len(best.members)) > 1
        worse = {
            "common_tier": tiers.index(worst.common_tier)
            > tiers.index(best.common_tier),
            "members": self.axis != "pp" and len(worst.members) > len(best.members),
            # Only rings spread a hop over several NICs.
            "nics": ring and both_leave and worst.nics < best.nics,
            "bandwidth_factor": worst.bandwidth_factor < best.bandwidth_factor,
            "hops": [worst.hops[tier] for tier in outermost_first]
            > [best.hops[tier] for tier in outermost_first],
            "fullest_uplink": _busy(worst) > _busy(best) * (1 + SAME),
        }
        return [name for name, holds in worse.items() if holds]

    def _hops(self, gpus: IntArray) -> IntArray:
        """Hops of the group's ring, chain or pairs by tier; shape (T,)."""
        fabric = self.fabric
        if self.axis in ("tp", "dp"):
            tiers = build_rings(fabric, gpus[None]).hop_tier[0]
        elif self.axis == "ep":
            first, second = np.triu_indices(len(gpus), k=1)
            tiers = fabric.tier_between(gpus[first], gpus[second])
        else:
            tiers = fabric.tier_between(gpus, np.roll(gpus, -1))[: self.num_hops]
        return np.bincount(tiers, minlength=fabric.num_tiers)

    def _fullest_uplink(self, gpus: IntArray, common: int) -> Uplink | None:
        """The uplink of the members' domains that the axis keeps busy longest."""
        if self.traffic is None:
            return None
        load = self.traffic.load
        found = [
            (float(way.busy_s(load)[link]), -way.tier, way.kind, link, way)
            for way in ways(self.fabric)
            if way.tier <= common
            for link in np.flatnonzero(way.touches(gpus)).tolist()
        ]
        if not found:
            return None
        busy_s, *_, link, way = max(found, key=lambda entry: entry[:4])
        return Uplink(**way.name(link), busy_s=busy_s)


def _busy(facts: GroupFacts) -> float:
    return facts.fullest_uplink.busy_s if facts.fullest_uplink else 0.0
