"""What AWS, Google and Oracle say about their instances."""

from __future__ import annotations

import json

import pytest

import placer
from placer.base.errors import InputError
from placer.formats.machines.registry import read
from tests.readers import cases
from tests.readers.cases import machine_of, nodes_of_domains, refusal, tier_names


def aws(*instances, **more):
    return json.dumps({"Instances": list(instances)} | more)


def instance(name, *network_nodes, **more):
    return {"InstanceId": name, "NetworkNodes": list(network_nodes)} | more


def test_aws_bottom_up(tmp_path):
    """The last network node is the nearest; one for each instance repeats the node."""
    machine, _ = machine_of(tmp_path, cases.AWS, hardware=cases.H100)
    assert tier_names(machine) == [
        "node",
        "network-node-2",
        "network-node-1",
        "cluster",
    ]
    assert nodes_of_domains(machine, "network-node-2")["nn-m1"] == ["i-2", "i-3"]


def test_aws_depth_four(tmp_path):
    """Four network nodes give four levels; an instance with three lacks the nearest."""
    text = aws(
        instance("i-0", "a", "b", "c", "d"),
        instance("i-1", "a", "b", "c", "d"),
        instance("i-2", "a", "b", "c"),
        instance("i-3", "a", "b", "c"),
        instance("i-4", "a", "x", "y", "z"),
    )
    machine, notes = machine_of(tmp_path, text, hardware=cases.H100)
    assert nodes_of_domains(machine, "network-node-4") == {
        "d": ["i-0", "i-1"],
        "i-2": ["i-2"],
        "i-3": ["i-3"],
        "z": ["i-4"],
    }
    assert any("network-node-4" in n and "kept apart: i-2, i-3" in n for n in notes)


def test_aws_ultraservers(tmp_path):
    """A capacity block is an NVLink domain on P6e only, and a reservation elsewhere."""
    blocks = ["cb-1", "cb-1", "cb-2", "cb-2"]
    kinds = {}
    for kind in ("p6e-gb200.36xlarge", "p5.48xlarge"):
        text = aws(
            *(
                instance(f"i-{i}", "a", InstanceType=kind, CapacityBlockId=block)
                for i, block in enumerate(blocks)
            )
        )
        machine, _ = machine_of(tmp_path, text)
        kinds[kind] = tier_names(machine)
    assert kinds["p6e-gb200.36xlarge"] == ["node", "rack", "network-node-1"]
    assert kinds["p5.48xlarge"] == ["node", "network-node-1"]


def test_aws_kinds_are_noted(tmp_path):
    """Several instance types are taken for alike only with a note."""
    text = aws(
        instance("i-0", "a", InstanceType="p5.48xlarge"),
        instance("i-1", "a", InstanceType="trn1.32xlarge"),
    )
    _, notes = machine_of(tmp_path, text, hardware=cases.H100)
    assert any(
        "2 instance types" in note and "trn1.32xlarge (1)" in note for note in notes
    )


def test_yaml_answers():
    """Whoever saved YAML is told to ask for JSON; whoever cut JSON is not."""
    yaml = refusal("gcp", "- name: vm-1\n")
    cut = refusal("gcp", '[{"name": "vm-1"')
    assert "ask the tool for JSON" in yaml.hint
    assert not cut.hint


def test_places_in_lines_of_hosts():
    """A fault in the n-th line is reported in that line and at its column."""
    text = 'gpu-0: {"customerLocalBlock": "a"}\ngpu-1: {"customerLocalBlock": 7}'
    problem = refusal("oci", text)
    assert (problem.line, problem.column) == (2, text.splitlines()[1].index("7") + 1)


def test_gcp_missing_values(tmp_path):
    """Any level may be missing; the old path has block, sub-block and host."""
    text = json.dumps(
        [
            {"name": "a", "resourceStatus": {"physicalHost": "/b1/s1/h1"}},
            {"name": "b", "resourceStatus": {"physicalHost": "/b1/s1/h2"}},
            {
                "name": "c",
                "resourceStatus": {
                    "physicalHostTopology": {"block": "b2", "subBlock": "s2"}
                },
            },
            {"name": "d", "resourceStatus": {}},
        ]
    )
    machine, notes = machine_of(tmp_path, text, hardware=cases.H100)
    assert nodes_of_domains(machine, "subblock") == {
        "s1": ["a", "b"],
        "s2": ["c"],
        "d": ["d"],
    }
    assert any("kept apart: d" in note for note in notes)


def test_gcp_subblocks_are_racks_on_gb200(tmp_path):
    """On racks of NVLink a sub-block is one."""
    machine, _ = machine_of(tmp_path, cases.GCP)
    assert tier_names(machine) == ["node", "rack", "block", "cluster"]
    assert machine.scale_up_tier == 1


def test_oci_shapes(tmp_path):
    """Lines of hosts and the command's list give the same levels."""
    listed = json.dumps(
        {
            "data": {
                "items": [
                    {
                        "id": f"host-{i}",
                        "instance-id": f"i-{i}",
                        "hpc-island-id": "island",
                        "network-block-id": f"nb{i // 4}",
                        "local-block-id": f"lb{i // 2}",
                        "gpu-memory-fabric-id": None,
                    }
                    for i in range(8)
                ]
                + [{"id": "spare", "instance-id": None}]
            }
        }
    )
    lines, _ = machine_of(tmp_path, cases.OCI, hardware=cases.H100)
    api, notes = machine_of(tmp_path, listed, cases.NAMES, hardware=cases.H100)
    assert tier_names(lines) == ["node", "local-block", "network-block", "island"]
    assert api.node_names == lines.node_names
    assert api.domain_names == lines.domain_names
    assert (api.domain_of_node == lines.domain_of_node).all()
    assert any("hosts without an instance, left out: 1" in note for note in notes)


