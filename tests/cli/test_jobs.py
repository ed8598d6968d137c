"""``placer job``: presets listed, shown, and printed so that they can be read back."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from placer.cli.main import main
from placer.documents.presets import preset_names
from placer.job.read import read_job

JOBS = preset_names("jobs")


def run(*args: str) -> str:
    found = CliRunner().invoke(main, ["jobs", *args])
    assert found.exit_code == 0, found.stderr
    return found.stdout


def test_a_workload_shows_its_roles() -> None:
    """Who takes part and what they send; axes and order are of no workload."""
    text = run("show", "rl-weights-qwen3")
    assert "role rollout  4 x 8 ranks, tp 8\n" in text
    assert "transfer 1    trainer to rollout, 235.1 GB a cycle, reshard\n" in text
    assert "  axes" not in text


def test_list() -> None:
    """Both forms list every preset with its ranks."""
    rows = json.loads(run("list", "--format", "json"))
    assert [row["name"] for row in rows] == list(JOBS)
    assert [line.split()[0] for line in run("list").splitlines()] == list(JOBS)
    sizes = {row["name"]: row["ranks"] for row in rows}
    assert sizes["quickstart"] == 16


@pytest.mark.parametrize("name", JOBS)
def test_json_reads_back(name: str, tmp_path: Path) -> None:
    """What --format json prints is a job file of the same job."""
    path = tmp_path / "job.json"
    path.write_text(run("show", name, "--format", "json"))
    again, job = read_job(path), read_job(name)
    assert again.sha256 == job.sha256
    assert (again.description, again.sources) == (job.description, job.sources)


@pytest.mark.parametrize("name", JOBS)
def test_text_fits_a_terminal(name: str) -> None:
    """The text opens with the job's name and is at most 80 columns wide."""
    lines = run("show", name).splitlines()
    assert lines[0] == read_job(name).name
    assert max(map(len, lines)) <= 80
