"""Whether a plan keeps every promise, as a library call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from placer.api.inputs import inputs
from placer.arguments import instance, takes
from placer.errors import CheckError
from placer.placement.check import violations
from placer.placement.placement import Placement
from placer.placement.plan import Plan

if TYPE_CHECKING:
    from placer.api.inputs import JobLike, TopologyLike


@takes(plan=instance(Plan) | instance(Placement))
def check(plan: Plan | Placement, topology: TopologyLike, job: JobLike) -> None:
    """Nothing, when the plan keeps every promise.

    Parameters
    ----------
    plan : Plan or Placement
    topology : Topology, or what `read_topology` takes
    job : Job, or what `read_job` takes

    Raises
    ------
    CheckError
        With every violation found.
    InputError
        If an argument is of a wrong type, or the job names a tier that the machine
        lacks.
    """
    machine, work = inputs(topology, job)
    if found := violations(plan, machine, work):
        raise CheckError(found)
