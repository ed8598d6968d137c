"""``placer score`` and ``placer explain`` from end to end."""

import json
import shlex

import pytest

import placer
from placer.placement.baselines import BASELINES
from tests.cli import small_job
from tests.cli.small_job import MACHINE
from tests.commands import data, refusal, run

JOB = small_job.WEIGHED + "require: {tp: node}\n"


def score(job, *args):
    return run("score", "-t", MACHINE, "-j", job, *args)


def hop_cost(job, *args):
    return data("score", "-t", MACHINE, "-j", job, *args)["hop_cost"]


# Four tp pairs inside nodes at distance 1, and two dp rings of four over two racks of
# two nodes; both upper tiers have 450 / 50 = 9 times the node's distance.
IN_ORDER = 10 * 4 * 1 + 1 * 2 * 4 * 9


def test_three_sources_agree(job, tmp_path):
    """A placement has one known score as baseline, as host file and as plan."""
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


@pytest.fixture
def timed(tmp_path):
    path = tmp_path / "timed.yaml"
    path.write_text(small_job.JOB)
    return str(path)


@pytest.fixture
def plan(tmp_path, timed):
    path = tmp_path / "plan.json"
    run("place", "-q", "-t", MACHINE, "-j", timed, "-o", path)
    return path


def test_json_is_what_the_library_says(plan, timed):
    """The command's JSON is the library's answer."""
    args = ("-t", MACHINE, "-j", timed, "--rank", 3, "--group", "dp:0")
    expected = placer.explain(placer.read_plan(plan), ranks=[3], groups=["dp:0"])
    assert data("explain", plan, *args) == json.loads(json.dumps(expected))
    rank, group = expected["subjects"]
    content = placer.read_plan(plan)
    assert rank["host"] == content.host_of_rank[3]
    assert rank["gpu"] == content.gpu_of_rank[3]
    assert rank["domains"]["rack"] == content.domains["rack"][content.node_of_rank[3]]
    assert expected["value"] == content.score["step_time_s"]
    for facts in (*rank["groups"], group["facts"]):
        assert facts["exposed_s"] == content.score["exposed_s"][facts["axis"]]
    assert [seat["rank"] for seat in group["members"]] == group["facts"]["ranks"]


def test_without_a_subject(plan):
    """It is the group that a step waits for, or rank 0 where none is slower."""
    content = json.loads(plan.read_text())
    for as_slow, head in ((1, "group pp:3 of 4"), (4, "rank 0: ")):
        worst = {"axis": "pp", "group": 3, "as_slow": as_slow, "groups": 4}
        content["score"]["worst_group"] = content["score"]["worst_group"] | worst
        plan.write_text(json.dumps(content))
        assert run("explain", plan).stdout.startswith(head)


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--rank", "x"], ["not a list of ranks"]),
        (["--group", "pp"], ["no group such as pp:37"]),
        (["--group", "pq:0"], ['no axis or group "pq"']),
        (["--group", "pp:4"], ["pp:0 to pp:3"]),
        (["--group", "cp:0"], ["every cp group is a single rank"]),
        (["--host", "nowhere"], ['no host "nowhere"']),
        (["--rank", "99", "--group", "tp:9"], ["no rank 99", 'no group "tp:9"']),
        (["-j", "quickstart", "--rank", "0"], ["the plan"]),
    ],
)
def test_errors(plan, args, words):
    """What is not in the plan is an input error that says what would be, all at once.

    So is another job than the plan's.
    """
    told = refusal("explain", plan, *args)
    assert [word for word in words if word not in told] == []


@pytest.mark.usefixtures("folder", "timed")
def test_the_summary_names_a_command_that_works():
    """What `placer place` offers to run next can be run as it stands."""
    args = ["-t", MACHINE, "-j", "timed.yaml", "-o", "my plan.json"]
    for order in ([], ["--order", "auto"]):
        summary = run("place", *args, *order).stdout
        typed = summary.partition("\nnext\n")[2].replace("\\\n", " ")
        commands = [shlex.split(line) for line in typed.splitlines()]
        assert [words[:2] for words in commands[:2]] == [
            ["placer", "emit"],
            ["placer", "emit"],
        ]
        assert commands[2][:2] == ["placer", "explain"]
        for words in commands:
            assert run(*words[1:]).stderr == ""
