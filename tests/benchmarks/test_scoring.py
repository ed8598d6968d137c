"""The scoring benchmark measures what it says, at sizes of a moment."""

import json
from pathlib import Path

import pytest

from benchmarks.scoring import Row, case, exponent, main, table


def test_case_is_the_size_asked_for() -> None:
    """Machine and job are of the size, and replicas fill racks."""
    topology, job = case(1024)
    assert topology.num_gpus == job.world_size == 1024
    assert set(topology.gpus_of_node.tolist()) == {64}
    assert job.parallelism.dp == 16


def test_exponent() -> None:
    """Times that grow like the 1.5th power have the exponent 1.5; one has none."""
    rows = [Row(n, n**1.5, 1.0) for n in (10, 100, 1000)]
    assert exponent(rows, lambda row: row.aligned_s) == pytest.approx(1.5)
    assert exponent(rows[:1], lambda row: row.aligned_s) != pytest.approx(1.5)


def test_table() -> None:
    """Times are shown in milliseconds, the growth in the last row."""
    rows = [Row(512, 0.0012, 0.0034), Row(1024, 0.0024, 0.0136)]
    lines = list(table(rows))
    assert lines[2] == "| 512 | 1.2 ms | 3.4 ms |"
    assert lines[-1] == "| time ~ ranks^k, k = | 1.00 | 2.00 |"


def test_from_end_to_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It prints a row a size and writes the same as JSON."""
    output = tmp_path / "rows.json"
    sizes = ["--ranks", "512", "1024", "--runs", "1"]
    assert main([*sizes, "--json", str(output)]) == 0
    rows = json.loads(output.read_text())
    assert [row["ranks"] for row in rows] == [512, 1024]
    assert all(value > 0 for row in rows for value in row.values())
    assert len(capsys.readouterr().out.splitlines()) == 2 + len(rows) + 1


def test_odd_sizes_are_refused() -> None:
    """A size that does not fill blocks of racks is a usage error."""
    with pytest.raises(SystemExit, match="2"):
        main(["--ranks", "1000"])
