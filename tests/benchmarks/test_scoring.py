"""The scoring benchmark measures what it says, at sizes of a moment."""

import json
from pathlib import Path

import pytest

from benchmarks.scoring import main


def test_from_end_to_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It prints a row a size and writes the same as JSON."""
    output = tmp_path / "rows.json"
    sizes = ["--ranks", "512", "1024", "--runs", "1"]
    assert main([*sizes, "--json", str(output)]) == 0
    rows = json.loads(output.read_text())
    assert [row["ranks"] for row in rows] == [512, 1024]
    assert all(value > 0 for row in rows for value in row.values())
    assert len(capsys.readouterr().out.splitlines()) == 2 + len(rows) + 1
