"""Captured files, where PLACER_SAMPLES names their folder."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from placer.base.errors import InputError
from placer.documents.recognise import recognise
from placer.formats.machines.findings import Known
from placer.formats.machines.machine import read_topology
from placer.formats.machines.registry import FORMATS
from placer.formats.machines.registry import read as registry_read
from tests.readers import cases
from tests.readers.cases import nodes_of_domains, sizes, tier_names
from tests.texts import table


@pytest.fixture
def read(samples):
    """The machine of some files of the folder, and the notes."""

    def read_samples(*names, hardware=cases.GB200):
        notes = []
        paths = [str(samples / name) for name in names]
        return read_topology(paths, hardware=hardware, note=notes.append), notes

    return read_samples


@pytest.mark.parametrize(
    ("name", "nodes", "racks", "outer"),
    [
        # 4 leaves of 18 nodes, a domain a leaf, under 2 spines and a core.
        ("nvl72", 72, {18: 4}, {"spine": 2, "core": 1}),
        # 12 leaves of 8 nodes under 6 spines and a core.
        ("large", 96, {8: 12}, {"spine": 6, "core": 1}),
        # 4 leaves of 2 nodes under 2 switches and one.
        ("medium", 8, {2: 4}, {"spine": 2, "core": 1}),
    ],
)
def test_models(read, name, nodes, racks, outer):
    """Case T1: nodes, NVLink domains and switches of topograph's models."""
    machine, _ = read(f"topograph/{name}.yaml")
    assert machine.num_nodes == nodes
    assert machine.num_gpus == 4 * nodes
    assert sizes(machine, "rack") == racks
    assert {tier: len(nodes_of_domains(machine, tier)) for tier in outer} == outer
    assert machine.tiers[machine.scale_up_tier].name == "rack"


def test_model_of_digits(read):
    """The nodes of medium.yaml are called 1101, 1102, 1201, ..."""
    machine, _ = read("topograph/medium.yaml")
    assert machine.node_names[:3] == ("1101", "1102", "1201")


def test_slurm_tree(read):
    """96 nodes in 12 leaves under 6 spines, called as the comments above them say."""
    machine, _ = read("slurm/expected.slinky-oci-sim-tree.conf", hardware=cases.H100)
    assert tier_names(machine) == ["node", "leaf", "spine", "core"]
    assert machine.num_gpus == 96 * 8
    assert sizes(machine, "leaf") == {8: 12}
    assert sizes(machine, "spine") == {16: 6}
    assert "leaf-1-1" in machine.domain_names[1]
    assert machine.domain_names[3] == ("core",)


def test_slurm_blocks(read):
    """12 blocks of 8 nodes; the sizes 16 and 32 make tiers of 2 and 4 blocks."""
    machine, _ = read("slurm/expected.slinky-dra-block.conf")
    assert tier_names(machine) == ["node", "rack", "blocks-2", "blocks-4", "cluster"]
    assert sizes(machine, "rack") == {8: 12}
    assert sizes(machine, "blocks-2") == {16: 6}
    assert sizes(machine, "blocks-4") == {32: 3}
    assert "nvl-1-1" in machine.domain_names[1]


def test_slurm_halves(read):
    """The two files hold the same 96 nodes: joined they are the model large.yaml."""
    machine, notes = read(
        "slurm/expected.slinky-dra-block.conf",
        "slurm/expected.slinky-oci-sim-tree.conf",
    )
    model, _ = read("topograph/large.yaml")
    assert set(machine.node_names) == set(model.node_names)
    for tier in ("rack", "spine"):
        found = {frozenset(d) for d in nodes_of_domains(machine, tier).values()}
        assert found == {frozenset(d) for d in nodes_of_domains(model, tier).values()}
    assert not any("not in" in note for note in notes)


def test_three_views_of_one_machine(read):
    """Slurm's tree and blocks and topograph's model agree and add no tier."""
    machine, _ = read(
        "topograph/large.yaml",
        "slurm/expected.slinky-dra-block.conf",
        "slurm/expected.slinky-oci-sim-tree.conf",
    )
    assert tier_names(machine) == ["node", "rack", "spine", "core"]


def test_aws_page(samples, tmp_path):
    """The printed answer is one page of several and refused; whole, it is 4 nodes.

    Two of them share the bottom network node, a third only the top one, and the fourth
    lies in another zone: three bottom nodes, three middle ones, two top ones.
    """
    text = (samples / "cloud/aws-describe-instance-topology.json").read_text()
    path = tmp_path / "aws.json"
    path.write_text(text)
    with pytest.raises(InputError, match="NextToken"):
        read_topology(path, hardware=cases.H100)
    path.write_text(re.sub(r',\s*"NextToken": "[^"]*"', "", text))
    notes = []
    machine = read_topology(path, hardware=cases.H100, note=notes.append)
    assert sizes(machine, "network-node-3") == {2: 1, 1: 2}
    assert sizes(machine, "network-node-1") == {3: 1, 1: 1}
    assert any("3 instance types" in note for note in notes)
    assert any("2 zones" in note for note in notes)


