"""``placer sweep`` and ``placer calibrate`` from end to end."""

import csv
import io
import json
from pathlib import Path

import pytest
import yaml

from placer.job.write import to_document
from tests.commands import refusal, run
from tests.draw.pictures import SVG, hover, of_class, parse
from tests.sweep.cases import job as small

ROOT = Path(__file__).resolve().parents[2]
MACHINE, JOB = "block:2 rack:2 node:4 gpu:4", json.dumps(to_document(small()))


def sweep(job, *args, machine=MACHINE, code=0):
    given = ("-t", machine, "-j", job, "--workers", "1")
    return run("sweep", *given, *args, code=code)


def test_json(job):
    """The documented keys, a row a point, in the order of the options."""
    found = sweep(job, "--dp", "1,2", "--nic-rate", "25GB/s,50GB/s", "--format", "json")
    (key, rows), *rest = json.loads(found.stdout).items()
    assert (key, [name for name, _ in rest]) == ("rows", ["assumed"])
    assert [(row["dp"], row["nic_rate_bytes_per_s"]) for row in rows] == [
        (1, 25e9),
        (1, 50e9),
        (2, 25e9),
        (2, 50e9),
    ]
    for row in rows:
        assert row["step_time_s"] >= row["lower_bound"] > row["exposed_scale_out_s"] > 0
        assert row["world_size"] == 8 * row["dp"]
        assert row["status"] in ("optimal", "feasible")
    assert "global batch" in found.stderr


def test_csv_and_json_agree(job):
    """CSV holds the same values; a row without a placement has its error."""
    words = ("--dp", "2,64", "--format")
    rows = json.loads(sweep(job, *words, "json").stdout)["rows"]
    table = list(csv.DictReader(io.StringIO(sweep(job, *words, "csv").stdout)))
    for row, line in zip(rows, table, strict=True):
        assert {key: str(value) for key, value in row.items()} == {
            key: value for key, value in line.items() if value
        }
    assert "error" in rows[1]


def test_text(job):
    """One line a point under a head, then what is wrong with the others.

    What is swept is a column once, the world size too.
    """
    lines = sweep(job, "--dp", "2,4,64", "--oversubscription", "1").stdout.splitlines()
    assert lines[0].split()[:2] == ["dp", "oversubscription"]
    assert [line.split()[0] for line in lines[1:4]] == ["2", "4", "64"]
    assert "512" in "".join(lines[4:])
    found = sweep(job, "-q", "--gpus", "8,16")
    assert found.stderr == ""
    assert found.stdout.splitlines()[0].split().count("GPUs") == 1


@pytest.mark.parametrize(
    ("args", "code", "what"),
    [
        ([], 2, "nothing to sweep"),
        (["--dp", "4-2"], 2, "empty"),
        (["--dp", "2,2"], 2, "twice"),
        (["--oversubscription", "x=1"], 2, 'no tier "x"'),
        (["--dp", "2", "--plot", "figure.gif"], 2, ".svg"),
        (["--dp", "2", "--scheduler", "tcp://127.0.0.1:9"], 2, "--workers"),
        (["--dp", "2", "--hosts", "nowhere"], 2, "nowhere"),
        (["--dp", "1-2000", "--tp", "1-2000"], 2, "points"),
        (["--dp", "2", "-o", "no/a.svg"], 4, "there is no folder"),
        (["--dp", "2", "--plot", "no/a.svg"], 4, "there is no folder"),
    ],
)
def test_bad_options(job, args, code, what):
    """An option that cannot be used ends with 2 or 4 before anything is placed."""
    given = ("-t", MACHINE, "-j", job, "--workers", "1")
    assert what in refusal("sweep", *given, *args, code=code)


def test_no_placement_at_all(job):
    """Without any placement the rows say why, and the exit code is 3, or 2."""
    found = sweep(job, "--dp", "64,65", "--format", "json", code=3)
    assert all("error" in row for row in json.loads(found.stdout)["rows"])
    sweep(job, "--pp", "16", code=2)


def test_unwritable_plot_keeps_the_rows(job, monkeypatch):
    """A figure that cannot be written in the end ends with 4, after the rows."""
    monkeypatch.setattr("placer.cli.sweep.check_target", lambda _path: None)
    plot = ("--plot", "no/a.svg")
    found = sweep(job, "--dp", "2", *plot, "--format", "csv", code=4)
    assert found.stdout.startswith("dp,")


@pytest.mark.parametrize(
    ("args", "lines"),
    [
        (["--dp", "1,2", "--nic-rate", "25GB/s,50GB/s,100GB/s"], 3),
        (["--dp", "1,64"], 1),
    ],
)
def test_plot(job, tmp_path, args, lines):
    """The figure has a title, a point a row in both panels, a legend if needed."""
    path = tmp_path / "figure.svg"
    found = sweep(job, *args, "--plot", path, "--format", "json")
    rows = json.loads(found.stdout)["rows"]
    root = parse(path.read_text())
    for panel in of_class(root, "panel"):
        missing = len(of_class(panel, "point missing"))
        points = [e for e in panel.iter() if (e.get("class") or "").startswith("point")]
        assert (len(points), missing) == (len(rows), sum("error" in r for r in rows))
        assert all(hover(point) for point in points)
    title, *legend = [element.text for element in root.findall(f"{SVG}text")]
    assert title == "Best placement by dp"
    assert len(legend) == (lines if lines > 1 else 0)


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


def fitted(tmp_path, *options, text=POINTS, code=0):
    path = tmp_path / "m.yaml"
    path.write_text(text)
    return run("calibrate", path, *options, code=code)


def test_the_line_is_a_compute_line(tmp_path):
    """The line of the text is the YAML, comments beside, and agrees with the JSON."""
    text, yaml_text = (fitted(tmp_path, "--format", f).stdout for f in ("text", "yaml"))
    (line,) = [line for line in text.splitlines() if line.startswith("compute:")]
    found = yaml.safe_load(yaml_text)
    assert found == yaml.safe_load(line)
    assert yaml_text.count("# ") == 3
    said = json.loads(fitted(tmp_path, "--format", "json").stdout)["compute"]
    shown = found["compute"]["tflops_per_gpu"]
    assert float(shown) == pytest.approx(said["tflops_per_gpu"], rel=1e-5)


def test_warnings_go_to_stderr(tmp_path):
    """What the points leave open is no part of the data."""
    result = fitted(
        tmp_path, text=POINTS.replace("micro_batches: 16", "micro_batches: 8")
    )
    assert "warning: the points do not differ" in result.stderr
    assert "warning" not in result.stdout
