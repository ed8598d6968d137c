"""The benchmark of the whole command, on a machine of a moment."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.command import (
    CASES,
    LARGE,
    Row,
    job_file,
    main,
    measure_instance,
    merged,
    run,
    table,
)
from placer.job.read import read_job
from placer.topology.read import read_topology


def test_cases_fit() -> None:
    """Every pair of presets exists, and the job fits on the machine."""
    for machine, job in (*CASES, *LARGE):
        size = read_topology(machine).num_gpus
        assert read_job(job_file(job)).world_size <= size


def test_memory_is_that_of_the_command() -> None:
    """A process that fills 300 MB reports at least those; it did take some time."""
    fill = "x = bytearray(300_000_000); x[::4096] = b'1' * len(x[::4096])"
    found = run([sys.executable, "-c", fill])
    assert found.peak_bytes > 300_000_000
    assert found.wall_s > 0


def test_failure_is_raised() -> None:
    """A command that fails has no time."""
    with pytest.raises(subprocess.CalledProcessError):
        run([sys.executable, "-c", "raise SystemExit(3)"])


def test_table() -> None:
    """Memory is shown in MB; what is proved as such, else the gap."""
    rows = [Row("m", "j", "time", 8192, 1.2345, 99_400_000, "optimal", 0.0)]
    rows.append(Row("m", "j", "hop-cost", 8, 0.5, 1_000_000, "feasible", 0.0123))
    assert list(table(rows))[2:] == [
        "| m | j | time | 8,192 | 1.23 s | 99 MB | optimal |",
        "| m | j | hop-cost | 8 | 0.50 s | 1 MB | gap 1.230% |",
    ]


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


def test_rows_measured_again_replace_the_earlier_ones() -> None:
    """A row is known by machine, job and objective; the others stay."""
    first = Row("m", "j", "time", 8, 1.0, 1, "optimal", 0.0)
    other = Row("m", "j", "hop-cost", 8, 2.0, 1, "optimal", 0.0)
    again = Row("m", "j", "time", 8, 3.0, 1, "optimal", 0.0)
    assert merged([again], [first, other]) == [again, other]


def test_an_instance_is_placed_by_the_command() -> None:
    """The smallest toy, as files, ends with its proof (64 ranks)."""
    row = measure_instance("S64", 1, "hop-cost")
    assert (row.topology, row.ranks, row.status) == ("S64", 64, "optimal")
