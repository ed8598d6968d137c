"""The benchmark of the whole command, on a machine of a moment."""

import json
from pathlib import Path

import pytest

from benchmarks.command import (
    main,
)


def test_from_end_to_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It places the job, prints a row and writes the same as JSON."""
    job = tmp_path / "job.yaml"
    job.write_text(
        "format: placer/job\nversion: 1\nname: small\n"
        "parallelism: {tp: 2, dp: 2}\nweights: {tp: 10, dp: 1}\n"
    )
    output = tmp_path / "rows.json"
    case = ["--case", "rack:2 node:2 gpu:2", str(job)]
    assert main([*case, "--runs", "1", "--json", str(output)]) == 0
    (row,) = json.loads(output.read_text())
    assert (row["job"], row["ranks"], row["status"]) == (str(job), 4, "optimal")
    assert len(capsys.readouterr().out.splitlines()) == 3
