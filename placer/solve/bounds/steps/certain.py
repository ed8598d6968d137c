"""What every placement of a case pays, whichever groups leave their domains in it.

Some group of each axis that has more groups than domains hold whole is cut, also where
it is a group of another axis that makes the case. By hand: 45 cp groups of 8, on nodes
of 16 and 15 GPUs that hold 43. A placement may cut tp groups to keep cp groups whole,
and has two slow ones all the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from placer.solve.bounds.network.limit import Floor

if TYPE_CHECKING:
    from placer.solve.bounds.case import Case


def certain(case: Case) -> Floor:
    """What is certain wherever groups lie."""
    step, fabric = case.step, case.network.fabric
    found = Floor(exposed_s=step.exposed_data_parallel_s)
    if step.model.job.model is None or fabric.scale_up_tier == fabric.num_tiers - 1:
        return found  # or no group leaves the only domain
    for axis in ("tp", "cp", "ep"):
        if step.model.job.parallelism.size(axis) > 1 and case.cut(axis).fewest:
            found = found.above(Floor(pipeline_s=case.cut(axis).pipeline_s))
    return found
