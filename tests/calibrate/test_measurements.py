"""Measurement files: what a good one says, and where each bad one is wrong."""

from pathlib import Path

import pytest

from placer.calibrate.measurements import decode_measurements, read_measurements
from placer.documents import parse_document
from tests.problems import problems_of
from tests.texts import table

FULL = """\
format: placer/measurements
version: 1
name: example
sources: ["made up"]
topology: "rack:4 node:9 gpu:8"
job: quickstart
points:
  - {name: small, dp: 2, micro_batches: 8, step_time: 120ms, source: "log"}
  - {dp: 4, micro_batches: 16, step_time: 0.25, fit: false}
  - {topology: nvl72, hosts: "n[02-09]", job: quickstart, tflops_per_gpu: 400}
"""


def decoded(text):
    return decode_measurements(parse_document(text, "m.yaml"), Path())


def test_a_full_file():
    """Sizes, machines, times and rates arrive in the points."""
    found = decoded(FULL)
    small, large, rate = found.points
    assert (found.name, found.sources) == ("example", ("made up",))
    assert (small.name, small.source, small.fit) == ("small", "log", True)
    assert (small.job.parallelism.dp, small.job.micro_batches) == (2, 8)
    assert (small.step_s, large.step_s) == (0.12, 0.25)
    assert not large.fit
    assert large.job.world_size == 2 * small.job.world_size
    assert large.name == f"{large.job.world_size} GPUs, 16 micro-batches"
    assert rate.by_rate
    assert rate.topology.node_names[0] == "n02"
    assert rate.topology.num_nodes == 8


def test_files_are_named_from_the_folder_of_the_file(tmp_path, monkeypatch):
    """A job beside the measurements is found from any working folder."""
    job = (Path("jobs") / "quickstart.yaml").read_text()
    folder = tmp_path / "runs"
    folder.mkdir()
    (folder / "mine.yaml").write_text(job.replace("name: quickstart", "name: mine"))
    text = FULL.replace("job: quickstart\npoints", "job: mine.yaml\npoints")
    (folder / "m.yaml").write_text(text)
    monkeypatch.chdir(tmp_path)
    assert read_measurements("runs/m.yaml").job.name == "mine"


@pytest.mark.parametrize(*table("calibrate/measurements.yaml", "problems"))
def test_problems(old, new, key, message):
    """Each mistake is named with its place and key."""
    place = (
        old or '{name: small, dp: 2, micro_batches: 8, step_time: 120ms, source: "log"}'
    )
    assert place in FULL
    problems = problems_of(decoded, FULL.replace(place, new, 1))
    found = [p for p in problems if p.key.startswith(key) and message in p.message]
    assert found, problems
    assert all(problem.line and problem.source == "m.yaml" for problem in problems)


@pytest.mark.parametrize("points", ["[]", "[{dp: 2, step_time: 1s, fit: false}]"])
def test_something_to_fit_is_needed(points):
    """No point, or none that the fit may use, is a problem."""
    problems = problems_of(decoded, f"{FULL[: FULL.index('points:')]}points: {points}")
    assert "no point to fit" in [problem.message for problem in problems]


def test_runs_and_their_spread():
    """The step of several runs is their median; a spread may be stated instead."""
    text = FULL.replace("step_time: 120ms", "step_times: [118ms, 0.125, 121ms]")
    text = text.replace("step_time: 0.25", "step_time: 0.25, spread: 3ms")
    several, stated, _ = decoded(text).points
    assert several.runs_s == (0.118, 0.125, 0.121)
    assert (several.step_s, several.spread_s) == (0.121, 0.0)
    assert (stated.runs_s, stated.spread_s) == ((0.25,), 0.003)
