"""The job of a plan, its ranks numbered as in the plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

from placer.base.errors import InputError
from placer.job.orders import as_planned

if TYPE_CHECKING:
    from placer.job.model import Job
    from placer.placement.plan import Plan


def planned_job(job: Job, plan: Plan) -> Job:
    """The job in the order of the plan, where the job leaves its order open."""
    if plan.world_size != job.world_size:
        raise InputError(
            f"the plan has {plan.world_size:,} ranks, the job {job.world_size:,}"
        )
    job = as_planned(job, plan.job.get("order", ""))
    own = "-".join(job.parallelism.order)
    order = plan.job.get("order", own)
    if order != own:
        raise InputError(f"the plan numbers ranks by {order}, the job by {own}")
    return job
