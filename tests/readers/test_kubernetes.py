"""Node labels of Kubernetes."""

from __future__ import annotations

import json

import pytest

from placer.base.errors import InputError
from placer.formats.machines.registry import read
from placer.topology.compact import compact_document
from placer.topology.read import parse_topology
from placer.topology.write import to_document
from tests.readers import cases
from tests.readers.cases import machine_of, node, nodes, nodes_of_domains, tier_names
from tests.texts import table


def with_labels(key, values, more=()):
    """Nodes n0, n1, ... with one label, and others that all share."""
    return nodes(
        *(
            node(f"n{i}", dict(more) | ({key: value} if value else {}))
            for i, value in enumerate(values)
        )
    )


def test_labels_of_topograph_and_the_gpu_operator(tmp_path):
    """Cliques of two nodes are racks, spines hold four; leaves repeat the cliques."""
    machine, notes = machine_of(tmp_path, cases.KUBERNETES)
    assert tier_names(machine) == ["node", "rack", "spine", "cluster"]
    assert nodes_of_domains(machine, "rack")["5000.0"] == ["gpu-0", "gpu-1"]
    assert machine.num_gpus == 8 * 4
    assert any(
        note.startswith("leaf of") and "same as clique" in note for note in notes
    )


@pytest.mark.parametrize(*table("readers/kubernetes.yaml", "label_families"))
def test_label_families(tmp_path, keys, tiers):
    """Every family gives its levels, closest first (AWS counts from the top)."""
    start, inner, outer = keys
    text = nodes(
        *(
            node(f"n{i}", {start + inner: f"a{i // 2}", start + outer: f"b{i // 4}"})
            for i in range(8)
        )
    )
    machine, _ = machine_of(tmp_path, text, hardware=cases.H100)
    assert tier_names(machine) == ["node", *tiers, "cluster"]
    assert [len(names) for names in machine.domain_names] == [8, 4, 2, 1]


@pytest.mark.parametrize(*table("readers/kubernetes.yaml", "nvlink_labels"))
def test_nvlink_labels(tmp_path, key):
    """Each label of an NVLink domain makes the rack of a machine of racks."""
    machine, _ = machine_of(tmp_path, with_labels(key, ["a", "a", "b", "b"]))
    assert nodes_of_domains(machine, "rack") == {"a": ["n0", "n1"], "b": ["n2", "n3"]}
    assert machine.scale_up_tier == 1


def test_clique_against_single_hosts(tmp_path):
    """A clique of two nodes on hardware without NVLink between nodes is refused."""
    text = with_labels("nvidia.com/gpu.clique", ["a", "a"])
    with pytest.raises(InputError, match="no NVLink between nodes, but clique"):
        machine_of(tmp_path, text, hardware=cases.H100)


def test_missing_label_is_a_hole(tmp_path):
    """A node without the label, or with OCI's word for unknown, shares no domain."""
    key = "oci.oraclecloud.com/rdma.local_block_id"
    text = with_labels(key, ["a", "", "a", "no-imds-data", "b", "b"])
    machine, notes = machine_of(tmp_path, text, hardware=cases.H100)
    assert nodes_of_domains(machine, "local-block") == {
        "a": ["n0", "n2"],
        "n1": ["n1"],
        "n3": ["n3"],
        "b": ["n4", "n5"],
    }
    assert any("unknown for 2 of 6 nodes, kept apart: n1, n3" in note for note in notes)


def test_holes_of_nodes_out_of_use_are_no_news(tmp_path):
    """Nodes without GPUs or out of use need no label: no note asks for it."""
    items = [
        cases.node("n0", {"nvidia.com/gpu.clique": "a"}),
        cases.node("n1", {"nvidia.com/gpu.clique": "a"}),
        cases.node("n2", {}, unschedulable=True),
    ]
    none = cases.node("n3", {}) | {"status": {"allocatable": {}}}
    _, notes = machine_of(tmp_path, cases.nodes(*items, none))
    assert not any("unknown for" in note for note in notes)


def test_old_and_new_topograph():
    """Labels of two versions of topograph on one node are refused."""
    labels = {
        "network.topology.nvidia.com/leaf": "a",
        "fabric.topograph.run/tier-0": "b",
    }
    with pytest.raises(InputError, match="an old and a new topograph"):
        read("kubernetes", nodes(node("n0", labels)), "nodes.json")


def test_gpus(tmp_path):
    """GPUs come from what the node offers; a node that offers none is left out."""
    items = [node(f"n{i}", {}) for i in range(3)]
    items[1]["status"] = {"allocatable": {"nvidia.com/gpu": "3"}}
    items[2]["status"] = {"allocatable": {"cpu": "8"}}
    machine, notes = machine_of(tmp_path, nodes(*items), hardware=cases.H100)
    assert machine.gpus_of_node.tolist() == [4, 3]
    assert machine.unavailable == {"n2": "no GPUs"}
    assert "nodes left out, no GPUs: 1 (n2)" in notes


def test_gpus_unknown_everywhere(tmp_path):
    """Without a device plugin the count is that of the hardware or of the option."""
    items = [node(f"n{i}", {}) for i in range(2)]
    for item in items:
        item["status"] = {}
    text = nodes(*items)
    machine, _ = machine_of(tmp_path, text, hardware=cases.H100)
    assert machine.gpus_of_node.tolist() == [8, 8]
    machine, _ = machine_of(tmp_path, text, hardware=cases.H100, gpus_per_node=2)
    assert machine.gpus_of_node.tolist() == [2, 2]


