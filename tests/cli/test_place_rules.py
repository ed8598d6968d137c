"""``placer place`` with pins, hosts to avoid, replicas a domain and spares."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner, Result

from placer.cli.main import main

if TYPE_CHECKING:
    from pathlib import Path

MACHINE = "rack:2 node:3 gpu:2"
JOB = """\
format: placer/job
version: 1
name: small
parallelism: {tp: 2, dp: 4}
weights: {tp: 10, dp: 1}
"""


def run(*args: object) -> Result:
    return CliRunner().invoke(main, list(map(str, args)))


def test_flags_are_kept_recorded_and_checked(job: str, tmp_path: Path) -> None:
    """Rules of flags are in the plan, and check enforces them without the flags."""
    path = tmp_path / "plan.json"
    flags = ("--pin", "0-1=r2-n[2-3]", "--avoid", "r1-n1", "--at-most", "rack=2")
    flags += ("--spares", "rack=1")
    found = run("place", "-t", MACHINE, "-j", job, *flags, "-o", path)
    assert found.exit_code == 0, found.output
    assert "kept: ranks 0-1 on r2-n[2-3]; at most 2 replicas in a rack;" in found.stdout
    assert "avoided: none of 1 nodes to avoid is used" in found.stdout
    plan = json.loads(path.read_text())
    assert plan["rules"]["pin"] == [{"ranks": "0-1", "nodes": "r2-n[2-3]"}]
    assert len(plan["rules"]["spare_nodes"]) == 2
    assert run("check", path, "-t", MACHINE, "-j", job).exit_code == 0
    plan["rules"]["at_most"] = {"rack": 1}
    path.write_text(json.dumps(plan))
    found = run("check", path, "-t", MACHINE, "-j", job)
    assert found.exit_code == 1
    assert "more than 1 replicas" in found.stdout


def test_flags_add_to_the_file(tmp_path: Path) -> None:
    """Rules of the job's file hold beside those of flags."""
    path = tmp_path / "job.yaml"
    path.write_text(JOB + "rules: {pin: [{ranks: 0, nodes: r1-n3}]}\n")
    args = ("place", "-t", MACHINE, "-j", path, "--pin", "2=r1-n1", "--format", "json")
    plan = json.loads(run(*args).stdout)
    hosts = [plan["nodes"][node] for node in plan["node_of_rank"]]
    assert (hosts[0], hosts[2]) == ("r1-n3", "r1-n1")


@pytest.mark.parametrize(
    ("flags", "code", "expected"),
    [
        (("--pin", "0"), 2, "is not a pin such as 0-3=n01"),
        (("--pin", "x=n"), 2, "is not a list of ranks"),
        (("--pin", "0=zz"), 2, '--pin: the topology has no host "zz"'),
        (("--pin", "9=r1-n1"), 2, "--pin: there is no rank 9"),
        (("--at-most", "rack"), 2, "is not a tier and a number such as rack=2"),
        (("--at-most", "rack=0"), 2, "is not a tier and a number such as rack=2"),
        (("--at-most", "hall=1"), 2, "--at-most: the topology rack:2 node:3 gpu:2 has"),
        (("--spares", "rack=1", "--spares", "rack=2"), 2, "rack has two numbers"),
        (("--spares", "rack=3"), 3, "this rule cannot be kept: 3 spare nodes in every"),
        (("--at-most", "rack=1"), 3, "it fits with at most 2 a rack"),
    ],
)
def test_errors(job: str, flags: tuple[str, ...], code: int, expected: str) -> None:
    """Bad flags exit with 2, rules that cannot be kept with 3 and a reason."""
    found = run("place", "-t", MACHINE, "-j", job, *flags)
    assert found.exit_code == code, found.output
    assert expected in found.stderr


def test_problems_of_the_file_have_their_place(tmp_path: Path) -> None:
    """A rule of the file that does not fit the machine is reported with its line."""
    path = tmp_path / "job.yaml"
    path.write_text(JOB + "rules:\n  pin:\n    - {ranks: 0, nodes: zz}\n")
    found = run("place", "-t", MACHINE, "-j", path)
    assert found.exit_code == 2
    assert f"{path}:8:7: rules.pin[0]: the topology has no host" in found.stderr


@pytest.mark.parametrize(
    ("words", "reason", "hint"),
    [
        (["place", "--spares", "rack=3"], "3 spare nodes in every rack", "it fits"),
        (["place", "--hosts", "r1-n[1-3]"], "needs 8 GPUs", "dp 3 would fit"),
        (["allocate", "--free", "r1-n1"], "needs 8 GPUs, 2 are free", "dp 1 would"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_json_says_what_is_infeasible(
    job: str, words: list[str], reason: str, hint: str
) -> None:
    """Exit code 3 with JSON: the verdict, the rule with its counts, what would fit."""
    found = run(*words, "-t", MACHINE, "-j", job, "--format", "json")
    assert found.exit_code == 3
    verdict = json.loads(found.stdout)["verdict"]
    assert (verdict["advice"], verdict["proved"]) == ("infeasible", True)
    assert reason in verdict["reason"]
    assert hint in verdict["hints"][0]
    assert verdict["text"].startswith("Infeasible: ")
    assert f"infeasible: {verdict['reason']}\n  hint: " in found.stderr
    text = run(*words, "-t", MACHINE, "-j", job)
    assert (text.exit_code, text.stdout) == (3, "")