def test_oci_metadata_of_the_whole_host(tmp_path):
    """What /opc/v2/host/ answers holds the same data one level down, and it counts."""
    hosts = [json.loads(line.partition(" ")[2]) for line in cases.OCI.split("\n")]
    text = "\n".join(
        f"gpu-{i}: "
        + json.dumps({"networkBlockId": "other", "rdmaTopologyData": hosts[i]})
        for i in range(len(hosts))
    )
    whole, _ = machine_of(tmp_path, text, hardware=cases.H100)
    plain, _ = machine_of(tmp_path, cases.OCI, hardware=cases.H100)
    assert tier_names(whole) == tier_names(plain)
    assert whole.domain_of_node.tolist() == plain.domain_of_node.tolist()


def oci_racks(*hosts):
    """Lines of whole hosts, each of a rack and a local block."""
    return "\n".join(
        f"g{i}: "
        + json.dumps({"rackId": rack, "rdmaTopologyData": {"customerLocalBlock": b}})
        for i, (rack, b) in enumerate(hosts)
    )


def test_oci_racks(tmp_path):
    """The rack of the whole host's metadata is a tier, NVLink where racks are."""
    text = oci_racks(*((f"r{i // 2}", f"b{i // 4}") for i in range(8)))
    machine, _ = machine_of(tmp_path, text, hardware=cases.H100)
    assert tier_names(machine) == ["node", "rack", "local-block", "cluster"]
    assert machine.scale_up_tier == 0
    machine, _ = machine_of(tmp_path, text)
    assert nodes_of_domains(machine, "rack")["r1"] == ["g2", "g3"]
    assert machine.scale_up_tier == 1


def test_oci_host_outside_the_rdma_network(tmp_path):
    """Such a host tells its rack and network block alone, and the file is known."""
    text = "\n".join(
        f'g{i}: {{"rackId": "r{i // 2}", "networkBlockId": "n{i // 4}"}}'
        for i in range(8)
    )
    (tmp_path / "hosts.txt").write_text(text)
    machine = placer.read_topology(
        tmp_path / "hosts.txt", hardware=cases.H100, note=print
    )
    assert tier_names(machine) == ["node", "rack", "network-block", "cluster"]


def test_oci_racks_across_blocks_are_left_out(tmp_path):
    """A rack with hosts of two blocks that have other racks too is no network."""
    text = oci_racks(("r0", "b0"), ("r1", "b0"), ("r1", "b1"), ("r1", "b1"))
    machine, notes = machine_of(tmp_path, text, hardware=cases.H100)
    assert tier_names(machine) == ["node", "local-block", "cluster"]
    assert any(
        "several local-blocks, so racks are left out: 1 (r1)" in n for n in notes
    )


def test_oci_rack_of_one_host_counts_within_its_fabric():
    """Racks called alike in two memory fabrics are two (NVIDIA/topograph)."""
    text = json.dumps(
        [
            {
                "instanceId": f"i-{i}",
                "localBlockId": "b",
                "gpuMemoryFabricId": f"f{i // 4}",
                "additionalData": {"locationDetails": {"rack": f"{i // 2 % 2}"}},
            }
            for i in range(8)
        ]
    )
    findings = read("oci", text, "hosts.json")
    racks = [facts.domains[1] for facts in findings.nodes.values()]
    assert racks == ["f0.0"] * 2 + ["f0.1"] * 2 + ["f1.0"] * 2 + ["f1.1"] * 2


def test_gcp_stopped_instances(tmp_path):
    """Instances that do not run are left out with their state; others stay."""
    instances = json.loads(cases.GCP)
    for instance, status in zip(
        instances, ("RUNNING", "TERMINATED", "STAGING", "SUSPENDED"), strict=False
    ):
        instance["status"] = status
    machine, notes = machine_of(tmp_path, json.dumps(instances), hardware=cases.H100)
    assert set(machine.node_names) == {f"vm-{i}" for i in (0, 2, 4, 5, 6, 7)}
    assert machine.unavailable == {"vm-1": "terminated", "vm-3": "suspended"}
    assert "nodes left out, terminated: 1 (vm-1)" in notes


def test_subblock_in_two_blocks(tmp_path):
    """Sub-blocks called alike in several blocks are no NVLink domain: refused."""
    instances = json.loads(cases.GCP)
    for instance in instances:
        instance["resourceStatus"]["physicalHostTopology"]["subblock"] = "s1"
    for hardware in (cases.GB200, cases.H100):
        with pytest.raises(InputError, match='subblock "s1" has 4 nodes in "b0"'):
            machine_of(tmp_path, json.dumps(instances), hardware=hardware)


def test_oci_memory_fabric_is_nvlink(tmp_path):
    """Hosts of one GPU memory fabric form a rack, across local blocks if need be."""
    text = "\n".join(
        f'g{i}: {{"localBlockId": "l{i}", "customerGpuMemoryFabric": "f{i // 2}"}}'
        for i in range(4)
    )
    machine, notes = machine_of(tmp_path, text)
    assert nodes_of_domains(machine, "rack") == {"f0": ["g0", "g1"], "f1": ["g2", "g3"]}
    assert any("local-block" in note and "divides" in note for note in notes)


def test_oci_noise_is_counted():
    """Lines of a parallel shell that are no answer are reported."""
    text = 'gpu-0: {"customerLocalBlock": "a"}\ngpu-1: curl: (7) failed\n'
    findings = read("oci", text, "lines.txt")
    assert list(findings.nodes) == ["gpu-0"]
    assert [problem.line for problem in findings.ignored] == [2]
