"""``placer check`` and ``placer diff``: of plans, and of what is no plan file."""

import json
from pathlib import Path

import numpy as np
import pytest

import placer
from placer.placement.build import build_plan
from placer.placement.placement import Placement
from tests.cli.small_job import MACHINE, WEIGHED
from tests.commands import data, refusal, run

JOB = WEIGHED + "require: {tp: node}\n"
SMALL = ("-t", MACHINE, "-j", "job.yaml")
QUICK = ("-t", "rack:4 node:9 gpu:8", "-j", "quickstart")
HOLDS = "ok: 8 ranks on 4 nodes\n"


@pytest.fixture(autouse=True)
def _plans(folder):
    """A job, a good plan, and one with two ranks swapped."""
    (folder / "job.yaml").write_text(JOB)
    topology, job = placer.read_topology(MACHINE), placer.read_job("job.yaml")
    for name, gpus in (("good", range(8)), ("swapped", [0, 2, 1, 3, 4, 5, 6, 7])):
        plan = build_plan(topology, job, Placement(np.array(gpus)))
        placer.write_plan(plan, f"{name}.json")


def test_check_fails():
    """A plan that breaks a rule gives exit code 1 and a line for each violation.

    So does one with two ranks on a GPU, which is no input error.
    """
    told = run("check", "swapped.json", *SMALL, code=1).stdout
    assert "2 of 4 tp groups leave their node" in told
    found = data("check", "swapped.json", *SMALL, code=1)
    assert found == {"ok": False, "violations": told.splitlines()}
    plan = json.loads(Path("good.json").read_text())
    Path("bad.json").write_text(
        json.dumps(plan | {"gpu_of_rank": [0, 0, 0, 1, 0, 1, 0, 1]})
    )
    told = run("check", "bad.json", *SMALL, code=1).stdout
    assert "ranks 0 and 1 are both on" in told
    refusal("diff", "bad.json", "swapped.json")


def test_a_plan_alone_is_enough():
    """It is checked by itself, its bound too; what it says of its cost is not believed.

    Not by ``diff`` either, which works both costs out again.
    """
    run("place", *SMALL, "-q", "-o", "placed.json")
    for more in ((), ("--bound",), SMALL):
        assert run("check", "placed.json", *more).stdout == HOLDS
    assert run("check", "placed.json", "-q").stdout == ""
    assert data("check", "placed.json") == {"ok": True, "violations": []}
    plan = json.loads(Path("placed.json").read_text())
    plan["score"]["hop_cost"] *= 2
    Path("other.json").write_text(json.dumps(plan))
    run("diff", "placed.json", "other.json")
    plan["bound"]["status"] = "junk"
    Path("other.json").write_text(json.dumps(plan))
    assert "bound.status: expected" in run("check", "other.json", code=1).stdout


def test_diff_exit_codes_and_formats():
    """No difference is 0, a difference 1; a file's name says its format."""
    assert run("diff", "good.json", "good.json").stdout.startswith("no difference")
    pair = ("diff", "good.json", "swapped.json")
    assert "ranks moved: 2 of 8" in run(*pair, code=1).stdout
    assert data(*pair, code=1)["ranks_moved"] == 2
    for name in ("text", "json", "html"):
        asked = run(*pair, "--format", name, code=1).stdout
        output = f"diff.{name.replace('text', 'txt')}"
        assert run(*pair, "-o", output, code=1).stdout == ""
        assert Path(output).read_text() == asked
    assert asked.startswith("<!doctype html>")


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (("baseline:sorted", "baseline:random", *QUICK), "no baseline"),
        (("launcher:slrm", "baseline:random", *QUICK), 'no launcher "slrm"'),
        (("-", "hostfile:-", *QUICK), "only one"),
        (("hostfile:", "baseline:random", *QUICK), '"hostfile:" names no hostfile'),
        (("hostfile:/nowhere", "baseline:random", *QUICK), "cannot be read"),
        (("baseline:random", "launcher:slurm"), "'-t'"),
        (("baseline:random", "launcher:slurm", *QUICK[:2]), "'-j'"),
        (("baseline:random", "launcher:slurm"), "neither of the two is a plan"),
    ],
)
def test_what_cannot_be_compared(words, wanted):
    """A placement that is not known or lacks its inputs is an input error."""
    assert wanted in refusal("diff", *words)
