"""``--order`` and ``--previous``: as a user types them, through to the files."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner, Result

from placer.cli.main import main

if TYPE_CHECKING:
    from pathlib import Path

MACHINE = "node:2 gpu:4"
JOB = """\
format: placer/job
version: 1
name: small
parallelism: {pp: 4, dp: 2, order: ORDER}
weights: {pp: 10, dp: 1}
"""
OPEN, DEFAULT, MAJOR = "auto", "tp-cp-ep-dp-pp", "tp-cp-ep-pp-dp"


def run(*args: object) -> Result:
    return CliRunner().invoke(main, list(map(str, args)))


@pytest.fixture
def jobs(tmp_path: Path) -> dict[str, Path]:
    """The same job with its order open, and fixed either way."""
    found = {order: tmp_path / f"{order}.yaml" for order in (OPEN, DEFAULT, MAJOR)}
    for order, path in found.items():
        path.write_text(JOB.replace("ORDER", order))
    return found


def test_an_open_order_is_chosen(jobs: dict[str, Path], tmp_path: Path) -> None:
    """The plan names the order, and check, score and emit work with the open job."""
    path, job = tmp_path / "plan.json", jobs[OPEN]
    found = run("place", "-t", MACHINE, "-j", job, "-o", path)
    assert found.exit_code == 0
    assert f"rank order {MAJOR} chosen" in found.stdout
    plan = json.loads(path.read_text())
    assert (plan["job"]["order"], plan["job"]["auto_order"]) == (MAJOR, True)
    assert (plan["bound"]["value"], plan["bound"]["status"]) == (96, "optimal")
    assert run("check", path, "-t", MACHINE, "-j", job).exit_code == 0
    for more in ([], ["--explain"]):
        scored = run(
            *("score", "--plan", path, "-t", MACHINE, "-j", job, "--format", "json"),
            *more,
        )
        assert json.loads(scored.stdout)["hop_cost"] == 96
    # Replica by replica, ranks 0 to 3 are one pipeline on one node.
    rows = run("emit", path, "csv").stdout.splitlines()[1:5]
    assert [row.split(",")[2] for row in rows] == ["0"] * 4


def test_advice_of_a_fixed_order(jobs: dict[str, Path]) -> None:
    """The advice line names the flag, and the saving is in the plan."""
    found = run("place", "-t", MACHINE, "-j", jobs[DEFAULT])
    text = " ".join(found.stdout.split())
    assert (
        f"order {MAJOR} would lower the hop cost by 128 "
        "(Megatron-LM: --use-tp-pp-dp-mapping)"
    ) in text
    plan = json.loads(
        run("place", "-t", MACHINE, "-j", jobs[DEFAULT], "--format", "json").stdout
    )
    assert plan["advice"]["savings"][0]["saves"] == 128


def test_order_is_as_if_the_file_said_so(jobs: dict[str, Path], tmp_path: Path) -> None:
    """A plan made with --order is one of the edited file, and of --order again."""
    path, job = tmp_path / "plan.json", jobs[DEFAULT]
    args = ("-t", MACHINE, "-j", job)
    assert run("place", *args, "--order", OPEN, "-q", "-o", path).exit_code == 0
    assert run("check", path, *args).exit_code == 2
    assert run("check", path, *args, "--order", OPEN).exit_code == 0
    assert run("check", path, "-t", MACHINE, "-j", jobs[OPEN]).exit_code == 0
    scored = run("score", "--plan", path, *args, "--order", OPEN, "--format", "json")
    assert json.loads(scored.stdout)["hop_cost"] == 96


def test_previous(jobs: dict[str, Path], tmp_path: Path) -> None:
    """Hosts in another order do not move ranks that may stay."""
    path, args = tmp_path / "plan.json", ("-t", MACHINE, "-j", jobs[MAJOR])
    assert run("place", *args, "--hosts", "n2,n1", "-q", "-o", path).exit_code == 0
    alone = json.loads(run("place", *args, "--format", "json").stdout)
    found = run("place", *args, "--previous", path, "--format", "json")
    plan = json.loads(found.stdout)
    assert plan["nodes"] == json.loads(path.read_text())["nodes"]
    assert alone["nodes"] == ["n1", "n2"] != plan["nodes"]
    assert plan["previous"] == {"kept": 8, "moved": 0, "new": 0}
    found = run("place", *args, "--previous", path)
    assert "8 of 8 ranks stay where the previous plan has them, 0 move" in found.stdout


def test_previous_of_another_job(jobs: dict[str, Path], tmp_path: Path) -> None:
    """A plan whose ranks do other work, or no plan at all, is refused."""
    path = tmp_path / "plan.json"
    run("place", "-t", MACHINE, "-j", jobs[MAJOR], "-q", "-o", path)
    other = tmp_path / "other.yaml"
    other.write_text(
        JOB.replace("ORDER", MAJOR).replace("pp: 4, dp: 2", "pp: 2, dp: 4")
    )
    found = run("place", "-t", MACHINE, "-j", other, "--previous", path)
    assert found.exit_code == 2
    assert "the previous plan is of another job: pp 4 against 2" in found.stderr
    found = run("place", "-t", MACHINE, "-j", other, "--previous", other)
    assert found.exit_code == 2
