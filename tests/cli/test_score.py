"""``placer score`` from end to end."""

import pytest

from placer.placement.baselines import BASELINES
from tests.cli import small_job
from tests.cli.small_job import MACHINE
from tests.commands import data, refusal, run

JOB = small_job.WEIGHED + "require: {tp: node}\n"


def score(job, *args):
    return run("score", "-t", MACHINE, "-j", job, *args)


def scored(job, *args):
    return data("score", "-t", MACHINE, "-j", job, *args)


def hop_cost(job, *args):
    return float(scored(job, *args)["hop_cost"])


# Four tp pairs inside nodes at distance 1, and two dp rings of four over two racks of
# two nodes; both upper tiers have 450 / 50 = 9 times the node's distance.
IN_ORDER = 10 * 4 * 1 + 1 * 2 * 4 * 9


def test_three_sources_agree(job, tmp_path):
    """The same placement as baseline, host file and plan has the same, known score."""
    hosts = tmp_path / "hosts.txt"
    hosts.write_text("r1-n1:2\nr1-n2:2\nr2-n1:2\nr2-n2:2\n")
    plan = tmp_path / "plan.json"
    run("place", "-q", "-t", MACHINE, "-j", job, "-o", plan)
    assert hop_cost(job, "baseline:given-order") == IN_ORDER
    assert hop_cost(job, f"hostfile:{hosts}") == IN_ORDER
    assert hop_cost(job, plan) == IN_ORDER


def test_text_is_a_table(job):
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


def test_broken_rules_are_noted(job, tmp_path):
    """A placement that breaks a hard rule is scored all the same, with a note."""
    hosts = tmp_path / "hosts.txt"
    hosts.write_text("r1-n1\nr1-n2\nr1-n1\nr1-n2\nr2-n1:2\nr2-n2:2\n")
    found = score(job, f"hostfile:{hosts}")
    assert "note: 2 of 4 tp groups leave their node" in found.stderr
    assert score(job, f"hostfile:{hosts}", "-q").stderr == ""


@pytest.mark.parametrize("name", BASELINES)
def test_every_baseline(job, name):
    """Each baseline can be scored, and the list names it."""
    assert hop_cost(job, f"baseline:{name}", "--seed", 3) >= IN_ORDER
    assert f"baseline:{name} " in run("score", "--list").stdout


@pytest.mark.parametrize(
    "args",
    [
        [],
        ["--baseline", "random", "--hostfile", "hosts.txt"],
        ["plan.json", "--plan", "plan.json"],
        ["baseline:random", "--hosts", "r7-n1"],
    ],
    ids=" ".join,
)
def test_bad_options(job, args):
    """None or two sources, or one that does not exist, ends with 2 and no output."""
    refusal("score", "-t", MACHINE, "-j", job, *args)
