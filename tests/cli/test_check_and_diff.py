"""``placer check`` and ``placer diff`` from end to end."""

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from placer.base.errors import InputError
from placer.cli.check import check
from placer.cli.diff import diff
from placer.cli.place import place
from placer.job.read import read_job
from placer.placement.build import build_plan
from placer.placement.placement import Placement
from placer.placement.plan_file import write_plan
from placer.topology.read import read_topology

MACHINE = "rack:2 node:2 gpu:2"
JOB = """\
format: placer/job
version: 1
name: small
parallelism: {tp: 2, dp: 4}
weights: {tp: 10, dp: 1}
require: {tp: node}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A job, a good plan, and one with two ranks swapped."""
    (tmp_path / "job.yaml").write_text(JOB)
    topology, job = read_topology(MACHINE), read_job(str(tmp_path / "job.yaml"))
    for name, gpus in (
        ("good.json", range(8)),
        ("swapped.json", [0, 2, 1, 3, 4, 5, 6, 7]),
    ):
        plan = build_plan(topology, job, Placement(np.array(gpus)))
        write_plan(plan, tmp_path / name)
    return tmp_path


def run(command: object, *args: object) -> Result:
    return CliRunner().invoke(command, list(map(str, args)), catch_exceptions=False)


def run_check(folder: Path, plan: str, *args: str) -> Result:
    inputs = ("-t", MACHINE, "-j", folder / "job.yaml")
    return run(check, folder / plan, *inputs, *args)


def test_check_passes(folder: Path) -> None:
    """A plan that holds gives exit code 0 and one line, or none with -q."""
    result = run_check(folder, "good.json")
    assert (result.exit_code, result.stdout) == (0, "ok: 8 ranks on 4 nodes\n")
    assert run_check(folder, "good.json", "-q").stdout == ""
    data = json.loads(run_check(folder, "good.json", "--format", "json").stdout)
    assert data == {"ok": True, "violations": []}


def test_check_fails(folder: Path) -> None:
    """A plan that breaks a rule gives exit code 1 and a line for each violation."""
    result = run_check(folder, "swapped.json")
    assert result.exit_code == 1
    assert "2 of 4 tp groups leave their node" in result.stdout
    data = json.loads(run_check(folder, "swapped.json", "--format", "json").stdout)
    assert data == {"ok": False, "violations": result.stdout.splitlines()}


def test_a_contradiction_is_a_violation(folder: Path) -> None:
    """A plan with two ranks on one GPU is answered with no, not with an input error."""
    path = folder / "good.json"
    data = json.loads(path.read_text()) | {"gpu_of_rank": [0, 0, 0, 1, 0, 1, 0, 1]}
    path.write_text(json.dumps(data))
    result = run_check(folder, "good.json")
    assert result.exit_code == 1
    assert "ranks 0 and 1 are both on" in result.stdout
    with pytest.raises(InputError):
        run(diff, path, folder / "swapped.json")


def test_check_refuses_what_is_no_plan(folder: Path) -> None:
    """A file that is no plan is an input error."""
    with pytest.raises(InputError):
        run_check(folder, "job.yaml")


def test_check_needs_the_plan_alone(folder: Path) -> None:
    """A plan that was placed is checked by itself, its bound too on request."""
    path = folder / "placed.json"
    inputs = ("-t", MACHINE, "-j", folder / "job.yaml")
    assert run(place, *inputs, "-q", "-o", path).exit_code == 0
    for args in ((), ("--bound",), inputs):
        assert run(check, path, *args).stdout == "ok: 8 ranks on 4 nodes\n"
    data = json.loads(path.read_text())
    data["bound"]["status"] = "junk"
    path.write_text(json.dumps(data))
    result = run(check, path)
    assert result.exit_code == 1
    assert "bound.status: expected" in result.stdout


def test_check_with_another_topology(folder: Path) -> None:
    """Inputs that the plan was not made for are refused; --force looks all the same."""
    path = folder / "good.json"
    other = ("-t", "rack:2 node:2 gpu:4", "-j", folder / "job.yaml")
    with pytest.raises(InputError, match="made for another topology"):
        run(check, path, *other)
    result = run(check, path, *other, "--force")
    assert (result.exit_code, result.stdout) == (0, "ok: 8 ranks on 4 nodes\n")


def test_diff_believes_no_score(folder: Path) -> None:
    """The cost in a difference is worked out again, whatever the plans say."""
    path, other = folder / "placed.json", folder / "other.json"
    inputs = ("-t", MACHINE, "-j", folder / "job.yaml")
    assert run(place, *inputs, "-q", "-o", path).exit_code == 0
    data = json.loads(path.read_text())
    data["score"]["hop_cost"] *= 2
    other.write_text(json.dumps(data))
    assert run(diff, path, other).exit_code == 0


def test_diff_exit_codes(folder: Path) -> None:
    """No difference is exit code 0, a difference 1."""
    good, swapped = folder / "good.json", folder / "swapped.json"
    same = run(diff, good, good)
    assert (same.exit_code, same.stdout[:13]) == (0, "no difference")
    other = run(diff, good, swapped)
    assert other.exit_code == 1
    assert "ranks moved: 2 of 8" in other.stdout


def test_diff_formats(folder: Path) -> None:
    """JSON comes on request, or when the output is named so."""
    good, swapped = folder / "good.json", folder / "swapped.json"
    asked = run(diff, good, swapped, "--format", "json")
    result = run(diff, good, swapped, "-o", folder / "diff.json")
    assert (result.exit_code, result.stdout) == (1, "")
    assert (folder / "diff.json").read_text() == asked.stdout
    assert json.loads(asked.stdout)["ranks_moved"] == 2
    run(diff, good, swapped, "-o", folder / "diff.txt")
    assert (folder / "diff.txt").read_text() == run(diff, good, swapped).stdout


def test_diff_reads_standard_input_once(folder: Path) -> None:
    """One plan may come from standard input, two may not."""
    text = (folder / "good.json").read_text()
    result = CliRunner().invoke(diff, ["-", str(folder / "good.json")], input=text)
    assert result.exit_code == 0
    with pytest.raises(InputError, match="only one"):
        run(diff, "-", "-")
