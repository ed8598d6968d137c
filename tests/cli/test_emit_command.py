"""``placer emit``: text to standard output, or a file and its path."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from placer.base.errors import EmitError, InputError
from placer.cli.emit import emit as command
from placer.emit import emit
from placer.emit.registry import FORMATS
from placer.placement.plan_file import write_plan
from tests.emit.readback import CONTIGUOUS, FREE, OF_PLANS, plan_of


@pytest.fixture
def plan_file(tmp_path: Path) -> str:
    path = tmp_path / "plan.json"
    write_plan(plan_of(CONTIGUOUS, dp=8), path)
    return str(path)


@pytest.mark.parametrize("format", [k for k in OF_PLANS if not FORMATS[k].folder])
@pytest.mark.parametrize("extra", [[], ["-o", "-"]], ids=["plain", "dash"])
def test_prints_the_text(plan_file: str, format: str, extra: list[str]) -> None:
    """Without a path, or with ``-``, the launcher file itself is printed."""
    run = CliRunner().invoke(command, [plan_file, format, *extra])
    assert (run.exit_code, run.stderr) == (0, "")
    assert run.stdout == emit(plan_of(CONTIGUOUS, dp=8), format)


def test_writes_and_prints_the_path(plan_file: str, tmp_path: Path) -> None:
    """With a path the file is written, and only the path is printed."""
    target = tmp_path / "hosts.txt"
    run = CliRunner().invoke(command, [plan_file, "slurm-hostfile", "-o", str(target)])
    assert run.stdout == f"{target}\n"
    assert target.read_text() == "n3\nn3\nn1\nn1\nn4\nn4\nn2\nn2\n"


def test_a_folder_of_files(plan_file: str, tmp_path: Path) -> None:
    """A format of several files fills the folder of ``-o``; without one it says so."""
    target = tmp_path / "launch"
    run = CliRunner().invoke(command, [plan_file, "hydra", "-o", str(target)])
    assert run.stdout == f"{target}\n"
    assert (target / "machines.txt").read_text() == "n3:2\nn1:2\nn4:2\nn2:2\n"
    run = CliRunner().invoke(command, [plan_file, "hydra"])
    assert isinstance(run.exception, InputError)
    assert "name a folder" in str(run.exception)


def test_list_needs_no_plan() -> None:
    """``--list`` alone prints one line a format."""
    run = CliRunner().invoke(command, ["--list"])
    assert run.exit_code == 0
    assert [line.split()[0] for line in run.stdout.splitlines()] == list(FORMATS)


def test_unknown_format_is_a_usage_error(plan_file: str) -> None:
    """A format that does not exist ends with 2 and the names of those that do."""
    run = CliRunner().invoke(command, [plan_file, "lsf"])
    assert run.exit_code == 2
    assert "openmpi-rankfile" in run.stderr


def test_refusal_writes_nothing(tmp_path: Path) -> None:
    """A refused plan leaves no file behind."""
    write_plan(plan_of(FREE), tmp_path / "plan.json")
    target = tmp_path / "run.sh"
    run = CliRunner().invoke(
        command, [str(tmp_path / "plan.json"), "torchrun", "-o", str(target)]
    )
    assert isinstance(run.exception, EmitError)
    assert not target.exists()
