"""Library calls: what they take for a topology and a job, and wrong types."""

import inspect
from pathlib import Path

import pytest

import placer
from tests.commands import run
from tests.texts import file_text

MACHINE, JOB = "rack:2 node:2 gpu:4", "quickstart"


@pytest.fixture(scope="module")
def plan():
    return placer.place(MACHINE, JOB, time_limit=1)


def calls(plan):
    """Every public call with arguments it takes."""
    both = {"topology": MACHINE, "job": JOB}
    return {
        "allocate": {"topology": MACHINE, "jobs": [JOB], "time_limit": 0},
        "check": both | {"plan": plan},
        "diff": {"old": plan, "new": plan, "job": None},
        "draw": {"plan": plan, "theme": "light"},
        "emit": {"plan": plan, "format": "json", "path": None},
        "explain": both | {"plan": plan, "ranks": [1], "groups": [], "hosts": []},
        "jax_mesh": {"axis_shapes": (1,), "axis_names": ("dp",), "devices": None},
        "place": both | {"hosts": "r[1-2]-n[1-2]", "time_limit": 0},
        "predict": both | {"launcher": "slurm"},
        "ray_nodes": {"nodes": 1, "job": JOB},
        "read_job": {"source": JOB},
        "read_plan": {"source": "plan.json"},
        "read_topology": {"source": MACHINE},
        "report_html": {"plan": plan, "before": None},
        "replace": both | {"plan": plan, "time_limit": 0},
        "score": both | {"placement": plan},
        "sweep": both | {"dp": [1], "time_limit": 0},
        "torch_mesh": {"device_type": "cpu", "mesh_shape": (1,)},
        "tune": both | {"memory": 80e9, "tp": [1], "pp": [1]},
        "write_plan": {"plan": plan, "path": "again.json"},
    }


# They ask the job that they run in: `tests.clients` does.
IN_A_JOB = {"jax_mesh", "ray_nodes", "torch_mesh"}

ARGUMENTS = [
    (name, argument)
    for name in calls(None)
    for argument in inspect.signature(getattr(placer, name)).parameters
]


def test_an_argument_that_there_is_not_names_the_call():
    """As Python's own message does."""
    with pytest.raises(TypeError, match=r"^place\(\) got an unexpected .* 'limit'"):
        placer.place(MACHINE, JOB, limit=1)


def test_every_public_call_is_tried():
    """The table above has all functions of the package."""
    public = {name for name in placer.__all__ if name[0].islower()}
    assert set(calls(None)) == public


@pytest.mark.parametrize(("name", "argument"), ARGUMENTS)
def test_a_wrong_type_names_the_argument(name, argument, plan):
    """Whatever is given for it, an argument of a wrong type is an InputError."""
    for wrong in (object(), 1.5j, b"n1", [object()], {1: 2}):
        given = calls(plan.plan)[name] | {argument: wrong}
        with pytest.raises(placer.InputError) as caught:
            getattr(placer, name)(**given)
        assert [problem.key for problem in caught.value.problems] == [argument]


def test_all_wrong_arguments_at_once():
    """Every argument that is wrong is named, with what it may be and what it is."""
    with pytest.raises(placer.InputError) as caught:
        placer.place(MACHINE, JOB, hosts=[1], seed="0", stop=None)
    assert str(caught.value).splitlines() == [
        "hosts: expected a host list or a list of names or None, got [1]",
        "seed: expected an integer, got '0'",
        "stop: expected a function, got None",
    ]


def test_what_the_options_take(plan, tmp_path, monkeypatch):
    """Names, texts and paths mean what they mean after -t and -j."""
    monkeypatch.chdir(tmp_path)
    placer.write_plan(plan.plan, "plan.json")
    for name in calls(None).keys() - IN_A_JOB:
        given = calls(plan.plan)[name]
        getattr(placer, name)(**given)
    read = placer.place(placer.read_topology(MACHINE), placer.read_job(JOB))
    assert placer.place(MACHINE, JOB).plan.node_of_rank.tolist() == (
        read.plan.node_of_rank.tolist()
    )


RULES = {
    "require": {"tp": "rak"},
    "rules": {"at_most": {"blok": 2}, "spares": {"pod": 1}},
}
COMMANDS = [
    ["place", "--time-limit", "0"],
    ["predict", "--launcher", "slurm"],
    ["score", "baseline:random"],
    ["diff", "baseline:random", "baseline:given-order"],
    ["diff", "plan.json", "launcher:slurm", "--force"],
    ["check", "plan.json"],
    ["explain", "plan.json", "--rank", "0", "--force"],
    ["replace", "plan.json", "--force"],
    ["sweep", "--dp", "4"],
]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_unknown_tiers_are_refused_by_every_command(
    command,
    plan,
    tmp_path,
    monkeypatch,
):
    """A rule on a tier that the machine lacks ends all commands alike."""
    monkeypatch.chdir(tmp_path)
    placer.write_plan(plan.plan, "plan.json")
    axes = {"tp": 4, "pp": 2, "dp": 2}
    job = file_text("job", parallelism=axes, weights={"tp": 1}, **RULES)
    Path("job.json").write_text(job)
    told = run(*command, "-t", MACHINE, "-j", "job.json", code=2).output
    for key in ("require.tp", "rules.at_most.blok", "rules.spares.pod"):
        assert f'{key}: the topology {MACHINE} has no tier "' in told
