"""What starts the job of a plan today, and the job as the plan numbers its ranks."""

from __future__ import annotations

from placer.base.errors import InputError
from placer.documents import document_of
from placer.job.model import Job
from placer.job.orders import as_planned
from placer.job.started import KEYS, SORTING, Started, decode_started
from placer.placement.baselines import BaselineName
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


# What a user has without placer: the hosts in the order of the allocation, or sorted by
# a launcher that does so whatever it is given (`placer.placement.baselines`).
_GIVEN: BaselineName = "given-order"
_SORTED: BaselineName = "sorted-hosts"


def started_of(plan: Plan) -> Started | None:
    """The launcher in the script that the job was read from, or None."""
    job = plan.inputs.get("job")
    kept = job.get("launcher") if isinstance(job, dict) else None
    if not isinstance(kept, dict):
        return None
    content = {key: kept[key] for key in KEYS if key in kept}
    document = document_of(content, "inputs.job.launcher")
    found = decode_started(document.root)
    document.finish()
    return found


def order_in_use(job: Job) -> BaselineName:
    """The baseline that is the order in which a job's hosts are numbered today."""
    return _baseline(job.started)


def order_in_use_of(plan: Plan) -> BaselineName:
    """The order in use of the job that a plan keeps."""
    return _baseline(started_of(plan))


def _baseline(started: Started | None) -> BaselineName:
    sorts = started is not None and started.name in SORTING
    return _SORTED if sorts else _GIVEN
