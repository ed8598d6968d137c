"""NMX, NetQ, azslurm, Slinky's ConfigMaps, and outputs that are refused by name."""

from __future__ import annotations

import json

import pytest

from placer.base.errors import InputError
from placer.formats.machines.machine import read_topology
from tests.readers import cases
from tests.readers.cases import machine_of, netq, nodes_of_domains, sizes, tier_names


def test_nmx(tmp_path):
    """Trays of one domain are a rack; their GPUs are counted."""
    machine, _ = machine_of(tmp_path, cases.NMX)
    assert nodes_of_domains(machine, "rack") == {"d0": ["n0", "n1"], "d1": ["n2", "n3"]}
    assert machine.gpus_of_node.tolist() == [4, 4, 4, 4]


def test_nmx_nodes_that_are_unwell(tmp_path):
    """Trays with fewer GPUs have fewer, and their health is noted."""
    trays = json.loads(cases.NMX)
    trays[2] |= {"GpuIDList": ["a"], "Health": "DEGRADED"}
    machine, notes = machine_of(tmp_path, json.dumps(trays))
    assert machine.gpus_of_node.tolist() == [4, 4, 1, 4]
    assert any("n2 DEGRADED" in note for note in notes)


def test_netq(tmp_path):
    """Hosts of tier -1 lie under leaves, these under spines, which the core joins."""
    machine, _ = machine_of(tmp_path, cases.NETQ, hardware=cases.H100)
    assert tier_names(machine) == ["node", "leaf", "spine", "core"]
    assert sizes(machine, "leaf") == {2: 4}
    assert sizes(machine, "spine") == {4: 2}
    assert machine.node_names[0] == "dev-h0"


def test_netq_rails(tmp_path):
    """Hosts on the same two leaves share a set of rails."""
    hosts = {f"h{i}": -1 for i in range(4)}
    links = [
        (h, f"l{2 * (i // 2) + rail}") for i, h in enumerate(hosts) for rail in (0, 1)
    ]
    links += [("s", f"l{i}") for i in range(4)]
    text = netq(*links, **hosts, **{f"l{i}": 1 for i in range(4)}, s=2)
    machine, _ = machine_of(tmp_path, text, hardware=cases.H100)
    assert tier_names(machine) == ["node", "rails", "spine"]
    assert sizes(machine, "rails") == {2: 2}


@pytest.mark.parametrize("joined", [True, False])
def test_leaves_without_spines(tmp_path, joined):
    """Leaves cabled to each other are one fabric; two apart are refused."""
    links = [("h0", "l0"), ("h1", "l1"), *([("l0", "l1")] if joined else [])]
    text = netq(*links, h0=-1, h1=-1, l0=1, l1=1)
    if joined:
        machine, _ = machine_of(tmp_path, text, hardware=cases.H100)
        assert machine.num_nodes == 2
    else:
        with pytest.raises(InputError, match="2 fabrics that no switch joins"):
            machine_of(tmp_path, text, hardware=cases.H100)


def test_infiniband_leaves_without_spines(tmp_path):
    """So it is for a small InfiniBand fabric."""
    fabric = cases.InfiniBand()
    leaves = [fabric.add(f"S-{i:016x}", f"MF0;leaf{i}:Q/U1") for i in (0, 1)]
    fabric.link(*leaves)
    for number in range(4):
        guid = fabric.add(f"H-{0x100 + number:016x}", f"h{number} mlx5_0")
        fabric.link(leaves[number // 2], guid)
    machine, _ = machine_of(tmp_path, fabric.text(), hardware=cases.H100)
    assert sizes(machine, "leaf") == {2: 2}


def test_azslurm(tmp_path):
    """The blocks, in hardware's racks, without larger blocks of neighbours."""
    machine, _ = machine_of(tmp_path, cases.AZSLURM)
    assert nodes_of_domains(machine, "rack") == {
        "b2": ["n3", "n4"],
        "b1": ["n1", "n2", "n5"],
    }
    assert tier_names(machine) == ["node", "rack", "cluster"]


def test_configmap(tmp_path):
    """A ConfigMap's topology.yaml is the machine of the file itself."""
    inside, _ = machine_of(tmp_path, cases.CONFIGMAP)
    (tmp_path / "own").mkdir()
    own, _ = machine_of(tmp_path / "own", cases.YAML)
    assert tier_names(inside) == tier_names(own)
    assert inside.domain_names == own.domain_names


def configmap(**data):
    return {
        "kind": "ConfigMap",
        "data": {k.replace("_", "."): v for k, v in data.items()},
    }


def test_configmap_as_json(tmp_path):
    """With topology.conf, in a list, as kubectl prints it with -o json."""
    item = configmap(topology_conf=cases.TREE)
    text = json.dumps({"kind": "List", "items": [configmap(other="x"), item]})
    machine, _ = machine_of(tmp_path, text, hardware=cases.H100)
    assert tier_names(machine) == ["node", "leaf", "spine"]


SLURM_JSON = '{"nodes": [], "meta": {"plugin": {"data_parser": "data_parser/v0.0.44"}}}'
TORUS = """\
- topology: pods
  torus3d:
    toruses:
      - {name: pod1, dims: {x: 4, y: 4, z: 2}, nodes: "node[01-32]"}
"""
RING = '- topology: loop\n  ring: {rings: [{ring: r, nodes: "n[1-8]"}]}\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (SLURM_JSON, "JSON of a Slurm command"),
        (TORUS, "the topology pods is torus3d: a torus is no tree"),
        (RING, "the topology loop is ring: a ring is no tree"),
        (
            "items:\n- kind: Node\n  metadata: {name: n}\n",
            "nodes of Kubernetes as YAML",
        ),
        ("NAME   STATUS   ROLES\nn1  Ready  <none>\n", "the table of kubectl"),
        ("Block Name |   Size | Nodes\nblock1 | 2 | n1, n2\n", "the table of azslurm"),
    ],
)
@pytest.mark.parametrize("prefix", ["", "slurm-yaml:", "scontrol:", "kubernetes:"])
def test_refused_by_name(tmp_path, text, message, prefix):
    """Outputs without a tree are called by their name, whatever they are taken for."""
    path = tmp_path / "file"
    path.write_text(text)
    if prefix not in ("", "slurm-yaml:") and text in (TORUS, RING):
        message = "it is not of the format"
    with pytest.raises(InputError, match=message):
        read_topology(f"{prefix}{path}", hardware=cases.H100)
