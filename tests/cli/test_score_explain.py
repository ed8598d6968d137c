"""``placer score --explain`` from end to end."""

import json
from pathlib import Path

from click.testing import CliRunner, Result

from placer.cli.main import main
from tests.cli import small_job
from tests.cli.small_job import MACHINE

JOB = small_job.JOB


def score(job: str, *args: object) -> Result:
    words = ["score", "-t", MACHINE, "-j", job, "--explain", *args]
    return CliRunner().invoke(main, list(map(str, words)))


def test_text_follows_the_score(job: str) -> None:
    """The words come after the usual tables."""
    found = score(job, "baseline:given-order")
    assert found.exit_code == 0, found.stderr
    table, _, words = found.stdout.partition("\n\ncritical path")
    assert table.startswith("step time")
    assert "worst group of each axis" in words
    assert "free fabric between nodes" in words
    assert found.stdout.endswith("\n")
    assert not found.stdout.endswith("\n\n")


def test_json_has_the_facts(job: str, tmp_path: Path) -> None:
    """With JSON the facts are under ``explain``, the same for a plan as a host file."""
    plan = tmp_path / "plan.json"
    args = ["place", "-q", "-t", MACHINE, "-j", job, "-o", str(plan)]
    assert CliRunner().invoke(main, args).exit_code == 0
    planned = score(job, plan, "--format", "json")
    assert planned.exit_code == 0, planned.stderr
    hosts = tmp_path / "hosts"
    nodes = json.loads(plan.read_text())["nodes"]
    hosts.write_text("".join(f"{name}:2\n" for name in nodes))
    listed = score(job, f"hostfile:{hosts}", "--format", "json")
    found = [json.loads(result.stdout)["explain"] for result in (planned, listed)]
    assert found[0] == found[1]
    assert set(found[0]) == {
        "critical_path",
        "worst_groups",
        "slowest_replica",
        "hottest_links",
        "free_scale_out",
    }
    assert set(found[0]["worst_groups"]) == {"tp", "pp", "dp"}


def test_without_it_there_are_no_facts(job: str) -> None:
    """The score alone has no ``explain``."""
    args = ["score", "-t", MACHINE, "-j", job, "baseline:random"]
    found = CliRunner().invoke(main, [*args, "--format", "json"])
    assert "explain" not in json.loads(found.stdout)
