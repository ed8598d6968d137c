"""Each benchmark runs from end to end, at a size of a moment."""

import json

import pytest

from benchmarks import command, degrees, placement, results, scoring, signals, walks

JOB = """\
format: placer/job
version: 1
name: small
parallelism: {tp: 2, dp: 2}
weights: {tp: 10, dp: 1}
"""


def test_the_whole_command(tmp_path, capsys):
    """It places the job, prints a row and writes the same as JSON."""
    job, output = tmp_path / "job.yaml", tmp_path / "rows.json"
    job.write_text(JOB)
    case = ["--case", "rack:2 node:2 gpu:2", str(job), "--runs", "1"]
    assert command.main([*case, "--json", str(output)]) == 0
    (row,) = json.loads(output.read_text())
    assert (row["job"], row["ranks"], row["status"]) == (str(job), 4, "optimal")
    assert len(capsys.readouterr().out.splitlines()) == 3


@pytest.mark.parametrize(
    ("benchmark", "sizes", "key", "values"),
    [
        (scoring, ["512", "1024", "--runs", "1"], "ranks", [512, 1024]),
        (walks, ["256", "--changes", "2000"], "workers", [1, 2, 1, 2]),
    ],
)
def test_sizes(benchmark, sizes, key, values, tmp_path, capsys):
    """A row a size or a number of threads, and the same as JSON."""
    output = tmp_path / "rows.json"
    assert benchmark.main(["--ranks", *sizes, "--json", str(output)]) == 0
    rows = json.loads(output.read_text())
    assert [row[key] for row in rows] == values
    assert all(row[name] > 0 for row in rows for name in row if name != "objective")
    assert len(capsys.readouterr().out.splitlines()) >= 2 + len(rows)


@pytest.mark.slow
def test_signals(capsys):
    """It stops a run and prints a row."""
    case = ["--case", "node:2 gpu:8", "quickstart"]
    assert signals.main([*case, "--moments", "1"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 3


@pytest.mark.slow
def test_degrees():
    """Step and proof are those of the command."""
    row = degrees.measure(degrees.Case("hosts", "dgx-h100-4x8", "quickstart"), 16)
    assert row.cpu_s > 0
    assert row.choices > 1000
    assert 0 <= row.gap < 1e-3


@pytest.mark.slow
def test_placement(tmp_path, capsys):
    """It prints a table, and writes the same as JSON and as a page."""
    output, text = tmp_path / "results.json", tmp_path / "page.md"
    few = ["--peers", "orders", "--seeds", "1", "--json", str(output)]
    assert placement.main(["--instances", "S64", *few, "--page", str(text)]) == 0
    (found,) = results.read(output).results
    assert found.ours.value == found.ours.lower_bound == 263_296
    orders = {each.best.spec.variant for each in found.others}
    assert orders == {"megatron-default", "replica-major"}
    assert "| **placer** | 263,296 | 0 | 1.000 |" in capsys.readouterr().out
    assert "Proved optimal: S64." in text.read_text()
