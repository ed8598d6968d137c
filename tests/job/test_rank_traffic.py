"""Traffic between ranks and groups, read from files beside the job."""

import json

import numpy as np
import pytest

import placer
from placer.base.errors import InputError
from placer.job.read import read_job
from tests.job.flows import flows
from tests.problems import problems_of
from tests.texts import table

JOB = """\
format: placer/job
version: 1
name: measured
parallelism: {dp: 4}
launcher: {ranks: free}
"""
LINES = "0,1,1000\n2,3,2500\n0,1,500\n3,3,7\n1,2,0\n"


@pytest.fixture
def job(tmp_path):
    """Reads a job whose traffic stands in a file with some content."""

    def read(content, name="t.csv"):
        path = tmp_path / name
        if isinstance(content, str):
            path.write_text(content)
        else:
            np.savez_compressed(path, **content)
        (tmp_path / "job.yaml").write_text(f"{JOB}traffic: {{file: {name}}}\n")
        return read_job(str(tmp_path / "job.yaml"))

    return read


MATRIX = np.zeros((4, 4))
MATRIX[0, 1], MATRIX[2, 3], MATRIX[3, 3] = 1500, 2500, 7
ARRAYS = {
    "from": np.array([0, 2, 0]),
    "to": np.array([1, 3, 1]),
    "bytes": np.array([1000.0, 2500.0, 500.0]),
}


@pytest.mark.parametrize(
    ("content", "name"),
    [
        (LINES, "t.csv"),
        ("from,to,bytes\n" + LINES, "t.csv"),
        ("from, to, bytes\r\n 0 , 1, 1kB\r\n\r\n2,3,2.5kB\r\n0,1,500\r\n", "t.csv"),
        ({"m": MATRIX}, "t.npz"),
        (ARRAYS, "t.npz"),
    ],
)
def test_all_forms_say_the_same(job, content, name):
    """Flows of a pair are added; none of a rank to itself, or of nothing, is left."""
    assert flows(job(content, name)) == {(0, 1): 1500.0, (2, 3): 2500.0}


def test_every_problem_of_a_csv_file_has_its_place(job):
    """Line and column of each, all at once."""
    text = "from,to,bytes\n0,1,3MB\n0, x,5\n9,2,-1\n1,2\n1,2,3,4\n0,1,nan\n"
    places = [(p.line, p.column, p.key) for p in problems_of(job, text)]
    assert places == [
        (3, 4, "to"),
        (4, 1, "from"),
        (4, 5, "bytes"),
        (5, 1, ""),
        (6, 1, ""),
        (7, 5, "bytes"),
    ]


@pytest.mark.parametrize(
    ("content", "name", "said"),
    [
        ("", "t.csv", "no flows"),
        ("from,to,bytes\n", "t.csv", "no flows"),
        ("0,0,5\n", "t.csv", "no rank sends another anything"),
        ({"m": np.zeros((4, 3))}, "t.npz", "neither a square matrix"),
        ({"m": np.ones((5, 5))}, "t.npz", "rank 4 is not below"),
        ({"m": -MATRIX}, "t.npz", "not from 0"),
        ({"m": np.full((4, 4), np.nan)}, "t.npz", "not from 0"),
        ({"m": np.array([["a"]], dtype=object)}, "t.npz", "cannot be read as npz"),
        ("PK\x03\x04 and so on", "t.npz", "cannot be read as npz"),
    ],
)
def test_files_that_say_nothing_good(job, content, name, said):
    """Told by name, never with a traceback."""
    with pytest.raises(InputError, match=said):
        job(content, name)


@pytest.mark.parametrize(*table("job/job.yaml", "traffic"))
def test_keys_that_are_wrong(tmp_path, lines, said):
    """Each is told."""
    (tmp_path / "job.yaml").write_text(f"{JOB}{lines}\n")
    with pytest.raises(InputError, match=said):
        read_job(str(tmp_path / "job.yaml"))


def test_a_plan_stands_without_the_files(tmp_path):
    """It is checked and scored when traffic and groups are gone."""
    traffic, groups = tmp_path / "t.csv", tmp_path / "g.yaml"
    traffic.write_text(LINES)
    groups.write_text(
        "groups: [{name: g, collective: relay, bytes: 1MB, ranks: [[3, 0]]}]\n"
    )
    job = tmp_path / "job.yaml"
    job.write_text(f"{JOB}traffic: {{file: t.csv}}\ngroups: {{file: g.yaml}}\n")
    result = placer.place("node:2 gpu:2", str(job))
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(result.plan.to_dict()))
    for file in (traffic, groups, job):
        file.unlink()
    plan = placer.read_plan(str(path))
    inputs = plan.inputs
    assert inputs is not None
    placer.check(plan)
    kept = inputs["job"]
    assert kept["traffic"]["bytes"] == [1500.0, 2500.0]
    assert kept["groups"][0]["ranks"] == [[3, 0]]


def test_problems_of_groups_are_told_in_their_own_file(tmp_path):
    """With line and column there."""
    (tmp_path / "g.yaml").write_text(
        "groups:\n"
        "- {name: g, collective: relai, bytes: 1MB, ranks: [[9, 0]]}\n"
        "more: 1\n"
    )
    (tmp_path / "job.yaml").write_text(f"{JOB}groups: {{file: g.yaml}}\n")
    found = problems_of(read_job, str(tmp_path / "job.yaml"))
    assert {p.source for p in found} == {str(tmp_path / "g.yaml")}
    assert [(p.line, p.column) for p in found] == [(2, 25), (2, 53), (3, 1)]
