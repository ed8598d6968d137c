"""``placer calibrate``: what it prints can be pasted into a job file."""

import json

import pytest
import yaml

from tests import commands

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


def run(tmp_path, *options, text=POINTS, code=0):
    path = tmp_path / "m.yaml"
    path.write_text(text)
    return commands.run("calibrate", path, *options, code=code)


def test_the_line_is_a_compute_line(tmp_path):
    """The line of the text is the YAML, comments beside, and agrees with the JSON."""
    text, yaml_text = (run(tmp_path, "--format", f).stdout for f in ("text", "yaml"))
    (line,) = [line for line in text.splitlines() if line.startswith("compute:")]
    found = yaml.safe_load(yaml_text)
    assert found == yaml.safe_load(line)
    assert yaml_text.count("# ") == 3
    said = json.loads(run(tmp_path, "--format", "json").stdout)["compute"]
    shown = found["compute"]["tflops_per_gpu"]
    assert float(shown) == pytest.approx(said["tflops_per_gpu"], rel=1e-5)


def test_warnings_go_to_stderr(tmp_path):
    """What the points leave open is no part of the data."""
    result = run(tmp_path, text=POINTS.replace("micro_batches: 16", "micro_batches: 8"))
    assert "warning: the points do not differ" in result.stderr
    assert "warning" not in result.stdout
