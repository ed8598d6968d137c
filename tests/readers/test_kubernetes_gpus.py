"""GPUs of Kubernetes nodes: AMD's, DRA devices, and counts in labels."""

from __future__ import annotations

import json

import pytest

from placer.base.errors import InputError
from placer.formats.machines.machine import read_topology
from placer.formats.machines.registry import read
from tests.readers import cases
from tests.readers.slices import device, resource_slice
from tests.texts import table


def node(name, *, labels=None, **offered):
    """A node that offers these GPUs, by the maker: ``amd=8``."""
    allocatable = {f"{maker}.com/gpu": str(n) for maker, n in offered.items()}
    found = cases.node(name, labels or {})
    return found | {"status": {"allocatable": {"cpu": "96"} | allocatable}}


def gpus(*items):
    """GPUs of every node, and the notes."""
    findings = read("kubernetes", cases.nodes(*items), "nodes.json")
    return {n: facts.gpus for n, facts in findings.nodes.items()}, findings.notes


def test_amd_gpus(tmp_path):
    """AMD's GPUs are counted as NVIDIA's are; a node without any is left out."""
    items = [node("mi-0", amd=8), node("mi-1", amd=7), node("cpu-1")]
    (tmp_path / "nodes.json").write_text(cases.nodes(*items))
    machine = read_topology(
        f"kubernetes:{tmp_path / 'nodes.json'}", hardware="mi300x-16x8", note=print
    )
    assert dict(zip(machine.node_names, machine.gpus_of_node, strict=True)) == {
        "mi-0": 8,
        "mi-1": 7,
    }
    assert machine.unavailable == {"cpu-1": "no GPUs"}


def test_whole_gpus_of_dra():
    """Whole GPUs count; parts of one, other devices and those with taints do not."""
    taint = [{"key": "example.com/ill", "effect": "NoExecute"}]
    found, _ = gpus(
        node("n0", nvidia=0),
        node("n1"),
        node("n2"),
        node("cpu"),
        resource_slice(
            "n0",
            [device(0), device(1), device(1, "mig"), device(2)],
        ),
        resource_slice("n0", [device(9, "channel")], "compute-domain.nvidia.com"),
        resource_slice("n1", [device(0), device(1, taints=taint)]),
        resource_slice(
            "n2",
            [device(i, kind) for i in range(8) for kind in ("amdgpu", "vfio")]
            + [device(0, "amdgpu-partition")],
            "gpu.amd.com",
        ),
    )
    assert found == {"n0": 3, "n1": 1, "n2": 8, "cpu": 0}


def test_only_the_newest_generation_of_a_pool_counts():
    """Slices of before stay in the list for a while; a pool that is cut is noted."""
    old = resource_slice("n0", [device(i) for i in range(8)], generation=4)
    new = [resource_slice("n0", [device(i)], generation=5, count=3) for i in range(2)]
    found, notes = gpus(node("n0"), old, *new)
    assert found == {"n0": 2}
    assert notes == ["DRA pools with slices that are not in it: n0"]


def test_older_versions_of_slices():
    """Before v1 attributes stand under basic."""
    devices = [{"name": f"gpu-{i}", "basic": device(i)} for i in range(4)]
    found, _ = gpus(node("n0"), resource_slice("n0", devices))
    assert found == {"n0": 4}


def test_two_counts_of_one_node():
    """Where pods may ask for fewer than the devices are, the fewer count."""
    devices = [device(i) for i in range(8)]
    found, notes = gpus(node("n0", nvidia=7), resource_slice("n0", devices))
    assert found == {"n0": 7}
    assert any("DRA devices are not as many as they offer" in note for note in notes)


@pytest.mark.parametrize(*table("readers/kubernetes_gpus.yaml", "counts_in_labels"))
def test_counts_in_labels(labels, count):
    """Where no node offers GPUs, as without their status, labels count; TPUs do not."""
    found, notes = gpus(node("n0", labels=labels), node("cpu"))
    assert found == {"n0": count, "cpu": None if count is None else 0}
    assert any("counted by labels" in note for note in notes) == (count is not None)


def test_a_label_does_not_make_gpus_usable():
    """A node whose GPUs nobody may ask for has none, and a note names it."""
    labels = {"nvidia.com/gpu.count": "8"}
    found, notes = gpus(node("n0", labels=labels, nvidia=8), node("n1", labels=labels))
    assert found == {"n0": 8, "n1": 0}
    assert any("which offer none: 1 (n1)" in note for note in notes)


def test_shared_gpus_count_once():
    """A GPU that is offered ten times over is one."""
    labels = {"nvidia.com/gpu.count": "8"}
    found, notes = gpus(node("n0", labels=labels, nvidia=80))
    assert found == {"n0": 8}
    assert any("more GPUs than a label counts" in note for note in notes)


def test_slices_alone_list_no_nodes():
    """A list of slices without nodes says which command prints both."""
    text = json.dumps({"kind": "ResourceSliceList", "items": [{"spec": {}}]}, indent=1)
    with pytest.raises(InputError, match="no node in it") as caught:
        read("kubernetes", text, "slices.json")
    assert "nodes,resourceslices" in caught.value.problems[0].hint
