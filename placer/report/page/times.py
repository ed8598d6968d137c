"""Times of a placement for a report: its groups, its uplinks, its slowest pipeline."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from placer.cost.links import total_load
from placer.draw.pipeline import shown_stages
from placer.draw.timetable import slowest_pipeline, timetable
from placer.explain.group_cost import GroupCosts
from placer.report.page.seats import encoded

if TYPE_CHECKING:
    from placer.cost.step import Step
    from placer.report.page.seats import Shown
    from placer.report.page.side import Side

# More pieces than that are thinner than a pixel: then fewer micro-batches.
MOST_PIECES = 4000


def times_data(side: Side, machine: Shown, level: int) -> dict[str, Any]:
    """What the page draws of the times of a side; empty where none are known.

    ``groups``: one operation of every group of an axis, in s, each different time once.
    ``busy``: time in a step that the uplink of each domain of ``level`` is in use, s.
    ``pipeline``: see `_pipeline`.
    """
    step, placement = side.step, side.placement
    if step is None or placement is None:
        return {}
    costs = GroupCosts(step, placement.gpu_of_rank)
    found: dict[str, Any] = {
        "groups": dict(_group_seconds(costs)),
        "busy": _busy(step, machine, level),
    }
    if step.model.job.model is not None:
        found["pipeline"] = _pipeline(step)
    return found


def _group_seconds(costs: GroupCosts) -> Iterator[tuple[str, dict[str, Any]]]:
    """Times by axis, and the axes whose coordinates differ inside a group of it."""
    named = costs.model.job.parallelism.ranks_of_group
    for axis, groups in costs.axes.items():
        seconds = costs.seconds(axis)
        over = {axis: [axis], "dp_cp": ["dp", "cp"]}
        inside = [
            axes
            for name, axes in over.items()
            if name in named and np.array_equal(groups, named[name])
        ]
        if seconds is not None and inside:
            different, index = np.unique(seconds, return_inverse=True)
            yield (
                axis,
                {
                    "over": inside[0],
                    "seconds": different.tolist(),
                    "of_group": encoded(index) if len(different) > 1 else "",
                },
            )


def _busy(step: Step, machine: Shown, level: int) -> list[float]:
    """Seconds that the uplink of each domain is in use, the fuller direction."""
    fabric = step.model.fabric
    topology = fabric.topology
    tiers = [tier.name for tier in topology.tiers]
    load = total_load(step.traffic().values())
    if load is None or machine.levels[level] not in tiers:
        return []
    tier = tiers.index(machine.levels[level])
    if tier + 1 not in fabric.scale_out_tiers:
        return []
    sent = np.maximum(load.up[tier + 1], load.down[tier + 1])
    busy = sent / fabric.uplink_capacity[tier + 1]
    domain = dict(
        zip(topology.host_names, topology.domain_of_host(tier).tolist(), strict=True)
    )
    seconds = np.zeros(len(machine.names[level]))
    for node, shown in zip(
        machine.names[0], machine.domain_of_node(level).tolist(), strict=True
    ):
        if node in domain:
            seconds[shown] = busy[domain[node]]
    return [float(f"{value:.6g}") for value in seconds]


def _pipeline(step: Step) -> dict[str, Any]:
    """The pieces of work of the slowest replica, times in microseconds.

    ``rows`` are the stages drawn. ``pieces`` has five numbers a piece: its row, whether
    it is forward, start, end and micro-batch. ``after`` are the parts of the step that
    follow: names and seconds.
    """
    job = step.model.job
    axes = job.parallelism
    replica, stages, _ = slowest_pipeline(step)
    shown = shown_stages(axes.pp)
    row_of = {stage: row for row, stage in enumerate(shown)}
    fitting = max(MOST_PIECES // (2 * axes.vp * len(shown)), 1)
    drawn = min(job.micro_batches, max(fitting // axes.pp, 1) * axes.pp)
    pieces = timetable(stages, drawn, axes.vp, job.overlap.pp)
    rows = [
        (row_of[p.stage], int(p.is_forward), round(p.start_s * 1e6),
         round(p.end_s * 1e6), p.micro_batch)
        for p in pieces
        if p.stage in row_of
    ]  # fmt: skip
    after = {"dp": step.exposed_data_parallel_s, **step.exposed_custom_s}
    after["fixed"] = step.model.fixed_s
    return {
        "replica": replica,
        "stages": axes.pp,
        "rows": shown,
        "drawn": drawn,
        "of": job.micro_batches,
        "pieces": encoded(rows),
        "after": [[name, seconds] for name, seconds in after.items() if seconds > 0],
    }
