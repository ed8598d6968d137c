"""A job at another size is the job whose file says so."""

from dataclasses import replace
from time import process_time

import pytest

from placer import testing
from placer.base.errors import InputError
from placer.job.read import read_job
from placer.job.resize import resized
from placer.job.traffic import Group
from placer.job.work import micro_batch_time
from placer.placement.previous import smaller_jobs


def job_of(dp):
    everyone = {"name": "everyone", "collective": "all_reduce", "bytes": 1e6}
    groups = [everyone | {"ranks": "all"}]
    return testing.job(tp=2, pp=2, dp=dp, micro_batches=4, groups=groups)


def test_defaults_and_groups_follow():
    """Bucket and groups of all ranks are those of the file with the other size."""
    assert resized(job_of(4), dp=100).sha256 == job_of(100).sha256
    assert resized(job_of(100), dp=4).sha256 == job_of(4).sha256


def test_groups_that_name_ranks_are_refused_at_once():
    """However many there are, no size is tried for long."""
    group = Group("some", "all_reduce", 1e6, 1.0, False, ((0, 1), (2, 3)))
    named = tuple(replace(group, name=f"some{at}") for at in range(3_000))
    job, start = replace(job_of(400), groups=named), process_time()
    with pytest.raises(InputError, match="groups"):
        resized(job, dp=800)
    assert not list(smaller_jobs(job, 1_200))
    assert process_time() - start < 1.0


def test_another_micro_batch_and_mode():
    """As a file that says so; the work of both changes the time of a micro-batch."""
    job = read_job("quickstart")
    twice = resized(job, "full", micro_batch=2)
    assert (twice.micro_batch, twice.memory.recompute) == (2, "full")
    assert resized(job, job.memory.recompute) is job
    back = resized(twice, job.memory.recompute, micro_batch=1)
    assert micro_batch_time(back) == pytest.approx(micro_batch_time(job))
    longer = micro_batch_time(twice) / micro_batch_time(job)
    assert 2 < longer < 2 * 4 / 3 * 1.01
