"""Why a step takes as long as it does: the facts behind a score."""

from __future__ import annotations

from typing import Any

import numpy as np

from placer.base.arrays import IntArray
from placer.cost.hop_cost import HopCost
from placer.cost.step import Step, StepModel
from placer.explain.score import (
    critical_path,
    hops_leaving,
    hottest_links,
    slowest_host,
)
from placer.explain.ways import by_tier
from placer.explain.worst_groups import worst_groups
from placer.placement.placement import Placement


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
        found["hop_cost"] = _hop_cost(model, placement.gpu_of_rank)
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


def _hop_cost(model: StepModel, gpu_of_rank: IntArray) -> dict[str, dict[str, float]]:
    """Hop cost by axis and tier, tiers without any left out."""
    hops = HopCost(model.topology, model.job)
    edges_by_tier = hops.crossings(gpu_of_rank)
    return {
        axis: by_tier(model.fabric, weight * (edges_by_tier[axis] * hops.distance))
        for axis, weight, _ in hops.axes
    }
