"""Idle nodes out of what sinfo prints, in every form that it has."""

import json

import pytest

from placer.base.errors import InputError
from placer.base.hostlist import expand
from placer.formats.machines.slurm_nodes import idle_nodes
from tests.commands import data, run
from tests.texts import file_text, table

SHORT = """\
PARTITION AVAIL  TIMELIMIT  NODES  STATE NODELIST
gpu*         up 7-00:00:00      2  drain n[01-02]
gpu*         up 7-00:00:00      3    mix n[03-05]
gpu*         up 7-00:00:00      2  alloc n[06-07]
gpu*         up 7-00:00:00      4   idle n[08-10,15]
gpu*         up 7-00:00:00      1  idle* n11
debug        up      30:00      1  idle~ n12
debug        up      30:00      0    n/a
"""
BY_NODE = """\
Mon Nov 23 01:02:03 2026
NODELIST NODES PARTITION   STATE CPUS  S:C:T MEMORY TMP_DISK WEIGHT AVAIL_FE REASON
n01          1      gpu*    idle  144 2:72:1 900000        0      1   (null) none
n02          1      gpu*   down*  144 2:72:1 900000        0      1   (null) Not resp
n03          1      gpu* drained  144 2:72:1 900000        0      1   (null) bad NVLink
n04          1      gpu*    idle  144 2:72:1 900000        0      1   (null) none
n04          1     debug    idle  144 2:72:1 900000        0      1   (null) none
"""


def rows(*nodes):
    """Rows as of Slurm 23.02 and later."""
    content = [
        {"nodes": {"nodes": expand(names)}, "node": {"state": states.split()}}
        for names, states in nodes
    ]
    return json.dumps({"sinfo": content, "errors": []})


def listed(*nodes):
    """The answer of scontrol show nodes --json."""
    keys = ("name", "state", "state_flags")
    return json.dumps({"nodes": [dict(zip(keys, n, strict=False)) for n in nodes]})


@pytest.mark.parametrize(
    ("text", "idle"),
    [
        (SHORT, "n[08-10,15],n12"),
        (BY_NODE, "n01,n04"),
        ("idle n[1-2]\nmixed n3\ndrained* n4\n", "n[1-2]"),
        ("n[1-2] idle\nn3 idle-\nn4 idle@\nn5 idle#\nn6 idle$\n", "n[1-2],n5"),
        ("idle idle\ndown down1\n", "idle"),
        (rows(("n[1-2]", "IDLE"), ("n3", "IDLE DRAIN")), "n[1-2]"),
        (rows(("n1", "IDLE CLOUD POWERED_DOWN"), ("n2", "MIXED")), "n1"),
        (rows(("n1", "IDLE NOT_RESPONDING"), ("n2", "DOWN")), ""),
        (rows(("n1", "IDLE"), ("n1", "IDLE PLANNED"), ("n2", "IDLE")), "n2"),
        (listed(("n1", "idle", ["DRAIN"]), ("n2", "idle", [])), "n2"),
        (listed(("n3", ["IDLE", "CLOUD"]), ("n4", ["ALLOCATED"])), "n3"),
    ],
)
def test_idle_nodes(text, idle):
    """Whole nodes that nothing holds and nothing is about to take."""
    assert idle_nodes(text, "sinfo.txt") == expand(idle)


@pytest.mark.parametrize(
    *table("readers/sinfo.yaml", "what_sinfo_does_not_print_is_refused")
)
def test_what_sinfo_does_not_print_is_refused(text):
    with pytest.raises(InputError, match="sinfo"):
        idle_nodes(text, "sinfo.txt")


JOB = """
format: placer/job
version: 1
name: one
parallelism: {tp: 4, dp: 2}
weights: {tp: 100, dp: 1}
require: {tp: node}
"""


def test_allocate_takes_the_idle_nodes_of_the_machine(tmp_path):
    """Nodes of other machines are left alone."""
    (tmp_path / "job.yaml").write_text(JOB)
    words = ["allocate", "-t", "rack:2 node:3 gpu:4", "-j", tmp_path / "job.yaml"]
    free = expand(data(*words)["jobs"][0]["hosts"])
    path = tmp_path / "sinfo.txt"
    words += ["--free", f"sinfo:{path}"]
    path.write_text(f"{free[0]} idle\ncpu-1 idle\n")
    run(*words, code=3)
    path.write_text("".join(f"{name} idle\n" for name in [*free, "cpu-1"]))
    run(*words)
    path.write_text("cpu-1 idle\n")
    assert "none of the 1 idle nodes is of" in run(*words, code=2).stderr
    path.write_text("NODELIST NODES PARTITION STATE\na01 1 p alloc\n")
    assert "no node that is listed is idle" in run(*words, code=2).stderr


def test_place_says_what_the_idle_nodes_would_save(tmp_path):
    """Two nodes of different racks were granted, and a whole rack is idle."""
    (tmp_path / "job.yaml").write_text(JOB)
    inner = {"name": "node", "size": 4, "bandwidth": 9e11, "scale_up": True}
    outer = {"name": "rack", "bandwidth": 1e11}, {"name": "cluster", "bandwidth": 5e10}
    layout = {"tiers": [inner, *outer], "layout": "cluster:1 rack:2 node:3"}
    (tmp_path / "machine.json").write_text(file_text("topology", **layout))
    free = rows(("r1-n[2-3]", "IDLE"), ("r2-n1", "MIXED"))
    (tmp_path / "sinfo.json").write_text(free)
    words = ["-t", tmp_path / "machine.json", "-j", tmp_path / "job.yaml"]
    words += ["--hosts", "r1-n1,r2-n1", "--free", f"sinfo:{tmp_path / 'sinfo.json'}"]
    assert "This allocation: costs" in run("place", *words).output
