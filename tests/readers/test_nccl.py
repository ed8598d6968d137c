"""NCCL's topology XML."""

from __future__ import annotations

import json

from placer.formats.machines.registry import read
from placer.topology.compact import compact_document
from tests.readers import cases
from tests.readers.cases import machine_of, refusal


def test_node_of_a_file(tmp_path):
    """Two GPUs on NVLink; a NIC beside the first, and one below their CPU.

    The port of the first NIC is not counted again.
    """
    machine, notes = machine_of(tmp_path, cases.HOSTS, cases.XML)
    assert machine.num_nodes == 4
    assert machine.gpus_of_node.tolist() == [2, 2, 2, 2]
    (note,) = [note for note in notes if "GPUs: 2" in note]
    assert "NVLink, NICs: 2" in note
    path = tmp_path / "again.json"
    path.write_text(json.dumps(compact_document(machine)))
    assert machine_of_file(path).sha256 == machine.sha256


def machine_of_file(path):
    from placer.topology.read import read_topology

    return read_topology(path)


def test_nvlink_is_unknown_without_gpu_elements():
    """Files of providers list PCI devices only: no NVLink there means nothing."""
    text = '<system version="1"><cpu><pci busid="1" class="0x030200"/></cpu></system>'
    findings = read("nccl", text, "source")
    assert findings.nvlink is None
    assert "NVLink not told" in findings.notes[0]


def test_links_to_itself_are_not_counted():
    """An NVLink that ends where it starts is reported, and tells nothing."""
    text = cases.XML.replace("ffff:ff:ff.f", "0000:01:00.0", 1)
    findings = read("nccl", text, "source")
    assert findings.nvlink is None
    assert findings.notes[1:] == [
        "GPUs whose links it does not tell: 1",
        "links from a GPU to itself, not counted: 1",
    ]


def test_hosts_in_one_file():
    """A file of several hosts, told apart by their hash, has one host's GPUs."""
    cpu = '<cpu host_hash="0x{}"><pci busid="1" class="0x0302"/></cpu>'
    text = "<system>" + "".join(cpu.format(i) for i in range(3)) + "</system>"
    assert "GPUs: 1" in read("nccl", text, "source").notes[0]
    uneven = text.replace("</system>", cpu.format(0) + "</system>")
    assert "different numbers of GPUs: 2, 1, 1" in refusal("nccl", uneven).message


def test_place_of_an_error():
    """Errors of XML have line and column."""
    problem = refusal("nccl", "<system>\n  <cpu>\n</system>")
    assert (problem.line, problem.column) == (3, 3)
