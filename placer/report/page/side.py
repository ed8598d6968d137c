"""One placement of a report: its plan, and what the cost model says of it."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from placer.cost.links import total_load
from placer.cost.step import Step, StepModel
from placer.draw.machine_view import MachineView
from placer.explain.group_cost import GroupCosts
from placer.placement.build import placement_of_plan
from placer.placement.inputs import Inputs
from placer.placement.placement import Placement
from placer.placement.plan import Plan


@dataclass(frozen=True, eq=False)
class Side:
    """A placement before or after."""

    name: str  # what the reader calls it
    plan: Plan
    # Its machine and job; None in older plans, which then show no times of groups,
    # links and stages.
    inputs: Inputs | None

    @cached_property
    def placement(self) -> Placement | None:
        """The placement on the machine; None where that is not known."""
        if self.inputs is None:
            return None
        return placement_of_plan(self.plan, self.inputs.machine)

    @cached_property
    def step(self) -> Step | None:
        """Its cost; None where machine or times are not known."""
        if self.inputs is None or self.placement is None:
            return None
        if self.inputs.job.model is None and not self.inputs.job.groups:
            return None
        model = StepModel(self.inputs.machine, self.inputs.job)
        return model.step(self.placement.gpu_of_rank)


def encoded(values: npt.ArrayLike) -> str:
    """Whole numbers as base64 of 32 bits each, little end first."""
    return b64encode(np.asarray(values, dtype="<i4").tobytes()).decode()


def times_data(side: Side, view: MachineView, level: int) -> dict[str, Any]:
    """What the page draws of the times of a side; empty where none are known.

    ``groups``: one operation of every group of an axis, in s, each different time once.
    ``busy``: time in a step that the uplink of each domain of ``level`` is in use, s.
    ``slowest``: the replica whose pipeline sets the step.
    """
    step, placement = side.step, side.placement
    if step is None or placement is None:
        return {}
    costs = GroupCosts(step, placement.gpu_of_rank)
    has_times = step.model.job.model is not None
    return {
        "groups": dict(_group_seconds(costs)),
        "busy": _busy(step, view, level),
        "slowest": step.slowest_replica() if has_times else None,
    }


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


def _busy(step: Step, view: MachineView, level: int) -> list[float]:
    """Seconds that the uplink of each domain is in use, the fuller direction."""
    fabric = step.model.fabric
    topology = fabric.topology
    tiers = [tier.name for tier in topology.tiers]
    load = total_load(step.traffic().values())
    if load is None or view.levels[level] not in tiers:
        return []
    tier = tiers.index(view.levels[level])
    if tier + 1 not in fabric.scale_out_tiers:
        return []
    sent = np.maximum(load["up", tier + 1], load["down", tier + 1])
    busy = sent / fabric.uplink_capacity[tier + 1]
    domain = dict(
        zip(topology.host_names, topology.domain_of_host(tier).tolist(), strict=True)
    )
    seconds = np.zeros(len(view.names[level]))
    for node, shown in zip(
        view.names[0], view.domain_of_node[level].tolist(), strict=True
    ):
        if node in domain:
            seconds[shown] = busy[domain[node]]
    return [float(f"{value:.6g}") for value in seconds]
