"""Jobs that name ranks instead of axes, and what is not said of a wrong value."""

import pytest

from tests.job.test_read_job import job_of, problems_of

HEAD = "format: placer/job\nversion: 1\nname: small\n"


@pytest.mark.parametrize(
    "rest",
    [
        "groups: [{name: a, collective: all_reduce, bytes: 1, ranks: [[0, 5], [2]]}]",
        "traffic: {from: [0, 5], to: [1, 0], bytes: [3, 4]}",
    ],
)
def test_groups_or_traffic_stand_instead_of_axes(rest):
    """The job has the ranks that they name, and may pin the last one, not the next."""
    rules = "\nrules: {pin: [{ranks: %d, nodes: a}]}\n"
    assert job_of(HEAD + rest + rules % 5).world_size == 6
    (problem,) = problems_of(HEAD + rest + rules % 6)
    assert "rank 6 is above 5" in problem.message


@pytest.mark.parametrize(
    "rest",
    [
        "parallelism: {dp: ^x}\ntraffic: {from: [0], to: [1], bytes: [3]}\n",
        "parallelism: {dp: 1}\nsequence: 8\nmodel: gpt3-175b\n"
        "compute: {micro_batch_time: ^3 parsecs}\n",
        "parallelism: {dp: 1}\nsequence: 8\nmodel: gpt3-175b\n"
        "compute: {tflops_per_gpu: ^x}\n",
    ],
)
def test_a_wrong_value_is_told_once(rest):
    """Nothing else is said of what would follow from it."""
    before = HEAD + rest[: rest.index("^")]
    (problem,) = problems_of(HEAD + rest.replace("^", ""))
    place = (before.count("\n") + 1, len(before) - before.rfind("\n"))
    assert (problem.line, problem.column) == place
