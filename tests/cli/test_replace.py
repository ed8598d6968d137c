"""``placer replace`` from end to end."""

import json

import pytest

from tests.cli.small_job import HEAD
from tests.commands import data, refusal, run

MACHINE = "rack:3 node:3 gpu:2"
JOB = (
    HEAD
    + """\
parallelism: {tp: 2, pp: 2, dp: 3, order: tp-cp-ep-pp-dp}
weights: {tp: 100, pp: 10, dp: 1}
require: {tp: node, pp: rack}
"""
)


@pytest.fixture
def plan(tmp_path, job):
    path = tmp_path / "plan.json"
    run("place", "-t", MACHINE, "-j", job, "-q", "-o", path)
    return path


def nodes(plan):
    return json.loads(plan.read_text())["nodes"]


def test_says_what_moves_and_writes_the_plan(plan, job, tmp_path):
    """The summary names moves, proof, cost and the difference; the plan holds.

    With --format json stdout is the new plan, its curve among the facts.
    """
    new, host = tmp_path / "new.json", nodes(plan)[0]
    asked = ("replace", plan, "-j", job, "--failed", host)
    found = run(*asked, "-o", new).stdout
    assert f"failed: {host}" in found
    assert "2 of 12 ranks move, the fewest possible" in found.splitlines()[1]
    assert "proved the fewest move: the 2 ranks on lost nodes" in found
    assert "hop cost" in found
    assert "ranks moved: 2 of 12" in found
    run("check", new, "-t", MACHINE, "-j", job)
    run("diff", plan, new, code=1)
    about = data(*asked)["previous"]
    assert about["moved"] == about["fewest"] == 2
    assert [point["moves"] for point in about["curve"]] == [2]


def test_infeasible_and_shrink(plan, tmp_path):
    """Two trays of a rack lost: exit 3 with a way out, which then works.

    Without any host left the job is infeasible too, which is no usage error.
    """
    hosts = tmp_path / "failed.txt"
    hosts.write_text("\n".join(nodes(plan)[:2]) + "\n")
    asked = ("replace", plan, "--failed", f"@{hosts}")
    assert "--shrink" in refusal(*asked, code=3)
    assert "dp 3 -> 2: replica 0 given up" in run(*asked, "--shrink").stdout
    told = refusal("replace", plan, "--failed", "r[1-3]-n[1-3]", code=3)
    assert "every host has failed: the job needs 12 GPUs, none is left" in told