@pytest.fixture
def listed(tmp_path):
    """A list of four nodes, for files that describe one."""
    path = tmp_path / "nodes"
    path.write_text("n[1-4]")
    return f"hosts:{path}"


@pytest.mark.parametrize(
    ("name", "gpus", "nvlink", "words"),
    [
        # Two of the eight NICs are equally near to each GPU.
        ("8xh200", 8, True, "GPU6 GPU7: NIC6 NIC7 (PIX)"),
        # One tray of a rack: its NICs are all at NODE.
        ("4xgb200", 4, True, "4 GPUs, 6 NICs, NV18 between all GPUs"),
        ("4xrtx6000ada-pcie", 4, False, "4 GPUs, 4 NICs, no NVLink"),
    ],
)
def test_connection_matrices(samples, name, gpus, nvlink, words):
    """GPUs, NVLink and nearest NICs of captured and of pasted matrices."""
    text = (samples / f"nvidia-smi/topo-m-{name}.txt").read_text()
    assert recognise(text, FORMATS.values()) == ["topo-m"]
    findings = registry_read("topo-m", text, name)
    assert findings.nvlink is nvlink
    assert words in findings.notes[0]
    joined = findings.join(Known({}, ("n1",)))
    assert joined.nodes["n1"].gpus == gpus


@pytest.mark.parametrize(
    ("name", "gpus", "words"),
    [
        # A GPU and a NIC behind each of eight bridges.
        ("azure-ndv5-topo", 8, "NICs: 8; NICs nearest to a GPU: 1 on 8 GPUs"),
        # Each NVLink points at its own GPU: whether there are others is not told.
        ("azure-ncv4-topo", 4, "NVLink not told, NICs: 1"),
        # Two GPUs and a NIC behind each of four bridges.
        ("aws-p4d-24xl-topo", 8, "NICs: 4; NICs nearest to a GPU: 1 on 8 GPUs"),
        # Two GPUs and two NICs behind each of four bridges, in mixed order.
        ("oci-topo-flattened", 8, "NICs: 8; NICs nearest to a GPU: 2 on 8 GPUs"),
    ],
)
def test_nccl_topologies(samples, listed, name, gpus, words):
    """GPUs and NICs of the files that clouds ship."""
    path = samples / f"nccl/{name}.xml"
    notes = []
    machine = read_topology([listed, path], hardware=cases.H100, note=notes.append)
    assert machine.gpus_of_node.tolist() == [gpus] * 4
    assert any(words in note for note in notes)


@pytest.mark.parametrize(*table("readers/samples.yaml", "nccl_files_that_tell_nothing"))
def test_nccl_files_that_tell_nothing(samples, listed, name, message):
    """A graph, and a file that does not tell GPUs from NICs, are refused by name."""
    with pytest.raises(InputError, match=message):
        read_topology([listed, samples / f"nccl/{name}.xml"], hardware=cases.H100)


def test_infiniband(read):
    """119 hosts and the fabric manager on 8 sets of rails below one layer of spines.

    40 of 582 adapters sit in switches; 69 are called as their card, 3 localhost and 2
    ubuntu: 468 of 542 have a host. Seven sets are of four leaves; hosts of the eighth,
    a05, show three. Hosts named in racks a05 to a08: 10, 11, 18, 17; b05 to b08: 18,
    15, 16, 14 and the manager. The manager has two adapters, on leaves of the last set.
    """
    name = "topograph/ibnetdiscover-dgx-h100.out"
    machine, notes = read(name, hardware=cases.H100)
    assert tier_names(machine) == ["node", "rails", "spine"]
    assert sizes(machine, "rails") == {
        17: 1,
        11: 1,
        15: 2,
        16: 1,
        18: 2,
        10: 1,
    }
    leaves = Counter(name.count("+") + 1 for name in machine.domain_names[1])
    assert leaves == {4: 7, 3: 1}
    assert any("(SHARP) inside switches: 40" in note for note in notes)
    assert any("cannot be told: 74 of 542" in note for note in notes)
    assert any("4 on 109 hosts; 3 on 10 hosts" in note for note in notes)
    assert any("468 at 400 Gb/s" in note for note in notes)
