"""Slurm's nodes with their GPUs, from what three of its commands and files say."""

from __future__ import annotations

import pytest

import placer
from placer.formats.machines.registry import read
from tests.readers import cases
from tests.readers.cases import machine_of
from tests.texts import table

SHOW_NODE = """\
NodeName=n1 Arch=x86_64 CoresPerSocket=56
   AvailableFeatures=(null)
   Gres=gpu:h100:8(S:0-1)
   State=IDLE ThreadsPerCore=1

NodeName=n2 Arch=x86_64 CoresPerSocket=56
   Gres=gpu:h100:8(S:0-1)
   State=IDLE+DRAIN ThreadsPerCore=1
   Reason=xid 79 [root@2026-05-05T10:00:00]

NodeName=login Arch=x86_64 CoresPerSocket=4
   Gres=(null)
   State=IDLE+POWERED_DOWN ThreadsPerCore=1
"""
SLURM_CONF = """\
ClusterName=c1
NodeName=DEFAULT State=UNKNOWN Gres=gpu:nvidia_h200:8 CPUs=112
NodeName=n[1-8] \\
RealMemory=2000000   # all of them
NodeName=cpu1 Gres=(null)
PartitionName=batch Nodes=ALL Default=YES
"""


def test_show_node():
    """GPUs and their type are read; a drained node is out of use, a login has none."""
    found = read("slurm-nodes", SHOW_NODE, "nodes.txt")
    assert found.gpu == "h100"
    assert {name: facts.gpus for name, facts in found.nodes.items()} == {
        "n1": 8,
        "n2": 8,
        "login": 0,
    }
    assert found.nodes["n2"].unavailable == "state IDLE+DRAIN"
    assert not found.nodes["login"].unavailable  # powered down, not down


def test_slurm_conf():
    """Defaults hold for the nodes after them, and lines go on behind a backslash."""
    found = read("slurm-nodes", SLURM_CONF, "slurm.conf")
    assert found.gpu == "nvidia_h200"
    assert [facts.gpus for facts in found.nodes.values()] == [8] * 8 + [0]


@pytest.mark.parametrize(*table("readers/slurm_nodes.yaml", "a_table_of_sinfo"))
def test_a_table_of_sinfo(table):
    """Both orders of the columns say the same."""
    found = read("slurm-nodes", table, "sinfo.txt")
    assert found.gpu == "a100"
    assert [facts.gpus for facts in found.nodes.values()] == [4, 4, 4, 0]


def test_they_name_the_hosts_of_switches(tmp_path):
    """Joined with switches, the type says the links and the count the GPUs."""
    (tmp_path / "topology.conf").write_text(cases.TREE)
    (tmp_path / "slurm.conf").write_text(SLURM_CONF.replace("h200:8", "h200:4"))
    sources = [str(tmp_path / name) for name in ("topology.conf", "slurm.conf")]
    machine = placer.read_topology(sources, note=lambda _remark: None)
    assert (machine.num_nodes, machine.num_gpus) == (8, 32)
    assert machine.gpu.name == "H200"
    links = {each.key: each for each in machine.assumed}["links"]
    assert (links.value, links.option) == ("H200", "--hardware T")


def test_hosts_without_a_type_keep_their_count(tmp_path):
    """A Gres without a type counts; the GPU then is assumed by the size."""
    text = "NODELIST GRES\nn[1-8] gpu:4\n"
    machine, _ = machine_of(tmp_path, cases.TREE, text, hardware=None)
    assert machine.num_gpus == 8 * 4
    assert [each.key for each in machine.assumed] == ["hardware", "oversubscription"]
