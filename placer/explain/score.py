"""The score of a placement and the facts behind it, as plain data for reports."""

from __future__ import annotations

from heapq import nsmallest
from typing import Any

import numpy as np

from placer.base.arrays import FloatArray, IntArray
from placer.cost.custom import TRAFFIC
from placer.cost.fabric import Fabric
from placer.cost.hop_cost import HopCost
from placer.cost.kinds import batches_of
from placer.cost.links import Traffic, total_load
from placer.cost.step import Step, StepModel
from placer.explain.group_cost import GroupCosts
from placer.explain.ways import Way, by_tier, child_name, ways
from placer.explain.worst_groups import worst_groups
from placer.job.model import Job
from placer.placement.placement import Placement
from placer.topology.machine import Domains

HOTTEST_LINKS = 10
# The keys of a score that are costs.
COSTS = ("step_time_s", "exposed_scale_out_s", "exposed_s", "hop_cost")
MESSAGES = "pipeline messages (pp)"


def score(topology: Domains, job: Job, placement: Placement) -> dict[str, Any]:
    """The score of a placement: seconds by part, crossings, bytes, hottest links.

    Keys and units are those of the plan format; times are seconds. The step has an
    interval where its job says how sure its compute times are. The exposed
    cross-rack time ``exposed_scale_out_s`` is the step time minus that of the same
    placement if every scale-out link were free.
    """
    return score_with(StepModel(topology, job), placement)


def score_with(model: StepModel, placement: Placement) -> dict[str, Any]:
    """The score of a placement by a prepared model, as `score` has it."""
    gpu_of_rank = placement.gpu_of_rank
    step = model.step(gpu_of_rank)
    exposed_scale_out = _exposed_scale_out(step, gpu_of_rank)
    traffic = step.traffic()
    result = {
        "step_time_s": step.step_time_s,
        "compute_s": step.compute_s,
        "bubble_s": step.pipeline_s(()) - step.compute_s,
        "fixed_s": model.fixed_s,
        "exposed_s": step.exposed_s(),
        "exposed_scale_out_s": exposed_scale_out,
        "exposed_scale_out_share": exposed_scale_out / step.step_time_s
        if step.step_time_s
        else 0.0,
        "crossings": crossings(model.fabric, model.job, gpu_of_rank),
        "traffic_bytes": {
            axis: by_tier(model.fabric, item.bytes_by_tier)
            for axis, item in traffic.items()
        },
        "hottest_links": hottest_links(model.fabric, traffic),
        "critical_path": critical_path(step, gpu_of_rank),
    }
    if step.roles:
        result["roles"] = {
            time.role.name: {
                "seconds": time.seconds,
                "slowest_instance": time.slowest_instance,
                "exposed_s": {
                    axis: seconds * time.role.steps
                    for axis, seconds in time.slowest.exposed_s().items()
                    if seconds
                },
            }
            for time in step.roles
        }
    if error := model.job.compute.step_error:
        low = max(1 - error, 0.0) * step.step_time_s
        result["step_time_interval_s"] = [low, (1 + error) * step.step_time_s]
    if (slow := slowest_host(step, gpu_of_rank)) is not None:
        result["slowest_host"] = slow
    worst = GroupCosts(step, gpu_of_rank).worst()
    if worst is not None:
        result["worst_group"] = worst
    if model.job.weights:
        result["hop_cost"] = model.hops.cost(gpu_of_rank)
    return result


def costs_with(model: StepModel, placement: Placement) -> dict[str, Any]:
    """The entries of a score that are costs (`COSTS`)."""
    gpu_of_rank = placement.gpu_of_rank
    step = model.step(gpu_of_rank)
    result = {
        "step_time_s": step.step_time_s,
        "exposed_scale_out_s": _exposed_scale_out(step, gpu_of_rank),
        "exposed_s": step.exposed_s(),
    }
    if model.job.weights:
        result["hop_cost"] = model.hops.cost(gpu_of_rank)
    return result


