"""What one group costs: where it lies, its links, its bytes, and who waits for it.

Axes are called ``tp``, ``cp``, ``ep``, ``pp``, ``dp`` (the gradient group: data and
context parallel ranks that share parameters; with HSDP the shard group) and ``edp``
(the same of experts). ``dp_replicate`` and ``edp_replicate`` are HSDP's groups of equal
shards; any other name is a group of the user's own. Groups of an axis are counted by
their first rank, the user's own as the job lists them. Shapes: R ranks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from placer.base.arrays import BoolArray, FloatArray, IntArray
from placer.cost.gradients import sync_groups
from placer.cost.links import Cost, LinkLoad, total_load
from placer.cost.network import Network, PlacedNetwork
from placer.cost.rings import build_rings
from placer.cost.step import Step, StepModel
from placer.explain.ways import by_tier, ways
from placer.explain.worst_groups import OPERATIONS, SAME, PlacedGroups
from placer.job.edges import EDGE_AXES, LIKE_AXIS

_ONE = "one operation"


@dataclass(frozen=True, eq=False)
class GroupCosts:
    """The groups of a job on their GPUs, and what each costs."""

    step: Step  # of the whole job
    gpu_of_rank: IntArray  # (R,)

    @property
    def model(self) -> StepModel:
        """The cost model of the job on the machine."""
        return self.step.model

    @cached_property
    def axes(self) -> dict[str, IntArray | tuple[IntArray, ...]]:
        """Groups by axis, the ranks of each; axes of single ranks are left out."""
        job = self.model.job
        members = {
            axis: job.parallelism.ranks_of_group[axis]
            for axis in EDGE_AXES
            if axis in (*self.step.stage_times, *job.weights)
        }
        members |= self._sync_groups
        found: dict[str, IntArray | tuple[IntArray, ...]] = {
            axis: groups for axis, groups in members.items() if groups.shape[1] > 1
        }
        for group in job.groups:
            if max(map(len, group.ranks), default=0) > 1:
                found[group.name] = tuple(np.array(ranks) for ranks in group.ranks)
        return found

    @cached_property
    def _sync_groups(self) -> dict[str, IntArray]:
        """Gradient groups by axis; those that are another axis' are its part."""
        found: dict[str, IntArray] = {}
        for axis, members in sync_groups(self.model.job, self.model.volumes).items():
            if not any(np.array_equal(members, known) for known in found.values()):
                found[axis] = members
        return found

    def group_of_rank(self, axis: str, rank: int) -> int | None:
        """The group of an axis that a rank shares with others; None without one."""
        groups = self.axes[axis]
        if isinstance(groups, np.ndarray):
            return int((groups == rank).any(axis=1).argmax())
        return next(
            (g for g, ranks in enumerate(groups) if len(ranks) > 1 and rank in ranks),
            None,
        )

    def worst(self) -> dict[str, Any] | None:
        """The slowest group of the axis that adds most to the step, as plain data.

        ``axis``, ``group`` of ``groups``, its first ``rank`` and how many ``ranks``;
        ``exposed_s`` of the axis, ``seconds`` of one ``operation``, ``common_tier``,
        the scale-up ``domains`` that it touches and how many groups are ``as_slow``.
        None where nothing is exposed.
        """
        exposed, noise = self._exposed, SAME * self.step.step_time_s
        known = [axis for axis in self.axes if exposed.get(axis, 0.0) > noise]
        axis = max(known, key=lambda name: exposed[name], default="")
        seconds = self.seconds(axis)
        if seconds is None:
            return None
        group = int(seconds.argmax())
        ranks, longest = self.axes[axis][group], float(seconds[group])
        where = self._placed(axis, ranks).where(0)
        return {
            "axis": axis,
            "group": group,
            "groups": len(seconds),
            "rank": int(ranks[0]),
            "ranks": len(ranks),
            "exposed_s": exposed[axis],
            "seconds": longest,
            "operation": OPERATIONS.get(axis, _ONE),
            "common_tier": where["common_tier"],
            "domains": len(where["members"]),
            "as_slow": int((seconds >= longest * (1 - SAME)).sum()),
        }

    def facts(self, axis: str, group: int, rank: int | None = None) -> dict[str, Any]:
        """Where a group lies and what it costs, as plain data.

        ``seconds`` is one operation, ``fastest_s`` and ``slowest_s`` those of the
        groups of the axis, of which ``as_slow`` are as slow as this one or slower;
        ``exposed_s`` is what all of ``exposed_axis`` adds to the step, ``alone_s`` what
        the step would be shorter if this group took no time. ``bytes_by_tier`` is what
        the group sends in a step, ``links`` the uplinks that it loads, busiest first.
        Where the job has no model only ``hop_cost`` is known.

        Given a ``rank`` of the group, ``neighbours`` are those it sends to and receives
        from, and only the uplinks of its own domains are listed.
        """
        ranks = self.axes[axis][group]
        placed = self._placed(axis, ranks)
        timed = self._timed(axis, group, rank)
        where, fabric = placed.where(0), self.model.fabric
        common = fabric.topology.tier_index(where["common_tier"])
        found = {
            "axis": axis,
            "group": group,
            "groups": len(self.axes[axis]),
            "ranks": ranks.tolist(),
            **where,
            # What a GPU of the slowest node reaches at each tier up to the common one.
            "bandwidth": {
                tier.name: float(fabric.bandwidth[t] * where["bandwidth_factor"])
                for t, tier in enumerate(fabric.topology.tiers[: common + 1])
            },
            **timed,
        }
        if self.model.job.weights:
            found["hop_cost"] = self._hop_cost(ranks)
        if rank is not None:
            found["neighbours"] = self._neighbours(placed, ranks, rank)
        return found

    @cached_property
    def _network(self) -> PlacedNetwork:
        return PlacedNetwork(self.model.fabric, self.gpu_of_rank)

    @cached_property
    def _exposed(self) -> dict[str, float]:
        return self.step.exposed_s()

    @cached_property
    def _load(self) -> LinkLoad | None:
        return total_load(self.step.traffic().values())

    def _placed(self, axis: str, ranks: IntArray) -> PlacedGroups:
        """The one group, its members in the order in which they send."""
        job = self.model.job
        kind = {"edp": "dp", "dp_replicate": "dp", "edp_replicate": "dp"}.get(
            axis, axis
        )
        for group in job.groups:
            if group.name == axis:
                kind = LIKE_AXIS.get(group.collective, "dp")
        opened = kind == "pp" and (axis != "pp" or job.parallelism.vp == 1)
        return PlacedGroups(
            self.model.fabric,
            kind,
            self.gpu_of_rank,
            ranks[None],
            None,
            len(ranks) - opened,
        )

    def _timed(self, axis: str, group: int, rank: int | None) -> dict[str, Any]:
        """What the cost model knows of a group; nothing where it has no such axis."""
        seconds = self.seconds(axis)
        if seconds is None or len(self.axes[axis][group]) == 1:
            return {}
        is_member = np.zeros(len(self.gpu_of_rank), dtype=bool)
        is_member[self.axes[axis][group]] = True
        only = OneGroup(self._network, is_member, self._sync_groups.get(axis))
        shadow = self.model.step_on(only)
        # Gradients of all kinds are one sum.
        of_axis = axis if axis in self.step.traffic() else "dp"
        traffic = shadow.traffic()[of_axis]
        own = float(seconds[group])
        alone = self.step.step_time_s - self._without(axis, shadow).step_time_s
        return {
            "operation": OPERATIONS.get(of_axis, _ONE),
            "seconds": own,
            "fastest_s": float(seconds.min()),
            "slowest_s": float(seconds.max()),
            "as_slow": int((seconds >= own * (1 - SAME)).sum()),
            "exposed_axis": of_axis,
            "exposed_s": self._exposed[of_axis],
            "alone_s": max(alone, 0.0),
            "bytes_by_tier": by_tier(self.model.fabric, traffic.bytes_by_tier),
            "links": sorted(
                self._links(traffic.load, rank), key=lambda link: -link["busy_s"]
            ),
        }

    def seconds(self, axis: str) -> FloatArray | None:
        """One operation of every group of an axis, s; None where it is not known."""
        if axis in self.step.stage_times:
            return self.step.stage_times[axis].group_seconds
        if axis in self.step.custom:
            return self.step.custom[axis].group_seconds
        return self.step.sync.group_seconds.get(axis) if self.step.sync else None

    def _without(self, axis: str, shadow: Step) -> Step:
        """The step in which one axis takes what it does in ``shadow``."""
        step = self.step
        if axis in step.stage_times:
            times = {**step.stage_times, axis: shadow.stage_times[axis]}
            return replace(step, stage_times=times)
        if axis in step.custom:
            return replace(step, custom={**step.custom, axis: shadow.custom[axis]})
        return replace(step, sync=shadow.sync)

    def _links(self, own: LinkLoad, rank: int | None) -> Iterator[dict[str, Any]]:
        """The shared links with bytes of a group, of all domains or those of a rank."""
        load = self._load
        if load is None:
            return
        for way in ways(self.model.fabric):
            sent, total = way.bytes_of(own), way.bytes_of(load)
            loaded = sent > 0
            if rank is not None:
                loaded &= way.begins_at(self.gpu_of_rank[rank])
            for link in np.flatnonzero(loaded).tolist():
                capacity = float(way.capacity[link])
                yield {
                    **way.name(link),
                    "bandwidth": capacity,
                    "bytes": float(sent[link]),
                    "share": float(sent[link] / total[link]),
                    "busy_s": float(total[link] / capacity),
                }

    def _hop_cost(self, ranks: IntArray) -> float:
        """Hop cost of the edges inside a group, of all axes."""
        is_member = np.zeros(len(self.gpu_of_rank), dtype=bool)
        is_member[ranks] = True
        hops, total = self.model.hops, 0.0
        for _, weight, edges in hops.axes:
            inside = edges[is_member[edges].all(axis=1)]
            tiers = self.model.fabric.tier_between(*self.gpu_of_rank[inside.T])
            total += float(weight * hops.distance[tiers].sum())
        return total

    def _neighbours(
        self, placed: PlacedGroups, ranks: IntArray, rank: int
    ) -> dict[str, list[dict[str, Any]]]:
        """Whom a rank of a group sends to and receives from, and the tiers.

        In a ring or chain the next and the previous one, in NCCL's order where the
        collective is NCCL's; everybody where all talk to all.
        """
        if placed.axis == "ep":
            return {"all": self._hops_to(rank, ranks[ranks != rank])}
        order = ranks
        if placed.axis in ("tp", "dp"):
            gpus = self.gpu_of_rank[ranks]
            ring = build_rings(placed.fabric, gpus[None]).gpus[0]
            by_gpu = np.argsort(gpus)
            order = ranks[by_gpu[np.searchsorted(gpus[by_gpu], ring)]]
        at = int(np.flatnonzero(order == rank)[0])
        found = {}
        if at < placed.num_hops:
            found["next"] = self._hops_to(rank, order[[(at + 1) % len(order)]])
        if (at - 1) % len(order) < placed.num_hops:
            found["previous"] = self._hops_to(rank, order[[at - 1]])
        return found

    def _hops_to(self, rank: int, others: IntArray) -> list[dict[str, Any]]:
        at, tiers = self.gpu_of_rank, self.model.fabric.topology.tiers
        hops = self.model.fabric.tier_between(at[rank], at[others])
        return [
            {"rank": other, "tier": tiers[hop].name}
            for other, hop in zip(others.tolist(), hops.tolist(), strict=True)
        ]


