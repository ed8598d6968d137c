"""Measurement files: what a good one says, and where each bad one is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from placer.base.errors import InputError, Problem
from placer.calibrate.measurements import decode_measurements, read_measurements
from placer.documents import parse_document

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


def problems_of(text: str) -> tuple[Problem, ...]:
    with pytest.raises(InputError) as caught:
        decode_measurements(parse_document(text, "m.yaml"), Path())
    return caught.value.problems


def test_a_full_file() -> None:
    """Sizes, machines, times and rates arrive in the points."""

    text = FULL
    found = decode_measurements(parse_document(text, "m.yaml"), Path())
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


def test_a_rate_is_a_step() -> None:
    """Half the rate is twice the step."""
    text = FULL
    fast = decode_measurements(parse_document(text, "m.yaml"), Path())
    halved = text.replace("tflops_per_gpu: 400", "tflops_per_gpu: 200")
    slow = decode_measurements(parse_document(halved, "m.yaml"), Path())
    assert slow.points[2].step_s == pytest.approx(2 * fast.points[2].step_s)


def test_files_are_named_from_the_folder_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job beside the measurements is found from any working folder."""
    job = (Path("jobs") / "quickstart.yaml").read_text()
    folder = tmp_path / "runs"
    folder.mkdir()
    (folder / "mine.yaml").write_text(job.replace("name: quickstart", "name: mine"))
    text = FULL.replace("job: quickstart\npoints", "job: mine.yaml\npoints")
    (folder / "m.yaml").write_text(text)
    monkeypatch.chdir(tmp_path)
    assert read_measurements("runs/m.yaml").job.name == "mine"


GOOD = '{name: small, dp: 2, micro_batches: 8, step_time: 120ms, source: "log"}'


@pytest.mark.parametrize(
    ("old", "new", "key", "message"),
    [
        ("version: 1", "version: 9", "version", "newer"),
        ("format: placer/measurements", "format: placer/job", "format", "expected"),
        ("job: quickstart\npoints", "job: nothing\npoints", "job", "no job preset"),
        ("rack:4 node:9 gpu:8", "rack:0", "topology", ""),
        (GOOD, "{dp: 0, step_time: 1s}", "points[0].dp", "not between 1"),
        (GOOD, "{dp: 2, step_time: 0s}", "points[0].step_time", "above 0"),
        (
            GOOD,
            "{dp: 2}",
            "points[0]",
            "give one of step_time, step_times, tflops_per_gpu",
        ),
        (
            GOOD,
            "{step_time: 1s, tflops_per_gpu: 3}",
            "points[0].step_time",
            "give one of step_time, step_times, tflops_per_gpu",
        ),
        (GOOD, "{dp: 2, step_times: []}", "points[0].step_times", "above 0"),
        (GOOD, "{dp: 2, step_times: [1s, 0s]}", "points[0].step_times", "above 0"),
        (GOOD, "{dp: 2, step_times: [1s, x]}", "points[0].step_times[1]", "not a time"),
        (GOOD, "{dp: 2, step_time: 1s, spread: far}", "points[0].spread", "not a time"),
        (GOOD, "{dp: 1000, step_time: 1s}", "points[0].dp", "usable GPUs"),
        (GOOD, "{dp: 2, step_time: 1s, speed: 3}", "points[0]", 'unknown key "speed"'),
        (GOOD, "{dp: 2, step_time: 1s, hosts: x9}", "points[0].hosts", "x9"),
        (GOOD, "{dp: 9999999, step_time: 1s}", "points[0].dp", "not between 1"),
        (GOOD, "{step_time: fast}", "points[0].step_time", "not a time"),
        (GOOD, "12", "points[0]", "expected a mapping"),
    ],
)
def test_problems(old: str, new: str, key: str, message: str) -> None:
    """Each mistake is named with its place and key."""
    assert old in FULL
    problems = problems_of(FULL.replace(old, new, 1))
    assert any(p.key.startswith(key) and message in p.message for p in problems), (
        problems
    )
    assert all(problem.line and problem.source == "m.yaml" for problem in problems)


def test_all_problems_at_once() -> None:
    """Two bad points and an unknown key give three problems."""
    text = FULL.replace("120ms", "soon")
    text = text.replace("step_time: 0.25", "step_time: -1").replace(
        "name: ex", "nam: ex"
    )
    keys = [problem.key for problem in problems_of(text)]
    assert "points[0].step_time" in keys
    assert "points[1].step_time" in keys
    assert "" in keys


@pytest.mark.parametrize(
    "points", ["points: []", "points:\n  - {dp: 2, step_time: 1s, fit: false}"]
)
def test_something_to_fit_is_needed(points: str) -> None:
    """No point, or none that the fit may use, is a problem."""
    text = FULL[: FULL.index("points:")] + points
    assert "no point to fit" in [problem.message for problem in problems_of(text)]


def test_runs_and_their_spread() -> None:
    """The step of several runs is their median; a spread may be stated instead."""
    text = FULL.replace("step_time: 120ms", "step_times: [118ms, 0.125, 121ms]")
    text = text.replace("step_time: 0.25", "step_time: 0.25, spread: 3ms")
    several, stated, _ = decode_measurements(
        parse_document(text, "m.yaml"), Path()
    ).points
    assert several.runs_s == (0.118, 0.125, 0.121)
    assert (several.step_s, several.spread_s) == (0.121, 0.0)
    assert (stated.runs_s, stated.spread_s) == ((0.25,), 0.003)