def _exposed_scale_out(step: Step, gpu_of_rank: IntArray) -> float:
    """Seconds that the same placement would save if every scale-out link were free."""
    free = step.model.free_scale_out.step(gpu_of_rank).step_time_s
    return max(step.step_time_s - free, 0.0)


def crossings(
    fabric: Fabric, job: Job, gpu_of_rank: IntArray
) -> dict[str, dict[str, int]]:
    """How many groups of each axis have their lowest common domain at each tier."""
    axes = job.parallelism
    found = {}
    for axis in ("tp", "cp", "ep", "pp", "dp", "etp", "edp"):
        members = axes.ranks_of_group[axis]
        expert = axis in ("ep", "etp", "edp")
        # The ranks of a workload share no axis.
        if members.shape[1] > 1 and (axes.ep > 1 or not expert) and not job.roles:
            found[axis] = _count_tiers(fabric, gpu_of_rank[members])
    if job.traffic is not None:
        pairs = np.stack((job.traffic.senders, job.traffic.receivers), axis=1)
        found[TRAFFIC] = _count_tiers(fabric, gpu_of_rank[pairs])
    for role in job.roles:
        for axis in ("tp", "cp", "ep", "pp", "dp"):
            if role.job.parallelism.size(axis) > 1:
                rows = np.stack(list(role.groups(axis)))
                found[f"{role.name}.{axis}"] = _count_tiers(fabric, gpu_of_rank[rows])
    counts = _crossings_of_groups(fabric, job, gpu_of_rank)
    for group, row in zip(job.groups, counts, strict=True):
        found[group.name] = by_tier(fabric, row)
    return found


def _crossings_of_groups(fabric: Fabric, job: Job, gpu_of_rank: IntArray) -> IntArray:
    """Crossings of groups of the user's own, a row a kind; shape (K, T)."""
    counts = np.zeros((len(job.groups), fabric.num_tiers), dtype=np.int64)
    # Those of one rank are in no call.
    counts[:, 0] = [sum(len(r) == 1 for r in group.ranks) for group in job.groups]
    for batch in batches_of(job):
        tiers = fabric.common_tier(gpu_of_rank[batch.members])
        np.add.at(counts, (batch.kinds[batch.at], tiers), 1)
    return counts


def _count_tiers(fabric: Fabric, gpus: IntArray) -> dict[str, int]:
    tiers = fabric.common_tier(gpus)
    return by_tier(fabric, np.bincount(tiers, minlength=fabric.num_tiers))


def hottest_links(
    fabric: Fabric, traffic: dict[str, Traffic], *, by_axis: bool = False
) -> list[dict[str, Any]]:
    """The shared links that are busy longest in a step, longest first.

    Of links that are equally busy those come first whose names do, as numbers count:
    the list does not depend on the order of the hosts. With ``by_axis`` each has the
    ``share_by_axis`` of its bytes.
    """
    load = total_load(traffic.values())
    if load is None:
        return []
    found = []
    for way in ways(fabric):
        size_bytes, busy = way.bytes_of(load), way.busy_s(load)
        found += [
            (busy[link].item(), size_bytes[link].item(), way, link)
            for link in _longest_first(busy, way)
            if size_bytes[link] > 0
        ]
    found.sort(key=lambda entry: -entry[0])
    entries = []
    for busy_s, total, way, link in found[:HOTTEST_LINKS]:
        entry = {**way.name(link), "bytes": total, "busy_s": busy_s}
        if by_axis:
            loads = {
                axis: way.bytes_of(own.load)[link] for axis, own in traffic.items()
            }
            shares = {axis: float(sent) / total for axis, sent in loads.items() if sent}
            entry["share_by_axis"] = shares
        entries.append(entry)
    return entries


