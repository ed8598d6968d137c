"""The slowest group of each axis beside the fastest: where they lie and what differs.

Shapes: R ranks, n members of a group.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from placer.base.arrays import FloatArray, IntArray
from placer.cost.fabric import Fabric
from placer.cost.links import Traffic
from placer.cost.rings import build_rings
from placer.cost.step import Step
from placer.explain.ways import child_name, ways

Facts = dict[str, Any]

# What one number of `group_seconds` counts.
OPERATIONS = {
    "tp": "one collective",
    "cp": "the keys and values of one layer",
    "ep": "one all-to-all",
    "pp": "one message on every hop",
    "dp": "reducing one chunk",
}
SAME = 1e-9  # relative difference below which two groups are as fast


def worst_groups(step: Step, gpu_of_rank: IntArray) -> dict[str, Facts]:
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
        same = worst["seconds"] - best["seconds"] <= SAME * worst["seconds"]
        found[axis] = {
            "operation": OPERATIONS[axis],
            "groups": len(members),
            "worst": worst,
            "best": best,
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

    def facts(self, group: int, seconds: float) -> Facts:
        """Where a group lies, as `where` has it, and its ``seconds`` of one operation.

        ``fullest_uplink`` is the one on its way that this axis keeps busy longest, for
        ``busy_s`` a step; None inside one scale-up domain and where the traffic is not
        known.
        """
        where = self.where(group)
        return {
            "group": group,
            "ranks": tuple(self.members[group].tolist()),
            "seconds": seconds,
            **where,
            "fullest_uplink": self._fullest_uplink(group, where["common_tier"]),
        }

    def where(self, group: int) -> Facts:
        """Where a group lies, groups counted by their first rank.

        ``common_tier`` is the lowest of which one domain holds all members; ``domains``
        are those that it touches at each tier, ``members`` those in each scale-up
        domain, ``hops`` those between members (ring, chain or pairs) by tier. In a
        scale-up domain it drives so many ``nics``: its members in the one that has the
        fewest. ``slowest_node`` reaches ``bandwidth_factor`` of the nominal bandwidth.
        """
        fabric, topology = self.fabric, self.fabric.topology
        gpus = self.gpu_of_rank[self.members[group]]
        tiers = [tier.name for tier in topology.tiers]
        common = int(fabric.common_tier(gpus[None])[0])
        islands, counts = np.unique(
            fabric.scale_up_domain_of_gpu[gpus], return_counts=True
        )
        slowest = gpus[fabric.factor_of_gpu[gpus].argmin()]
        return {
            "common_tier": tiers[common],
            "domains": {
                tier: len(np.unique(row[gpus]))
                for tier, row in zip(tiers, fabric.domain_of_gpu, strict=True)
            },
            "members": {
                child_name(fabric, fabric.scale_up_tier + 1, int(island)): int(count)
                for island, count in zip(islands, counts, strict=True)
            },
            "hops": dict(zip(tiers, self._hops(gpus).tolist(), strict=True)),
            "nics": int(counts.min()),
            "slowest_node": topology.host_names[topology.host_of_gpu[slowest]],
            "bandwidth_factor": float(fabric.factor_of_gpu[slowest]),
        }

    def harms(self, worst: Facts, best: Facts) -> list[str]:
        """Names of the facts in which ``worst`` is worse than ``best``."""
        tiers = [tier.name for tier in self.fabric.topology.tiers]
        outermost_first = tiers[: self.fabric.scale_up_tier : -1]
        ring = self.axis in ("tp", "dp")
        tier, usual = (tiers.index(one["common_tier"]) for one in (worst, best))
        spans, fewer = len(worst["members"]), len(best["members"])
        hops, less = (
            [one["hops"][t] for t in outermost_first] for one in (worst, best)
        )
        busy, idle = (
            one["fullest_uplink"]["busy_s"] if one["fullest_uplink"] else 0.0
            for one in (worst, best)
        )
        worse = {
            "common_tier": tier > usual,
            "members": self.axis != "pp" and spans > fewer,
            # Only rings spread a hop over several NICs.
            "nics": ring and min(spans, fewer) > 1 and worst["nics"] < best["nics"],
            "bandwidth_factor": worst["bandwidth_factor"] < best["bandwidth_factor"],
            "hops": hops > less,
            "fullest_uplink": busy > idle * (1 + SAME),
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

    def _fullest_uplink(self, group: int, common_tier: str) -> Facts | None:
        """The uplink of the members' domains that the axis keeps busy longest."""
        if self.traffic is None:
            return None
        gpus, load = self.gpu_of_rank[self.members[group]], self.traffic.load
        common = self.fabric.topology.tier_index(common_tier)
        found = [
            (float(way.busy_s(load)[link]), -way.tier, way.kind, link, way)
            for way in ways(self.fabric)
            if way.tier <= common
            for link in np.flatnonzero(way.touches(gpus)).tolist()
        ]
        if not found:
            return None
        busy_s, *_, link, way = max(found, key=lambda entry: entry[:4])
        return {**way.name(link), "busy_s": busy_s}
