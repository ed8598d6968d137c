"""The job of a plan, numbered as the plan numbers it."""

from dataclasses import replace

import pytest

from placer.base.errors import InputError
from placer.job.orders import in_order
from placer.placement.started import planned_job
from placer.testing.strategies import tiny, tiny_plan

OTHER = ("dp", "tp", "cp", "ep", "pp")


def test_an_open_order_is_the_plans() -> None:
    """A job that leaves its order open gets that of the plan; others keep their own."""
    _, job = tiny()
    plan = tiny_plan()
    opened = replace(
        job, parallelism=replace(job.parallelism, order=OTHER, auto_order=True)
    )
    assert planned_job(opened, plan).parallelism.order == job.parallelism.order
    assert planned_job(job, plan) is job


def test_other_jobs_are_refused() -> None:
    """A job of another size or another order is refused with both."""
    _, job = tiny()
    plan = tiny_plan()
    with pytest.raises(InputError, match=r"numbers ranks by .*, the job by dp-tp-"):
        planned_job(in_order(job, OTHER), plan)
    axes = replace(job.parallelism, dp=job.parallelism.dp * 2)
    with pytest.raises(InputError, match="the plan has 16 ranks, the job 32"):
        planned_job(replace(job, parallelism=axes), plan)