def _longest_first(busy: FloatArray, way: Way) -> list[int]:
    """The hottest links of a way; of equally busy ones short names come first."""
    least = np.sort(busy)[-HOTTEST_LINKS:].min(initial=np.inf)
    candidates = np.flatnonzero(busy >= least).tolist()

    def order(link: int) -> tuple[float, int, str, str]:
        name = way.name(link)
        return -busy[link].item(), len(name["domain"]), *tuple(name.values())[1:]

    return nsmallest(HOTTEST_LINKS, candidates, key=order)


def slowest_host(step: Step, gpu_of_rank: IntArray) -> dict[str, Any] | None:
    """The host that sets the pace of the work; None where all GPUs are as fast.

    ``host``, its ``compute_factor``, and the ``replica`` and ``stage`` that wait for
    it: the first of equals.
    """
    speed = step.model.fabric.speed_of_gpu
    if speed is None or speed[gpu_of_rank].min() == 1:
        return None
    rank = int(speed[gpu_of_rank].argmin())
    topology, at = step.model.fabric.topology, step.model.job.parallelism.coordinates
    return {
        "host": topology.host_names[topology.host_of_gpu[gpu_of_rank[rank]]],
        "compute_factor": float(speed[gpu_of_rank[rank]]),
        "replica": int(at["dp"][rank]),
        "stage": int(at["pp"][rank]),
    }


def critical_path(
    step: Step, gpu_of_rank: IntArray | None = None
) -> list[dict[str, Any]]:
    """The chain of operations that sets the step time, longest first.

    Parts of the pipeline name the replica that sets it; given the placement, pipeline
    messages also name its hops that leave a scale-up domain.
    """
    model = step.model
    exposed = step.exposed_s()
    sync = step.exposed_sync_s
    parts = [
        ("compute", step.compute_s),
        ("pipeline bubble", step.pipeline_s(()) - step.compute_s),
        ("fixed", model.fixed_s),
        ("gradient reduction (dp)", sync["reduction"]),
        ("parameter gather (dp)", sync["gather"]),
        ("tied embeddings (dp)", sync["embedding"]),
    ]
    names = {
        "tp": "tensor-parallel collectives (tp)",
        "cp": "key-value ring (cp)",
        "ep": "expert dispatch and combine (ep)",
        "pp": MESSAGES,
    }
    parts += [
        (names.get(axis, axis), exposed[axis]) for axis in exposed if axis != "dp"
    ]
    slowest = max(step.roles, key=lambda time: time.seconds, default=None)
    if slowest is not None:
        parts.append((f"role {slowest.role.name}", slowest.seconds))
    entries: list[dict[str, Any]] = [
        {"operation": name, "seconds": seconds}
        for name, seconds in parts
        if seconds > 0
    ]
    if step.stage_times:
        replica = step.slowest_replica()
        for entry in entries:
            if "(dp)" not in entry["operation"] and entry["operation"] != "fixed":
                entry["replica"] = replica
            if entry["operation"] == MESSAGES and gpu_of_rank is not None:
                entry["crossing_hops"] = [
                    {key: hop[key] for key in ("from_stage", "to_stage", "tier")}
                    for hop in hops_leaving(step, gpu_of_rank, replica)
                ]
    return sorted(entries, key=lambda entry: -entry["seconds"])


def hops_leaving(
    step: Step, gpu_of_rank: IntArray, replica: int
) -> list[dict[str, Any]]:
    """Hops of a replica's pipeline that leave a scale-up domain, and their tier.

    Each as its lane with the longest way sees it, and how many lanes leave.
    """
    fabric, axes = step.model.fabric, step.model.job.parallelism
    lanes = axes.ranks_of_group["pp"]
    gpus = gpu_of_rank[lanes[axes.coordinates["dp"][lanes[:, 0]] == replica]]
    following = np.roll(gpus, -1, axis=1)
    tiers = fabric.tier_between(gpus, following)
    outer, island = fabric.scale_up_tier + 1, fabric.scale_up_domain_of_gpu
    found = []
    for stage in np.flatnonzero(tiers.max(axis=0)[: axes.hops] >= outer).tolist():
        lane = int(tiers[:, stage].argmax())
        ends = (int(island[at[lane, stage]]) for at in (gpus, following))
        source, target = (child_name(fabric, outer, end) for end in ends)
        found.append(
            {
                "from_stage": stage,
                "to_stage": (stage + 1) % axes.pp,
                "tier": fabric.topology.tiers[tiers[lane, stage]].name,
                "from_domain": source,
                "to_domain": target,
                "lanes": len(gpus),
                "lanes_leaving": int((tiers[:, stage] >= outer).sum()),
                "seconds": float(step.stage_times["pp"].forward[replica, stage]),
            }
        )
    return found


