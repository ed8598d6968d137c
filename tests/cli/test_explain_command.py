"""``placer explain`` from end to end."""

import json
import shlex

import pytest

import placer
from tests.cli.small_job import JOB, MACHINE
from tests.commands import data, refusal, run

__all__ = ["JOB"]


@pytest.fixture
def plan(tmp_path, job):
    path = tmp_path / "plan.json"
    run("place", "-q", "-t", MACHINE, "-j", job, "-o", path)
    return path


def test_json_is_what_the_library_says(plan, job):
    """The command's JSON is the library's answer."""
    args = ("-t", MACHINE, "-j", job, "--rank", 3, "--group", "dp:0")
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
        (["--rank", "8"], ["there is no rank 8"]),
        (["--rank", "x"], ["not a list of ranks"]),
        (["--group", "pp"], ["no group such as pp:37"]),
        (["--group", "pq:0"], ['no axis or group "pq"']),
        (["--group", "pp:4"], ["pp:0 to pp:3"]),
        (["--group", "pp:-1"], ["pp:0 to pp:3"]),
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


@pytest.mark.usefixtures("folder", "job")
def test_the_summary_names_a_command_that_works():
    """What `placer place` offers to run next can be run as it stands."""
    args = ["-t", MACHINE, "-j", "job.yaml", "-o", "my plan.json"]
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
