"""``placer.yaml``: commands in its folder need no options."""

import json

import pytest

from tests.cli.small_job import JOB, topology
from tests.commands import data, refusal, run

SWITCHES = "SwitchName=s1 Nodes=n[1-6]\n"
FOLDER = "topology: cluster.yaml\njob: job.yaml\nhosts: n[3-6]\n"


@pytest.fixture(autouse=True)
def _files(folder, monkeypatch):
    for name, text in {
        "cluster.yaml": topology("n[1-6]", 2, name="six"),
        "topology.conf": SWITCHES,
        "job.yaml": JOB,
        "placer.yaml": FOLDER,
    }.items():
        (folder / name).write_text(text)
    monkeypatch.delenv("SLURM_JOB_NODELIST", raising=False)


def placed(*args):
    return data("place", "-q", *args)


def test_place_needs_no_options():
    """Topology, job and hosts are those of the file, and a note says so."""
    plan = placed()
    assert set(plan["nodes"]) == {"n3", "n4", "n5", "n6"}
    assert (plan["topology"]["name"], plan["job"]["name"]) == ("six", "small")
    told = "note: placer.yaml: topology cluster.yaml, hosts n[3-6], job job.yaml\n"
    assert told in run("place").stderr
    assert run("place", "-q").stderr == ""


def test_launch_takes_the_hosts_of_slurm(folder, monkeypatch):
    """Inside an allocation its hosts count; outside, those of the file."""
    monkeypatch.setattr("os.execvpe", lambda *_: None)
    for listed, wanted in (("n[1-4]", "n1"), ("", "n3")):
        monkeypatch.setenv("SLURM_JOB_NODELIST", listed)
        run("launch", "-q", "-o", "p.json", "true")
        assert min(json.loads((folder / "p.json").read_text())["nodes"]) == wanted


def test_options_come_first(folder):
    """An option replaces its key; hosts of the file belong to its topology."""
    assert set(placed("--hosts", "n[1-4]")["nodes"]) == {"n1", "n2", "n3", "n4"}
    other = placed("-t", "rack:2 node:2 gpu:2")
    assert {name[:2] for name in other["nodes"]} == {"r1", "r2"}
    (folder / "job.yaml").unlink()
    (folder / "other.yaml").write_text(JOB.replace("small", "other"))
    assert placed("-j", "other.yaml")["job"]["name"] == "other"


def test_all_keys(folder):
    """Several sources, their hardware and GPUs a node; hosts as a list."""
    (folder / "placer.yaml").write_text(
        "topology: [slurm:topology.conf]\nhardware: cluster.yaml\ngpus_per_node: 2\n"
        "job: job.yaml\nhosts: [n2, n1, n4, n5]\n"
        "oversubscription: {leaf: 4}\n"
    )
    plan = placed()
    assert plan["inputs"]["topology"]["tiers"][-1]["oversubscription"] == 4
    assert set(plan["nodes"]) == {"n1", "n2", "n4", "n5"}
    assert plan["inputs"]["hosts"] == "n[2,1,4-5]"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("topolgy: a\n", 'placer.yaml:1:1: unknown key "topolgy"'),
        ("topology: {}\njob: 7\n", "placer.yaml:1:11: topology: expected a text"),
        ("- a\n", "placer.yaml:1:1: expected a mapping"),
        ("topology: cluster.yaml\n", "Missing option '-j' / '--job'."),
        ("", "placer.yaml:1:1: the file is empty"),
        ("gpu: h100\nhardware: nvl72\n", "placer.yaml:1:6: gpu: contradicts hardware"),
        ("tflops: x\n", "placer.yaml:1:9: tflops: expected a number"),
        (
            "topology: topology.conf\njob: job.yaml\ngpu: h9\n",
            'no host of "h9" is known',
        ),
        ("set: [a]\n", "placer.yaml:1:6: set: expected a mapping"),
    ],
)
def test_what_is_wrong_in_it(folder, text, message):
    """Errors name the file and the place; what is in neither is asked for."""
    (folder / "placer.yaml").write_text(text)
    assert message in refusal("place")