def explain(model: StepModel, placement: Placement) -> dict[str, Any]:
    """The facts behind the score of a placement, as plain data; times are seconds.

    ``critical_path`` (longest first, with shares of the step), ``worst_groups`` (by
    axis, see `placer.explain.worst_groups`), ``slowest_replica`` with the hops that
    leave its scale-up domain, ``slowest_host``, ``hottest_links`` with the share of
    every axis, ``free_scale_out`` and, for a job with weights, ``hop_cost`` by axis and
    tier.
    What the job does not have is left out.
    """
    step = model.step(placement.gpu_of_rank)
    found: dict[str, Any] = {}
    if step.step_time_s:
        found["critical_path"] = [
            entry | {"share": entry["seconds"] / step.step_time_s}
            for entry in critical_path(step)
        ]
        if (slow := slowest_host(step, placement.gpu_of_rank)) is not None:
            found["slowest_host"] = slow
        found["worst_groups"] = worst_groups(step, placement.gpu_of_rank)
        if "pp" in step.stage_times:
            found["slowest_replica"] = _slowest_replica(step, placement.gpu_of_rank)
        found["hottest_links"] = hottest_links(
            model.fabric, step.traffic(), by_axis=True
        )
        found["free_scale_out"] = _free_scale_out(step, placement.gpu_of_rank)
    if model.job.weights:
        hops = HopCost(model.topology, model.job)
        edges_by_tier = hops.crossings(placement.gpu_of_rank)
        found["hop_cost"] = {
            axis: by_tier(model.fabric, weight * (edges_by_tier[axis] * hops.distance))
            for axis, weight, _ in hops.axes
        }
    return found


def _slowest_replica(step: Step, gpu_of_rank: IntArray) -> dict[str, Any]:
    """The replica that sets the step, and its hops that leave a scale-up domain."""
    fabric, axes = step.model.fabric, step.model.job.parallelism
    lanes = axes.ranks_of_group["pp"]
    sender, slowest = gpu_of_rank[lanes], step.slowest_replica()
    tier = fabric.tier_between(sender, np.roll(sender, -1, axis=1))[:, : axes.hops]
    leaves = (tier > fabric.scale_up_tier).any(axis=1)
    replica_of_lane = axes.coordinates["dp"][lanes[:, 0]]
    return {
        "replica": slowest,
        "pipeline_s": step.pipeline_s(step.axes),
        "hops": axes.hops,
        "hops_leaving": hops_leaving(step, gpu_of_rank, slowest),
        "replicas": axes.dp,
        "replicas_leaving": len(np.unique(replica_of_lane[leaves])),
    }


def _free_scale_out(step: Step, gpu_of_rank: IntArray) -> dict[str, Any]:
    """The step if every scale-out link were free, and what each axis would gain."""
    free = step.model.free_scale_out.step(gpu_of_rank)
    without = free.exposed_s()
    saved = max(step.step_time_s - free.step_time_s, 0.0)
    return {
        "step_time_s": free.step_time_s,
        "saved_s": saved,
        "saved_share": saved / step.step_time_s,
        "saved_by_axis_s": {
            axis: seconds - without[axis] for axis, seconds in step.exposed_s().items()
        },
    }