@dataclass(frozen=True, eq=False)
class OneGroup(Network):
    """The network as if one group took no time and were alone on the links.

    What the cost model makes of it is the step without the waiting for that group, and
    the group's own share of every count of bytes. Groups of one axis share no ranks, so
    a row of ranks belongs to the group when all of them do.
    """

    whole: PlacedNetwork  # with all groups
    is_member: BoolArray  # (R,): which ranks are in the group
    # (g, n): groups of an axis: collectives of others are not the group's, be it of the
    # same ranks.
    axis: IntArray | None = None

    def gather(self, members: IntArray, size_bytes: float) -> Cost:
        """One reduce-scatter or all-gather in every row of ``members``."""
        return self._free(lambda rows: self.whole.gather(rows, size_bytes), members)

    def all_reduce(
        self, members: IntArray, size_bytes: float, algorithm: str = "auto"
    ) -> Cost:
        """One all-reduce in every row of ``members``."""
        cost = self.whole.all_reduce(members, size_bytes, algorithm)
        own = self._own(members)

        def alone() -> Cost:
            chosen = str(cost.algorithms[own][0])
            return self.whole.all_reduce(members[own], size_bytes, chosen)

        return _free(cost, own, alone)

    def all_to_all(self, members: IntArray, size_bytes: float, copies: int = 0) -> Cost:
        """One all-to-all in every row of ``members``."""
        run = self.whole.all_to_all
        return self._free(lambda rows: run(rows, size_bytes, copies), members)

    def send(self, senders: IntArray, receivers: IntArray, size_bytes: float) -> Cost:
        """A message from each sender to its receiver."""
        cost = self.whole.send(senders, receivers, size_bytes)
        ends = np.stack((senders, receivers), axis=-1).reshape(len(senders), -1)
        own = np.all(self.is_member[ends], axis=1)
        mine = senders[own], receivers[own]
        return _free(cost, own, lambda: self.whole.send(*mine, size_bytes))

    def pass_on(self, members: IntArray, size_bytes: float) -> Cost:
        """A message from each member of a row to the next one, around it."""
        return self._free(lambda rows: self.whole.pass_on(rows, size_bytes), members)

    def flows(
        self,
        senders: IntArray,
        receivers: IntArray,
        size_bytes: FloatArray,
        pair_share: float = 1.0,
    ) -> Cost:
        """Messages of any sizes between ranks, which are of no group."""
        cost = self.whole.flows(senders, receivers, size_bytes, pair_share)
        return replace(cost, traffic=cost.traffic.times(0.0))

    def stays_inside(self, members: IntArray) -> BoolArray:
        """Whether each row of ``members`` lies in one scale-up domain."""
        return self.whole.stays_inside(members)

    def speed(self, members: IntArray) -> FloatArray:
        """Share of the usual speed of the slowest rank of each row; shape (g,)."""
        return self.whole.speed(members)

    def _free(self, run: Callable[[IntArray], Cost], members: IntArray) -> Cost:
        """What an operation of all rows costs without the group."""
        own = self._own(members)
        return _free(run(members), own, lambda: run(members[own]))

    def _own(self, members: IntArray) -> BoolArray:
        """Which rows are the group; shape (g,)."""
        size = np.count_nonzero(self.is_member)
        is_other = self.axis is not None and not np.array_equal(self.axis, members)
        if members.shape[1] != size or is_other:
            return np.zeros(len(members), dtype=bool)
        own: BoolArray = np.all(self.is_member[members], axis=1)
        return own


def _free(cost: Cost, own: BoolArray, alone: Callable[[], Cost]) -> Cost:
    """The seconds of all with the group's own at 0, and the bytes of the group."""
    if not own.any():
        return replace(cost, traffic=cost.traffic.times(0.0))
    seconds = cost.seconds.copy()
    seconds[own] = 0.0
    return replace(cost, seconds=seconds, traffic=alone().traffic)