@pytest.mark.parametrize(*table("readers/kubernetes.yaml", "nodes_out_of_use"))
def test_nodes_out_of_use(tmp_path, spec, status, reason):
    """A node that takes no pods is unavailable, with the reason."""
    out = node("n0", {}, **spec)
    out["status"] |= status
    machine, notes = machine_of(
        tmp_path, nodes(out, node("n1", {}), node("n2", {})), hardware=cases.H100
    )
    assert machine.unavailable == {"n0": reason}
    assert f"nodes left out, {reason}: 1 (n0)" in notes
    assert machine.node_names == ("n1", "n2")


def test_tolerable_taint(tmp_path):
    """The taint that keeps other pods off GPU nodes is only a note."""
    taint = {"key": "nvidia.com/gpu", "effect": "NoSchedule"}
    text = nodes(*(node(f"n{i}", {}, taints=[taint]) for i in range(2)))
    machine, notes = machine_of(tmp_path, text, hardware=cases.H100)
    assert machine.num_nodes == 2
    assert any("tolerate the taint nvidia.com/gpu, nodes: 2" in note for note in notes)


def test_what_pods_must_say_is_kept(tmp_path):
    """Labels of tiers, taints and NICs of usable nodes; topology files have them."""
    gpu = {"key": "nvidia.com/gpu", "value": "x", "effect": "NoSchedule"}
    ill = {"key": "example.com/ill", "effect": "NoExecute"}
    soft = {"key": "soft", "effect": "PreferNoSchedule"}
    items = []
    for i in range(6):
        labels = {"nvidia.com/gpu.clique": f"c.{i // 2}", "example.com/hall": "h"}
        taints = [gpu, soft, *[ill] * (i == 1)]
        item = node(f"n{i}", labels, taints=taints, unschedulable=i == 5)
        offered = {"rdma/ib": "8", "rdma/shared": "1k", "rdma/none": "0", "cpu": "4"}
        item["status"]["allocatable"] |= offered if i != 2 else {"rdma/ib": "4"}
        items.append(item)
    control = node("c", {}, taints=[{"key": "control", "effect": "NoSchedule"}])
    control["status"]["allocatable"] = {}
    machine, _ = machine_of(tmp_path, nodes(control, *items), hardware=cases.GB200)
    known = machine.kubernetes.to_document()["kubernetes"]
    assert known == {
        "labels": {"rack": "nvidia.com/gpu.clique"},
        "taints": [gpu, {**ill, "hosts": "n1"}],
        "resources": [
            {"name": "rdma/ib", "count": 8, "hosts": "n[0-1,3-4]"},
            {"name": "rdma/shared", "count": 1000, "hosts": "n[0-1,3-4]"},
            {"name": "rdma/ib", "count": 4, "hosts": "n2"},
        ],
    }
    for document in (to_document(machine), compact_document(machine)):
        again = parse_topology(json.dumps(document), "t.json")
        assert again.kubernetes == machine.kubernetes
        assert again.sha256 == machine.sha256


def test_a_level_that_another_source_has_keeps_its_label(tmp_path):
    """Leaves of Slurm that a label gives too can be asked for by the label."""
    key = "fabric.topograph.run/tier-0"
    items = [node(f"n{i}", {key: f"l{(i - 1) // 4}"}) for i in range(1, 9)]
    machine, _ = machine_of(tmp_path, cases.TREE, nodes(*items), hardware=cases.H100)
    (tier,) = (tier for tier, own in machine.kubernetes.labels.items() if own == key)
    assert len(nodes_of_domains(machine, tier)) == 2


def test_the_resource_of_most_gpus_is_kept(tmp_path):
    """AMD's device plugin offers another one than NVIDIA's."""
    items = [node(f"n{i}", {}) for i in range(3)]
    for item in items:
        item["status"]["allocatable"] = {"amd.com/gpu": "8"}
    machine, _ = machine_of(tmp_path, nodes(*items), hardware=cases.H100)
    assert machine.kubernetes.gpu == "amd.com/gpu"


def test_labels_of_a_topology_file_are_of_its_tiers():
    """A tier that the machine does not have, an effect and a host list are told."""
    text = """
        {"format": "placer/topology", "version": 1, "name": "t",
         "tiers": [{"name": "node", "size": 4, "bandwidth": 1e9},
                   {"name": "cluster", "bandwidth": 1e9}],
         "layout": "cluster:1 node:2",
         "kubernetes": {"labels": {"rack": "x"}, "resources": [{"name": "a"}],
           "taints": [{"key": "k", "effect": "PreferNoSchedule", "hosts": "n["}]}}"""
    with pytest.raises(InputError) as caught:
        parse_topology(text, "t.json")
    assert {problem.key for problem in caught.value.problems} == {
        "kubernetes.labels.rack",
        "kubernetes.taints[0].effect",
        "kubernetes.taints[0].hosts",
        "kubernetes.resources[0]",
    }


def test_instance_ids_join_clouds(tmp_path):
    """Provider ids name the instances of an AWS answer as hosts."""
    text = nodes(
        *(node(f"gpu-{i}", {}, providerID=f"aws:///use1-az1/i-{i}") for i in range(8))
    )
    machine, _ = machine_of(tmp_path, text, cases.AWS, hardware=cases.H100)
    assert machine.node_names == tuple(f"gpu-{i}" for i in range(8))
    assert "network-node-2" in tier_names(machine)
    assert machine.num_gpus == 8 * 4
