"""``placer diff`` of placements that are not plan files, and its web page."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from placer.base.errors import InputError
from placer.cli.diff import diff
from placer.cli.main import main
from placer.cli.score import score
from placer.job.read import read_job
from placer.placement.baselines import baseline
from placer.placement.build import build_plan
from placer.placement.inputs import Inputs
from placer.placement.plan_file import write_plan
from placer.topology.read import read_topology

MACHINE = "rack:4 node:9 gpu:8"
JOB = "quickstart"
INPUTS = ("-t", MACHINE, "-j", JOB)


def run(command: object, *args: object, **options: str) -> Result:
    return CliRunner().invoke(
        command, list(map(str, args)), catch_exceptions=False, **options
    )


def data_of(*args: object) -> dict:
    return json.loads(run(diff, *args, "--format", "json").stdout)


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    """A plan with its inputs, without a score."""
    topology, job = read_topology(MACHINE), read_job(JOB)
    path = tmp_path / "plan.json"
    placement = baseline("random", topology, job)
    inputs = Inputs(topology, job).to_document()
    write_plan(build_plan(topology, job, placement, inputs=inputs), path)
    return path


def test_any_two(plan: Path, tmp_path: Path) -> None:
    """A plan, a baseline, a host file and a launcher that agree do not differ."""
    hosts = tmp_path / "hosts"
    hosts.write_text("r1-n1:8\nr1-n2:8\n")
    alike = ("baseline:given-order", "launcher:slurm", f"hostfile:{hosts}")
    for old, new in zip(alike, (*alike[1:], alike[0]), strict=True):
        same = run(diff, old, new, *INPUTS)
        assert (same.exit_code, same.stdout[:13]) == (0, "no difference")
    assert run(diff, f"plan:{plan}", plan).exit_code == 0
    assert run(diff, "baseline:random", plan).exit_code == 0
    assert run(diff, "baseline:random", plan, "--seed", 1).exit_code == 1


def test_machine_and_job_are_those_of_the_plan(plan: Path) -> None:
    """Without -t and -j, those that the plan keeps are used."""
    named = data_of("launcher:slurm", plan)
    assert named == data_of("launcher:slurm", plan, *INPUTS)
    assert named["old"] == named["new"]


def test_costs_are_those_of_score(plan: Path) -> None:
    """The cost on each side is what `placer score` says; a plan without one gets it."""
    found = data_of("baseline:sorted-hosts", plan)
    for side, source in (
        ("old", "baseline:sorted-hosts"),
        ("new", plan),
    ):
        stated = json.loads(run(score, *INPUTS, source, "--format", "json").stdout)
        for key in ("step_time_s", "exposed_scale_out_s"):
            assert found["cost"][key][side] == stated[key]
        links = [link[side] for link in found["hottest_links"] if link[side]]
        assert sorted(link["busy_s"] for link in links) == sorted(
            link["busy_s"] for link in stated["hottest_links"]
        )


def test_state_to_move(plan: Path) -> None:
    """With the job of a preset, the restart counts the bytes of state."""
    found = data_of("baseline:given-order", plan)
    state = found["restart"]["state_bytes"]["to_new"]
    assert state["total"] == state["parameters"] + state["optimizer"] > 0


@pytest.mark.parametrize(
    ("args", "wanted"),
    [
        (("baseline:sorted", "baseline:random", *INPUTS), "no baseline"),
        (("launcher:slrm", "baseline:random", *INPUTS), 'no launcher "slrm"'),
        (("lauchner:slurm", "baseline:random", *INPUTS), 'mean "launcher:slurm"?'),
        (("-", "hostfile:-", *INPUTS), "only one"),
        (("hostfile:", "baseline:random", *INPUTS), '"hostfile:" names no hostfile'),
        (("hostfile:/nowhere", "baseline:random", *INPUTS), "cannot be read"),
    ],
)
def test_what_cannot_be_used(args: tuple[str, ...], wanted: str) -> None:
    """A placement that is not known or lacks its inputs is an input error."""
    with pytest.raises(InputError) as caught:
        run(diff, *args)
    assert wanted in str(caught.value)


@pytest.mark.parametrize(("given", "missing"), [((), "-t"), (("-t", MACHINE), "-j")])
def test_two_placements_without_a_plan_need_inputs(
    given: tuple[str, ...],
    missing: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without a plan, machine and job are asked for with the reason."""
    monkeypatch.chdir(tmp_path)
    result = run(main, "diff", "baseline:random", "launcher:slurm", *given)
    assert result.exit_code == 2
    assert missing in result.stderr
    assert "neither of the two is a plan" in result.stderr


def test_page(plan: Path, tmp_path: Path) -> None:
    """HTML comes on request or by the suffix."""
    path = tmp_path / "diff.html"
    args = ("baseline:given-order", plan)
    result = run(diff, *args, "-o", path)
    assert (result.exit_code, result.stdout) == (1, "")
    assert path.read_text() == run(diff, *args, "--format", "html").stdout
    assert path.read_text().startswith("<!doctype html>")
