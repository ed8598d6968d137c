"""Captured files, where PLACER_SAMPLES names their folder."""

from __future__ import annotations

import re

import pytest

from placer.errors import InputError
from placer.readers.machine import read_topology
from tests.readers import cases
from tests.readers.cases import nodes_of_domains, sizes, tier_names


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
