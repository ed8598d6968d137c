"""Time that a step pays once, where nothing was calibrated: assumed aloud.

It holds what is paid whatever the micro-batches: the optimizer, the loss, launches.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from placer.assumed import FIXED, Assumption

if TYPE_CHECKING:
    from placer.job.model import Job

# Llama 3.1 8B of MLPerf v5.1: two runs each of five submitters show 62 to 102 ms (249
# on a sixth), 405B shows 166 to 356 ms (mlcommons/training_results_v5.1 441d65f4).
FIXED_TIME = 0.060
WHY = "what five submitters of MLPerf's Llama 3.1 8B show at the least, 62 to 102 ms"
# Of a step; more of it is worth a warning.
MUCH = 0.05


def with_fixed_time(job: Job) -> Job:
    """The job, with the usual fixed time where it has a model and does not say it."""
    if job.model is None or job.compute.fixed_time is not None:
        return job
    assumed = Assumption(
        FIXED, FIXED_TIME, WHY, "--set job.compute.fixed_time=TIME", (0.0, 0.25)
    )
    compute = replace(job.compute, fixed_time=FIXED_TIME)
    return replace(job, compute=compute, assumed=(*job.assumed, assumed))


def fixed_share(job: Job, step_s: float) -> float:
    """Share of a step that is assumed to be fixed; 0 where it is little, or known."""
    if step_s <= 0 or FIXED not in (each.key for each in job.assumed):
        return 0.0
    share = job.compute.fixed_s / step_s
    return share if share > MUCH else 0.0
