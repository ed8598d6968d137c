"""``placer allocate``: what it prints and writes, and how it ends."""

import csv
import io
import json
import re
from pathlib import Path

import pytest
import yaml

import placer
from placer.base.hostlist import expand
from placer.base.naming import numbered
from placer.cli import progress
from placer.emit.manifest import label_name
from tests.commands import refusal, run
from tests.texts import table

MACHINE = "rack:3 node:4 gpu:4"
JOB = """
format: placer/job
version: 1
name: {name}
parallelism: {{tp: 4, dp: {dp}}}
weights: {{tp: 100, dp: 1}}
require: {{tp: node}}
"""


@pytest.fixture
def job(tmp_path):
    def write(name, dp):
        path = tmp_path / f"{name}.yaml"
        path.write_text(JOB.format(name=name, dp=dp))
        return str(path)

    return write


def allocate(*arguments, code=0):
    return run("allocate", "-t", MACHINE, *arguments, code=code)


def test_what_is_printed_names_every_job_and_what_is_left(job):
    jobs = ["-j", job("one", 4), "-j", job("two", 3)]
    found = json.loads(allocate(*jobs, "--format", "json").stdout)
    hosts = [expand(row["hosts"]) for row in found["jobs"]]
    assert [len(own) for own in hosts] == [4, 3]
    keys = {"name", "step_time_s", "ideal_step_time_s", "lower_bound_s", "plan"}
    assert all(keys <= row.keys() for row in found["jobs"])
    assert not set(hosts[0]) & set(hosts[1])
    assert sum(found["left"]["free_by_domain"]["rack"].values()) == 5
    assert found["status"] == "optimal"
    text = allocate(*jobs).stdout
    assert text.startswith("2 jobs on 7 nodes; each as good as alone")
    assert max(map(len, text.splitlines())) <= 80
    rows = list(csv.DictReader(io.StringIO(allocate(*jobs, "--format", "csv").stdout)))
    assert [row["name"] for row in rows] == ["one", "two"]
    nodes = [json.loads(row["nodes_by_domain"]) for row in rows]
    assert [sum(own.values()) for own in nodes] == [4, 3]


def test_a_long_search_says_what_it_is_at(job, monkeypatch):
    """On standard error, and nothing with -q."""
    monkeypatch.setattr(progress, "SAY_FIRST_S", 0.001)
    jobs = ["-j", job("one", 4), "-j", job("two", 3)]
    said = allocate(*jobs)
    assert re.search(r"^\d+ s: search \d+: (one|two)$", said.stderr, re.MULTILINE)
    quiet = allocate(*jobs, "-q")
    assert (quiet.stdout, quiet.stderr) == (said.stdout, "")


def test_the_folder_has_a_plan_and_requests_for_every_job(job, tmp_path):
    folder = tmp_path / "out"
    allocate("-j", job("one", 4), "-j", job("two", 3), "-o", folder)
    for name in ("one", "two"):
        placer.check(placer.read_plan(folder / f"{name}.json"))
        assert "--nodelist=" in (folder / f"{name}.slurm.sbatch").read_text()


def test_options_reach_the_search(job, tmp_path):
    folder = tmp_path / "out"
    allocate("-j", job("old", 4), "-o", str(folder))
    old = placer.read_plan(folder / "old.json")
    new = ["-j", job("new", 2), "--keep", str(folder / "old.json")]
    result = allocate(*new, "--apart", "rack", "--weight", "new=2", "--format", "json")
    found = json.loads(result.stdout)
    assert not set(old.nodes) & set(expand(found["jobs"][0]["hosts"]))
    assert found["jobs"][0]["weight"] == 2
    assert [row["name"] for row in found["kept"]] == ["old"]


@pytest.mark.parametrize(*table("allocate/tables.yaml", "what_is_wrong_is_said"))
def test_what_is_wrong_is_said(job, arguments, code, text):
    assert text in allocate("-j", job("one", 4), *arguments, code=code).output


def test_no_room_is_exit_code_3(job):
    result = allocate("-j", job("one", 8), "-j", job("two", 8), code=3)
    assert "they need 64 GPUs, 48 are free" in result.output


def test_a_grade_is_the_first_line_and_place_says_what_free_hosts_would_save(job):
    names = placer.read_topology(MACHINE).node_names
    granted = ",".join([*names[:2], *names[4:6]])
    result = allocate("-j", job("one", 4), "--grade", granted)
    assert result.stdout.startswith("Granted: no free nodes are better: 1,744")
    arguments = ["-t", MACHINE, "-j", job("one", 4), "--hosts", ",".join(names[:4])]
    alone, beside = (run("place", *arguments, *f) for f in ((), ("--free", names[5])))
    assert "This allocation" not in alone.stdout
    assert "This allocation: no free nodes are better: 1,744" in beside.stdout


def test_a_name_is_no_path_and_jobs_of_one_file_name_get_one_each(job, tmp_path):
    """``a b`` and ``a_b`` are two jobs; neither overwrites the other."""
    path = Path(job("plain", 4))
    path.write_text(path.read_text().replace("plain", '"../../evil"'))
    allocate("-j", str(path), "-o", str(tmp_path / "out"))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out", "plain.yaml"]
    jobs = ["-j", job("a b", 4), "-j", job("a_b", 3)]
    allocate(*jobs, "-o", str(tmp_path / "plans"))
    plans = sorted((tmp_path / "plans").glob("*.json"))
    assert [path.name for path in plans] == ["a_b-2.json", "a_b.json"]
    assert {placer.read_plan(path).job["name"] for path in plans} == {"a b", "a_b"}


def test_kubernetes_objects_of_jobs_have_names_of_their_own(job, tmp_path):
    """``a.b`` and ``A-b`` are one name to Kubernetes, two file names to Linux.

    No object of one file is overwritten by that of another, of equal jobs too.
    """
    jobs = ["-j", job("a.b", 4), "-j", job("A-b", 3), "-j", job("a.b", 4)]
    allocate(*jobs, "-o", str(tmp_path))
    names = [
        (item["kind"], item["metadata"]["name"])
        for path in tmp_path.glob("*.yaml")
        if path.name.endswith(("volcano.yaml", "grove.yaml"))
        for item in yaml.safe_load_all(path.read_text())
    ]
    assert len(set(names)) == len(names) > 4
    assert {"a-b", "a-b-2"} <= {name for _, name in names}
    assert numbered(("a-b", "a-b."), label_name) == ["a-b", "a-b.-2"]


def test_jobs_that_stay_are_named(job, tmp_path):
    """Of several plans to keep, which one does not fit is said.

    The running job and the new one are called alike; rows tell them apart.
    """
    allocate("-j", job("one", 4), "-o", str(tmp_path))
    kept = ["--keep", str(tmp_path / "one.json"), "-j", job("two", 2)]
    told = refusal("allocate", "-t", "rack:2 node:2 gpu:4", *kept)
    assert told.startswith("error: plan of one: ")
    kept = ["--keep", str(tmp_path / "one.json"), "-j", job("one", 2)]
    found = json.loads(allocate(*kept, "--format", "json").stdout)
    assert [row["name"] for row in found["jobs"]] == ["one"]
    assert [row["name"] for row in found["kept"]] == ["one-2"]
