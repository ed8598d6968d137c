"""Captured files, where PLACER_SAMPLES names their folder."""

import re

import pytest

from placer.base.errors import InputError
from placer.formats.machines.machine import read_topology
from tests.readers import cases
from tests.readers.cases import nodes_of_domains, sizes


@pytest.fixture
def read(samples):
    """The machine of some files of the folder, and the notes."""

    def read_samples(*names, hardware=cases.GB200):
        notes = []
        paths = [str(samples / name) for name in names]
        return read_topology(paths, hardware=hardware, note=notes.append), notes

    return read_samples


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
