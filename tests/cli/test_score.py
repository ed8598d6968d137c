"""``placer score`` from end to end."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from placer.cli.main import main
from placer.placement.baselines import BASELINES
from tests.cli import small_job

MACHINE = "rack:2 node:2 gpu:2"
JOB = """\
format: placer/job
version: 1
name: small
parallelism: {tp: 2, dp: 4}
weights: {tp: 10, dp: 1}
require: {tp: node}
"""


def score(job: str, *args: object) -> Result:
    words = ["score", "-t", MACHINE, "-j", job, *args]
    return CliRunner().invoke(main, list(map(str, words)))


def hop_cost(job: str, *args: object) -> float:
    found = score(job, *args, "--format", "json")
    assert found.exit_code == 0, found.stderr
    return float(json.loads(found.stdout)["hop_cost"])


# Four tp pairs inside nodes at distance 1, and two dp rings of four over two racks of
# two nodes; both upper tiers have 450 / 50 = 9 times the node's distance.
IN_ORDER = 10 * 4 * 1 + 1 * 2 * 4 * 9


def test_three_sources_agree(job: str, tmp_path: Path) -> None:
    """The same placement as baseline, host file and plan has the same, known score."""
    hosts = tmp_path / "hosts.txt"
    hosts.write_text("r1-n1:2\nr1-n2:2\nr2-n1:2\nr2-n2:2\n")
    plan = tmp_path / "plan.json"
    args = ["place", "-q", "-t", MACHINE, "-j", job, "-o", str(plan)]
    assert CliRunner().invoke(main, args).exit_code == 0
    assert hop_cost(job, "baseline:given-order") == IN_ORDER
    assert hop_cost(job, f"hostfile:{hosts}") == IN_ORDER
    assert hop_cost(job, plan) == IN_ORDER


def test_a_plan_is_enough(job: str, tmp_path: Path) -> None:
    """A plan gives its allocation to whatever is scored beside it, -t and -j the same.

    The plan's hosts are the last in the machine, so that another allocation shows.
    """
    plan, hosts = tmp_path / "plan.json", tmp_path / "hosts.txt"
    hosts.write_text("r2-n1:2\nr1-n2:2\nr2-n2:2\nr1-n1:2\n")
    args = ["place", "-q", "-t", "rack:3 node:2 gpu:2", "-j", job, "-o", str(plan)]
    args += ["--hosts", "r3-n[1-2],r1-n2,r2-n[1-2],r1-n1", "--exclude", "r3-n2"]
    assert CliRunner().invoke(main, args).exit_code == 0
    for other in ([], ["--baseline", "given-order"], ["--hostfile", str(hosts)]):
        words = ["score", str(plan), "--format", "json", *other]
        alone = CliRunner().invoke(main, words)
        given = CliRunner().invoke(
            main, [*words, "-t", "rack:3 node:2 gpu:2", "-j", job]
        )
        assert alone.exit_code == 0, alone.stderr
        assert alone.stdout == given.stdout
        if "--baseline" in other:  # r3-n1, r1-n2, r2-n1, r2-n2: both rings over 3 racks
            assert json.loads(alone.stdout)["hop_cost"] == 10 * 4 + 2 * 4 * 9


def test_text_is_a_table(job: str) -> None:
    """Without --format the score is text: the cost, and groups by their tier."""
    found = score(job, "baseline:given-order")
    table, _, assumed = found.stdout.partition("\n\nassumed: ")
    assert assumed.startswith("H100 hosts (--gpu NAME); uplinks not oversubscribed")
    assert [line.split() for line in table.splitlines()] == [
        ["hop", "cost", str(IN_ORDER)],
        [],
        ["groups", "inside", "one", "node", "cluster"],
        ["tp", "4", "-"],
        ["dp", "-", "2"],
    ]


def test_text_names_the_busiest_links(tmp_path: Path) -> None:
    """A step time comes with the links that carry most, as the JSON has them."""
    path = tmp_path / "job.yaml"
    path.write_text(small_job.JOB)
    (link, *_) = json.loads(
        score(str(path), "baseline:sorted-hosts", "--format", "json").stdout
    )["hottest_links"]
    _, _, table = score(str(path), "baseline:sorted-hosts").stdout.partition(
        "busiest links"
    )
    first = table.splitlines()[1]
    assert first.startswith(f"  {link['domain']} {link['direction']}, {link['tier']}")


def test_broken_rules_are_noted(job: str, tmp_path: Path) -> None:
    """A placement that breaks a hard rule is scored all the same, with a note."""
    hosts = tmp_path / "hosts.txt"
    hosts.write_text("r1-n1\nr1-n2\nr1-n1\nr1-n2\nr2-n1:2\nr2-n2:2\n")
    found = score(job, f"hostfile:{hosts}")
    assert found.exit_code == 0
    assert "note: 2 of 4 tp groups leave their node" in found.stderr
    assert score(job, f"hostfile:{hosts}", "-q").stderr == ""


@pytest.mark.parametrize("name", BASELINES)
def test_every_baseline(job: str, name: str) -> None:
    """Each baseline can be scored, and the list names it."""
    assert hop_cost(job, f"baseline:{name}", "--seed", 3) >= IN_ORDER
    assert f"baseline:{name} " in CliRunner().invoke(main, ["score", "--list"]).stdout


@pytest.mark.parametrize(
    "args",
    [
        [],
        ["--baseline", "random", "--hostfile", "hosts.txt"],
        ["plan.json", "--plan", "plan.json"],
        ["baseline:best"],
        ["/no/such/plan.json"],
        ["hostfile:/no/such/hosts"],
        ["baseline:random", "--hosts", "r7-n1"],
    ],
    ids=" ".join,
)
def test_bad_options(job: str, args: list[str]) -> None:
    """None or two sources, or one that does not exist, ends with 2 and no output."""
    found = score(job, *args)
    assert found.exit_code == 2
    assert found.stdout == ""
    assert "Traceback" not in found.stderr


def test_plan_of_another_job(job: str, tmp_path: Path) -> None:
    """A plan with another number of ranks or rank order is refused."""
    plan = tmp_path / "plan.json"
    args = ["place", "-q", "-t", MACHINE, "-j", job, "-o", str(plan)]
    CliRunner().invoke(main, args)
    other = tmp_path / "other.yaml"
    other.write_text(JOB.replace("dp: 4", "dp: 2"))
    assert score(str(other), plan).exit_code == 2
    other.write_text(JOB.replace("dp: 4", "dp: 4, order: tp-cp-ep-pp-dp"))
    found = score(str(other), plan)
    assert found.exit_code == 2
    assert "tp-cp-ep-pp-dp" in found.stderr
