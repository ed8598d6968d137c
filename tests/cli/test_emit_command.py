"""``placer emit``: text to standard output, or a file and its path."""

import pytest

from placer.emit import emit
from placer.emit.registry import FORMATS
from placer.placement.plan_file import write_plan
from tests.commands import refusal, run
from tests.emit.readback import CONTIGUOUS, FREE, plan_of


@pytest.fixture
def plan_file(tmp_path):
    path = tmp_path / "plan.json"
    write_plan(plan_of(CONTIGUOUS, dp=8), path)
    return str(path)


def test_prints_the_text(plan_file):
    """Without a path, or with ``-``, the launcher file itself is printed."""
    for extra in ((), ("-o", "-")):
        found = run("emit", plan_file, "slurm-hostfile", *extra)
        assert found.stderr == ""
        assert found.stdout == emit(plan_of(CONTIGUOUS, dp=8), "slurm-hostfile")


def test_writes_and_prints_the_path(plan_file, tmp_path):
    """With a path the file is written, or a folder of files; the path is printed."""
    for format, name in (("slurm-hostfile", ""), ("hydra", "machines.txt")):
        target = tmp_path / format
        found = run("emit", plan_file, format, "-o", target)
        assert found.stdout == f"{target}\n"
        assert (target / name).read_text().startswith("n3")
    assert "name a folder" in refusal("emit", plan_file, "hydra")


def test_list_needs_no_plan():
    """``--list`` alone prints one line a format."""
    lines = run("emit", "--list").stdout.splitlines()
    assert [line.split()[0] for line in lines] == list(FORMATS)


def test_refusal_writes_nothing(tmp_path):
    """A refused plan leaves no file behind."""
    write_plan(plan_of(FREE), tmp_path / "plan.json")
    target = tmp_path / "run.sh"
    refusal("emit", tmp_path / "plan.json", "torchrun", "-o", target)
    assert not target.exists()
