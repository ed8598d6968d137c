"""What has to be done to go from one plan to another: nodes, ranks, state."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from placer.base.arrays import FloatArray, IntArray
from placer.base.errors import InputError
from placer.cost.volumes import volumes
from placer.job.axes import Parallelism, unlike_sizes
from placer.job.model import Job
from placer.placement.launcher_orders import in_natural_order
from placer.placement.plan import Plan
from placer.report.moves import Matching, moved_ranks

OPTIMIZER_BYTES = 12.0


@dataclass(frozen=True, eq=False)
class _Held:
    """What nodes hold of one part of the state under one plan."""

    kind: str  # ``parameters`` or ``optimizer``
    shard_bytes: FloatArray  # (P,), bytes: of one shard, by pipeline stage
    intervals: int  # how many a shard is cut into
    # Node, stage and shard of the stage -> the intervals that are there.
    on_node: Mapping[tuple[str, int, int], set[int]]

    def missing(self, before: _Held) -> float:
        """Bytes of this that the nodes did not hold before."""
        m, n = self.intervals, before.intervals
        total = 0.0
        for key, needed in self.on_node.items():
            had = before.on_node.get(key, set())
            if m == n:
                overlap = len(needed & had) * n
            else:
                # What [j/m, (j+1)/m) and [i/n, (i+1)/n) have in common, of 1/(mn).
                overlap = sum(
                    max(0, min((j + 1) * n, (i + 1) * m) - max(j * n, i * m))
                    for j in needed
                    for i in had
                )
            total += (len(needed) * n - overlap) / (m * n) * self.shard_bytes[key[1]]
        return float(total)


def bytes_to_receive(old: Plan, new: Plan, job: Job) -> dict[str, float] | None:
    """Bytes that nodes receive to go from ``old`` to ``new``: parameters, optimizer.

    None when the job has no model, or the plans record no axes or other virtual stages.
    """
    before, after = old.axes, new.axes
    if job.model is None or before is None or after is None or before.vp != after.vp:
        return None
    for axes in (before, after):
        if unlike := unlike_sizes(job.parallelism, axes):
            raise InputError(f"the job is not that of the plans: {', '.join(unlike)}")
    totals = {"parameters": 0.0, "optimizer": 0.0}
    there = _state(old, job, before)
    for was, needed in zip(there, _state(new, job, after), strict=True):
        totals[needed.kind] += needed.missing(was)
    return totals


def _state(plan: Plan, job: Job, axes: Parallelism) -> list[_Held]:
    """All parts of the state: parameters and optimizer, dense and expert."""
    job = replace(job, parallelism=axes)
    sizes = volumes(job)
    at = axes.coordinates
    expert = at["ep"] * axes.etp + at["etp"]
    found = []
    for group, parameters, shard in (
        ("dp_cp", sizes.dense_parameters, at["tp"]),
        ("edp", sizes.expert_parameters, expert),
    ):
        held = parameters(frozen=True).sum(axis=1)
        if not held.any():
            continue
        trained = parameters().sum(axis=1)
        members = axes.ranks_of_group[group]
        place = np.empty(axes.world_size, dtype=np.int64)
        place[members] = np.arange(members.shape[1])
        for kind, size_bytes in (
            ("parameters", held * job.bytes.parameter_gather),
            ("optimizer", trained * OPTIMIZER_BYTES),
        ):
            intervals = _intervals(job, members.shape[1], kind)
            on_node = _on_node(plan, at["pp"], shard, place % intervals)
            found.append(_Held(kind, size_bytes, intervals, on_node))
    return found


def _on_node(
    plan: Plan, stage: IntArray, shard: IntArray, interval: IntArray
) -> Mapping[tuple[str, int, int], set[int]]:
    found: dict[tuple[str, int, int], set[int]] = defaultdict(set)
    lists = (values.tolist() for values in (stage, shard, interval))
    for host, at_stage, at_shard, index in zip(plan.host_of_rank, *lists, strict=True):
        found[host, at_stage, at_shard].add(index)
    return found


def _intervals(job: Job, members: int, kind: str) -> int:
    """How many intervals a gradient group cuts this kind of state into."""
    mode, axes = job.data_parallel, job.parallelism
    whole = mode.sharding in ("zero1", "zero2") and kind == "parameters"
    if mode.sharding == "ddp" or whole:
        return 1
    return mode.shard_members(members, axes.dp * axes.cp)


def restart(
    old: Plan, new: Plan, matching: Matching, job: Job | None
) -> dict[str, Any]:
    """The work of going from ``old`` to ``new``, as plain data.

    ``nodes``: those that held or hold a rank which moved, starts or stops, in natural
    order. ``ranks_started`` and ``ranks_stopped``: those that only the new, only the
    old plan has. ``state_bytes``: what nodes must receive to go to the new placement,
    and back again; None without a job that has a model.
    """
    old_moved, new_moved = moved_ranks(old, new, matching)
    stopped = np.setdiff1d(np.arange(old.world_size), matching.old_rank)
    started = np.setdiff1d(np.arange(new.world_size), matching.new_rank)
    nodes = {
        plan.nodes[node]
        for plan, ranks in ((old, (old_moved, stopped)), (new, (new_moved, started)))
        for node in np.unique(plan.node_of_rank[np.concatenate(ranks)]).tolist()
    }
    ways = {"to_new": (old, new), "to_old": (new, old)}
    state = {
        way: {**received, "total": sum(received.values())}
        for way, (one, other) in ways.items()
        if job and (received := bytes_to_receive(one, other, job)) is not None
    }
    return {
        "nodes_changed": len(nodes),
        "nodes": in_natural_order(nodes),
        "ranks_started": len(started),
        "ranks_stopped": len(stopped),
        "state_bytes": state or None,
    }
