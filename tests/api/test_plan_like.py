"""Library calls: plans in any form, times as on the command line, and wrong types."""

import inspect
import json
from pathlib import Path

import pytest

import placer
from tests.commands import run
from tests.texts import file_text

OTHER = placer.predict("dgx-h100-4x8", "quickstart", "slurm", hosts="n[2-3]")


def placed(**how):
    return placer.place("dgx-h100-4x8", "quickstart", time_limit="1m", **how)


def allocated(**how):
    return placer.allocate("dgx-h100-4x8", "quickstart", free="n[1-4]", **how)


CALLS = {
    "score": placer.score,
    "score placement": lambda p: placer.score("dgx-h100-4x8", "quickstart", p),
    "check": placer.check,
    "diff": lambda plan: placer.diff(plan, plan).to_dict(),
    "emit": lambda plan: placer.emit(plan, "slurm-hostfile"),
    "explain": lambda plan: placer.explain(plan, ranks=[3]),
    "replace": lambda p: placer.replace(p, failed="n1", time_limit="9s").plan.nodes,
    "draw": lambda plan: placer.draw(plan, "traffic").svg,
    "report": lambda plan: placer.report_html(plan, None),
    "report against": lambda plan: placer.report_html(OTHER, plan),
    "previous": lambda plan: placed(previous=plan).plan.previous,
    "keep": lambda plan: allocated(keep=[plan]).rows,
    "move": lambda plan: allocated(move=[plan], move_price="1ms").rows,
}


@pytest.fixture(scope="module")
def forms(tmp_path_factory):
    """A plan, and whatever else stands for it."""
    path = tmp_path_factory.mktemp("forms") / "plan.json"
    found = placed(hosts="n[1-3]")
    placer.write_plan(found.plan, path)
    return [found.plan, found, path, str(path), json.loads(path.read_text())]


@pytest.mark.parametrize("name", CALLS)
def test_a_plan_in_any_form(forms, name):
    """A plan, a result, a path and plain data of the same plan give the same."""
    first, *others = [CALLS[name](form) for form in forms]
    assert all(other == first for other in others)


def test_broken_data_of_a_plan():
    """A dict that is no plan, and a file that is not there, are told as such."""
    with pytest.raises(placer.InputError, match="the plan"):
        placer.emit({"format": "placer/plan"}, "csv")
    with pytest.raises(placer.InputError, match=r"gone\.json: cannot be read"):
        placer.explain(Path("gone.json"))


def test_durations_as_text():
    """Time limits are seconds or texts; what is neither is told by its name."""
    with pytest.raises(placer.InputError, match="time_limit: "):
        placer.place("dgx-h100-4x8", "quickstart", time_limit="soon")
    with pytest.raises(placer.InputError, match="move_price: "):
        allocated(move_price="much")
    found = placer.sweep("dgx-h100-4x8", "quickstart", dp=[2], time_limit="10s")
    assert len(found.rows) == 1


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


ARGUMENTS = [
    (name, argument)
    for name in calls(None)
    for argument in inspect.signature(getattr(placer, name)).parameters
]


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
    """Every argument that is wrong is named, with what it may be and what it is.

    One that there is not names the call, as Python's own message does.
    """
    with pytest.raises(TypeError, match=r"^place\(\) got an unexpected .* 'limit'"):
        placer.place(MACHINE, JOB, limit=1)
    with pytest.raises(placer.InputError) as caught:
        placer.place(MACHINE, JOB, hosts=[1], seed="0", stop=None)
    assert str(caught.value).splitlines() == [
        "hosts: expected a host list or a list of names or None, got [1]",
        "seed: expected an integer, got '0'",
        "stop: expected a function, got None",
    ]


RULES = {
    "require": {"tp": "rak"},
    "rules": {"at_most": {"blok": 2}, "spares": {"pod": 1}},
}
COMMANDS = [
    ["place", "--time-limit", "0"],
    ["predict", "--launcher", "slurm"],
    ["diff", "baseline:random", "baseline:given-order"],
    ["check", "plan.json"],
    ["replace", "plan.json", "--force"],
    ["sweep", "--dp", "4"],
]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_unknown_tiers_are_refused_by_every_command(
    command, plan, tmp_path, monkeypatch
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
