"""``--order`` and ``--previous``: as a user types them, through to the files."""

import json

import pytest

from tests.cli.small_job import HEAD
from tests.commands import data, refusal, run

MACHINE = "node:2 gpu:4"
JOB = HEAD + "parallelism: {pp: 4, dp: 2, order: ORDER}\nweights: {pp: 10, dp: 1}\n"
OPEN, DEFAULT, MAJOR = "auto", "tp-cp-ep-dp-pp", "tp-cp-ep-pp-dp"


@pytest.fixture
def jobs(tmp_path):
    """A job with its order open, and fixed either way."""
    found = {order: tmp_path / f"{order}.yaml" for order in (OPEN, DEFAULT, MAJOR)}
    for order, path in found.items():
        path.write_text(JOB.replace("ORDER", order))
    return found


def test_an_open_order_is_chosen(jobs, tmp_path):
    """The plan names the order, and check, score and emit work with the open job."""
    path, given = tmp_path / "plan.json", ("-t", MACHINE, "-j", jobs[OPEN])
    found = run("place", *given, "-o", path)
    assert f"rank order {MAJOR} chosen" in found.stdout
    plan = json.loads(path.read_text())
    assert (plan["job"]["order"], plan["job"]["auto_order"]) == (MAJOR, True)
    assert (plan["bound"]["value"], plan["bound"]["status"]) == (96, "optimal")
    run("check", path, *given)
    for more in ([], ["--explain"]):
        assert data("score", "--plan", path, *given, *more)["hop_cost"] == 96
    # Replica by replica, ranks 0 to 3 are one pipeline on one node.
    rows = run("emit", path, "csv").stdout.splitlines()[1:5]
    assert [row.split(",")[2] for row in rows] == ["0"] * 4


def test_order_is_as_if_the_file_said_so(jobs, tmp_path):
    """A plan made with --order is one of the edited file, and of --order again."""
    path, given = tmp_path / "plan.json", ("-t", MACHINE, "-j", jobs[DEFAULT])
    run("place", *given, "--order", OPEN, "-q", "-o", path)
    run("check", path, *given, code=2)
    run("check", path, *given, "--order", OPEN)
    run("check", path, "-t", MACHINE, "-j", jobs[OPEN])
    scored = data("score", "--plan", path, *given, "--order", OPEN)
    assert scored["hop_cost"] == 96


def test_previous(jobs, tmp_path):
    """Hosts in another order do not move ranks that may stay."""
    path, given = tmp_path / "plan.json", ("-t", MACHINE, "-j", jobs[MAJOR])
    run("place", *given, "--hosts", "n2,n1", "-q", "-o", path)
    alone, plan = data("place", *given), data("place", *given, "--previous", path)
    assert plan["nodes"] == json.loads(path.read_text())["nodes"]
    assert alone["nodes"] == ["n1", "n2"] != plan["nodes"]
    assert plan["previous"] == {"kept": 8, "moved": 0, "new": 0}
    told = run("place", *given, "--previous", path).stdout
    assert "8 of 8 ranks stay where the previous plan has them, 0 move" in told


def test_previous_of_another_job(jobs, tmp_path):
    """A plan whose ranks do other work, or no plan at all, is refused."""
    path, other = tmp_path / "plan.json", tmp_path / "other.yaml"
    run("place", "-t", MACHINE, "-j", jobs[MAJOR], "-q", "-o", path)
    text = jobs[MAJOR].read_text()
    other.write_text(text.replace("pp: 4, dp: 2", "pp: 2, dp: 4"))
    given = ("place", "-t", MACHINE, "-j", other, "--previous")
    told = refusal(*given, path)
    assert "the previous plan is of another job: pp 4 against 2" in told
    refusal(*given, other)
