"""The benchmark of searches for degrees, at a size of a moment."""

from pathlib import Path

import pytest

from benchmarks.degrees import (
    CASES,
    Case,
    Row,
    hosts_left,
    job_file,
    main,
    measure,
    table,
)
from placer.job.read import read_job
from placer.topology.read import read_topology


def test_what_others_left_is_of_the_machine() -> None:
    """Trays have names of the preset, each once."""
    machine = read_topology("azure-gb200-mlperf-v6")
    left = hosts_left(1101)
    assert len(set(left)) == 1101
    assert set(left) <= set(machine.domain_names[machine.node_tier])


@pytest.mark.parametrize("case", CASES)
def test_jobs_are_those_of_presets(case: Case, tmp_path: Path) -> None:
    """Only the requirement that hosts cannot meet is left out."""
    job = read_job(job_file(case, tmp_path))
    assert job.model == read_job(case.job).model
    assert bool(job.require) == case.requires


def test_table() -> None:
    """Gaps are rounded up."""
    row = Row(CASES[0], 1234, 5.4, 6e6, 1.23456, 1.1e-5)
    *_, last = table([row])
    assert last.endswith("| 1,234 | 5 s | 6 MB | 1.235 s | 0.002% |")


@pytest.mark.slow
def test_a_search_is_measured() -> None:
    """Step and proof are those of the command."""
    row = measure(Case("hosts", "dgx-h100-4x8", "quickstart"), 16)
    assert row.cpu_s > 0
    assert row.choices > 1000
    assert 0 <= row.gap < 1e-3


def test_cases_can_be_chosen(capsys: pytest.CaptureFixture[str]) -> None:
    """A text that no case has leaves the head of the table."""
    assert main(["--only", "no such machine"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2
