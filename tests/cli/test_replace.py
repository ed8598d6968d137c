"""``placer replace`` from end to end."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner, Result

from placer.cli.main import main

if TYPE_CHECKING:
    from pathlib import Path

MACHINE = "rack:3 node:3 gpu:2"
JOB = """\
format: placer/job
version: 1
name: small
parallelism: {tp: 2, pp: 2, dp: 3, order: tp-cp-ep-pp-dp}
weights: {tp: 100, pp: 10, dp: 1}
require: {tp: node, pp: rack}
"""


def run(*args: object) -> Result:
    return CliRunner().invoke(main, list(map(str, args)))


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    job, path = tmp_path / "job.yaml", tmp_path / "plan.json"
    job.write_text(JOB)
    assert run("place", "-t", MACHINE, "-j", job, "-q", "-o", path).exit_code == 0
    return path


def replace(plan: Path, *args: object) -> Result:
    return run("replace", plan, "-j", plan.with_name("job.yaml"), *args)


def test_says_what_moves_and_writes_the_plan(plan: Path, tmp_path: Path) -> None:
    """The summary names moves, proof, cost and the difference; the plan holds."""
    new = tmp_path / "new.json"
    host = json.loads(plan.read_text())["nodes"][0]
    found = replace(plan, "--failed", host, "-o", new)
    assert found.exit_code == 0, found.output
    assert f"failed: {host}" in found.stdout
    assert "2 of 12 ranks move, the fewest possible" in found.stdout.splitlines()[1]
    assert "proved the fewest move: the 2 ranks on lost nodes" in found.stdout
    assert "hop cost" in found.stdout
    assert "ranks moved: 2 of 12" in found.stdout
    job = plan.with_name("job.yaml")
    assert run("check", new, "-t", MACHINE, "-j", job).exit_code == 0
    assert run("diff", plan, new).exit_code == 1


def test_json_has_the_plan_and_the_curve(plan: Path) -> None:
    """With --format json stdout is the new plan, its curve among the facts."""
    host = json.loads(plan.read_text())["nodes"][0]
    found = replace(plan, "--failed", host, "--format", "json")
    about = json.loads(found.stdout)["previous"]
    assert about["moved"] == about["fewest"] == 2
    assert [point["moves"] for point in about["curve"]] == [2]


def test_infeasible_and_shrink(plan: Path, tmp_path: Path) -> None:
    """Two trays of a rack lost: exit 3 with a way out, which then works."""
    hosts = tmp_path / "failed.txt"
    nodes = json.loads(plan.read_text())["nodes"]
    hosts.write_text("\n".join(nodes[:2]) + "\n")
    found = replace(plan, "--failed", f"@{hosts}")
    assert found.exit_code == 3
    assert "--shrink" in found.stderr
    found = replace(plan, "--failed", f"@{hosts}", "--shrink")
    assert found.exit_code == 0, found.output
    assert "dp 3 -> 2: replica 0 given up" in found.stdout


def test_every_host_failed(plan: Path) -> None:
    """Without any host left the job is infeasible, which is no usage error."""
    found = replace(plan, "--failed", "r[1-3]-n[1-3]")
    assert found.exit_code == 3
    assert "every host has failed: the job needs 12 GPUs, none is left" in found.stderr


def test_hosts_outside_the_allocation_are_a_way_out(tmp_path: Path) -> None:
    """A job that fills its hosts is told of --added, which then works."""
    path = tmp_path / "plan.json"
    inputs = ("-t", "dgx-h100-4x8", "-j", "quickstart", "--hosts", "n[1-2]")
    assert run("place", *inputs, "-q", "-o", path).exit_code == 0
    found = run("replace", path, "--failed", "n1")
    assert found.exit_code == 3
    assert "add hosts from outside the allocation: --added" in found.stderr
    found = run("replace", path, "--failed", "n1", "--added", "n3")
    assert found.exit_code == 0, found.output
