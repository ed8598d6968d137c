"""``placer calibrate``: what it prints can be pasted into a job file."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
import yaml
from click.testing import CliRunner, Result

from placer.cli.main import main

if TYPE_CHECKING:
    from pathlib import Path

POINTS = """\
format: placer/measurements
version: 1
topology: "rack:4 node:9 gpu:8"
job: quickstart
points:
  - {dp: 2, micro_batches: 8, step_time: 1.4s}
  - {dp: 4, micro_batches: 16, step_time: 2.3s}
  - {dp: 4, micro_batches: 32, step_time: 4.4s, fit: false}
"""


def run(tmp_path: Path, *options: str, text: str = POINTS) -> Result:
    path = tmp_path / "m.yaml"
    path.write_text(text)
    return CliRunner().invoke(main, ["calibrate", str(path), *options])


@pytest.mark.parametrize("name", ["text", "yaml"])
def test_the_line_is_a_compute_line(tmp_path: Path, name: str) -> None:
    """The compute line parses as YAML and agrees with the JSON."""
    result = run(tmp_path, "--format", name)
    assert result.exit_code == 0, result.output
    line = next(x for x in result.stdout.splitlines() if x.startswith("compute:"))
    compute = yaml.safe_load(line)["compute"]
    data = json.loads(run(tmp_path, "--format", "json").stdout)
    key = "micro_batch_time" if "micro_batch_time" in compute else "tflops_per_gpu"
    if key == "tflops_per_gpu":
        expected = data["compute"]["tflops_per_gpu"]
        assert float(compute[key]) == pytest.approx(expected, rel=1e-5)
    else:
        expected = data["compute"]["micro_batch_time_s"] * 1e3
        assert float(compute[key].removesuffix("ms")) == pytest.approx(
            expected, rel=1e-5
        )


def test_points_come_from_a_pipe(tmp_path: Path) -> None:
    """Standard input is read once, whatever it turns out to hold."""
    result = CliRunner().invoke(main, ["calibrate", "-"], input=POINTS)
    assert result.exit_code == 0, result.output
    assert result.stdout == run(tmp_path).stdout


def test_yaml_is_yaml(tmp_path: Path) -> None:
    """All of the YAML output is comments and one key."""
    text = run(tmp_path, "--format", "yaml").stdout
    assert list(yaml.safe_load(text)) == ["compute"]
    assert text.count("# ") == 3


def test_fitted_points_have_no_residual(tmp_path: Path) -> None:
    """Two fitted points are met, the third is marked as not used."""
    data = json.loads(run(tmp_path, "--format", "json").stdout)
    assert [point["fit"] for point in data["points"]] == [True, True, False]
    assert [p["error"] for p in data["points"][:2]] == pytest.approx([0, 0], abs=1e-9)
    assert "not used" in run(tmp_path).stdout


def test_warnings_go_to_stderr(tmp_path: Path) -> None:
    """What the points leave open is no part of the data."""
    result = run(tmp_path, text=POINTS.replace("micro_batches: 16", "micro_batches: 8"))
    assert result.exit_code == 0
    assert "warning: the points do not differ" in result.stderr
    assert "warning" not in result.stdout


def test_a_bad_file_is_exit_2(tmp_path: Path) -> None:
    """Problems come with file, line and key."""
    result = run(tmp_path, text=POINTS.replace("1.4s", "soon"))
    assert result.exit_code == 2
    assert "m.yaml:6:" in result.stderr
    assert "points[0].step_time" in result.stderr
