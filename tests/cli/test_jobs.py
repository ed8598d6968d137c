"""``placer job``: presets listed, shown, and printed so that they can be read back."""

import pytest

from placer.documents.presets import preset_names
from placer.job.read import read_job
from tests.commands import data, run

JOBS = preset_names("jobs")


def test_a_workload_shows_its_roles() -> None:
    """Who takes part and what they send; axes and order are of no workload."""
    text = run("jobs", "show", "rl-weights-qwen3").stdout
    assert "role rollout  4 x 8 ranks, tp 8\n" in text
    assert "transfer 1    trainer to rollout, 235.1 GB a cycle, reshard\n" in text
    assert "  axes" not in text


def test_list() -> None:
    """Both forms list every preset with its ranks."""
    rows = data("jobs", "list")
    assert [row["name"] for row in rows] == list(JOBS)
    lines = run("jobs", "list").stdout.splitlines()
    assert [line.split()[0] for line in lines] == list(JOBS)
    sizes = {row["name"]: row["ranks"] for row in rows}
    assert sizes["quickstart"] == 16


@pytest.mark.parametrize("name", JOBS)
def test_text_fits_a_terminal(name: str) -> None:
    """The text opens with the job's name and is at most 80 columns wide."""
    lines = run("jobs", "show", name).stdout.splitlines()
    assert lines[0] == read_job(name).name
    assert max(map(len, lines)) <= 80
