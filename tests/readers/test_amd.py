"""``rocm-smi --showtopo`` and ``amd-smi topology``: which GPUs XGMI joins."""

from __future__ import annotations

import json

import pytest

from placer.documents.recognise import recognise
from placer.formats.machines.registry import FORMATS, read
from tests.readers import cases
from tests.readers.cases import (
    all_joined,
    halves,
    labelled,
    link_types,
    machine_of,
    problem_of,
    refusal,
)


@pytest.mark.parametrize(
    ("text", "gpus"),
    [
        (link_types(8, all_joined), 8),
        (cases.LINK_TYPES_JSON, 3),
        (cases.LINK_TYPES_JSON.replace("1 and 2", "2 and 1"), 3),
        (cases.LINK_TYPES_OF_AMD_SMI, 2),
    ],
)
def test_all_gpus_joined(tmp_path, text, gpus):
    """Each form shows itself, and holds for every node that is listed."""
    assert recognise(text, FORMATS.values()) == ["rocm-smi"]
    machine, notes = machine_of(tmp_path, cases.HOSTS, text, hardware=cases.H100)
    assert machine.gpus_of_node.tolist() == [gpus] * 4
    assert any(f"{gpus} GPUs, XGMI between all GPUs" in note for note in notes)


def test_islands():
    """Two groups of four GPUs are two islands."""
    findings = read("rocm-smi", link_types(8, halves), "source")
    assert findings.islands == ((0, 1, 2, 3), (4, 5, 6, 7))
    assert "8 GPUs, 2 XGMI islands: GPU[0-3]; GPU[4-7]" in findings.notes[0]


def test_ring_is_one_island():
    """Pairs without XGMI of their own are noted, as what is assumed of them."""
    text = link_types(6, lambda a, b: (a - b) % 6 in (1, 5))
    findings = read("rocm-smi", text, "source")
    assert findings.nvlink is True
    assert "one island although 9 pairs have no XGMI of their own" in findings.notes[0]


def test_gpus_without_xgmi(tmp_path):
    """PCIe between all GPUs takes no figures from hardware that has NVLink."""
    text = link_types(4, lambda *_: False)
    assert read("rocm-smi", text, "source").nvlink is False
    problem = problem_of(machine_of, tmp_path, cases.HOSTS, text)
    assert problem.message.startswith("the GPUs of a node have no NVLink or XGMI")


@pytest.mark.parametrize("name", ["GPU[{}]\t\t", "GPU {}          ", "GPU{} "])
def test_numa_nodes(name):
    """Tools of every age tell the NUMA node of each GPU."""
    lines = [
        f"{name.format(gpu)}: (Topology) Numa {what}: {gpu // 2}\n"
        for gpu in range(4)
        for what in ("Node", "Affinity")
    ]
    head, _, _ = link_types(4, all_joined).partition("GPU[0]")
    findings = read("rocm-smi", head + "".join(lines), "source")
    assert findings.affinity.numa == (0, 0, 1, 1)


def test_host_that_lost_its_links(tmp_path):
    """A host of two islands among whole ones is left out, with the reason."""
    text = labelled(
        {
            "n1": link_types(8, all_joined),
            "n2": link_types(8, halves),
            "n3": link_types(8, all_joined),
            "n4": "bash: rocm-smi: command not found",
        }
    )
    machine, notes = machine_of(tmp_path, text, hardware=cases.H100)
    assert machine.node_names == ("n1", "n3")
    assert "nodes left out, 2 XGMI islands: 1 (n2)" in notes
    assert any('no link types between GPUs of "n4"' in note for note in notes)


def test_too_many_devices():
    """A matrix of more GPUs than a node can have is refused, in JSON too."""
    text = json.dumps({f"card{i}": {} for i in range(300)} | {"system": {}})
    pair = '"system": {"(Topology) Link type between DRM devices 0 and 1": "XGMI"}'
    text = text.replace('"system": {}', pair)
    message = refusal("rocm-smi", text).message
    assert message == "300 devices, the most is 256"
