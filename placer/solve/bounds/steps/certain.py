"""What every placement of a case pays, whichever groups leave their domains in it.

Some group of each axis that has more groups than domains hold whole is cut, also where
it is a group of another axis that makes the case. By hand: 45 cp groups of 8, on nodes
of 16 and 15 GPUs that hold 43. A placement may cut tp groups to keep cp groups whole,
and has two slow ones all the same. Gradients, too, leave leaves or have few members on
a node where there is no room for better, or in the smallest domain that must be used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from placer.solve.bounds.experts.part_gradients import HeldStages
from placer.solve.bounds.gradients.far_groups import far_gradients_s, far_pipeline_s
from placer.solve.bounds.gradients.gradient_runs import exposed_in_runs
from placer.solve.bounds.groups.slots import Slots
from placer.solve.bounds.network.limit import Floor

if TYPE_CHECKING:
    from placer.solve.bounds.case import Case


def certain(case: Case) -> Floor:
    """What is certain wherever groups lie."""
    step, network, params = case.step, case.network, case.params
    job = step.model.job
    exposed_s = (
        far_gradients_s(step, network, params),
        exposed_in_runs(step, network),
        _in_the_smallest_s(case),
    )
    found = Floor(exposed_s=max(exposed_s))
    if network.fabric.scale_up_tier == network.fabric.num_tiers - 1:
        return found  # no group leaves the only domain
    for axis in ("tp", "cp", "ep") if job.model is not None else ():
        if job.parallelism.size(axis) > 1:
            cut = case.cut(axis)
            far_s = far_pipeline_s(step, network, axis, params)
            found = found.above(Floor(pipeline_s=far_s))
            if cut.fewest:
                found = found.above(Floor(pipeline_s=cut.pipeline_s))
    slots = Slots.of(step, network, case.room)
    return found.above(Floor(pipeline_s=slots.pipeline_s(params))) if slots else found


def _in_the_smallest_s(case: Case) -> float:
    """What gradients expose where the smallest domain that must be used is used, s."""
    network, room = case.network, np.sort(case.room)[::-1]
    last = int(np.searchsorted(np.cumsum(room), case.step.model.job.world_size))
    if case.step.sync is None or network.fabric.scale_up_tier < 0 or last == len(room):
        return 0.0
    held = HeldStages(case.step, network)
    return held.least_s(int(room[last]), network.label[network.fabric.scale_up_tier])
