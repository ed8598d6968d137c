"""Machines whose nodes hold islands: tiers, figures, and what GPUs are near to."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from placer.base.errors import InputError
from placer.formats.machines.machine import read_topology
from placer.formats.machines.pcie import between_islands
from placer.formats.machines.registry import read
from placer.report.machine_text import draw
from placer.topology.affinity import Affinity
from placer.topology.compact import compact_document
from placer.topology.read import parse_topology
from tests.readers.cases import (
    GB200,
    H100,
    HOSTS,
    labelled,
    link_types,
    machine_of,
    node_xml,
    ring,
)

if TYPE_CHECKING:
    from pathlib import Path

    from placer.topology.model import Topology

TORN = {**ring(0, 2, 3, 5), **ring(1, 4, 6, 7)}
MEMBERS = (0, 2, 3, 5, 1, 4, 6, 7)
HARDWARE = """\
format: placer/topology
version: 1
name: xgmi
tiers:
  - {name: hive, size: 4, bandwidth: 150GB/s, latency: 1us, scale_up: true}
  - {name: node, size: 2, bandwidth: 20GB/s, latency: 3us}
  - {name: cluster, bandwidth: 25GB/s, latency: 5us}
layout: "cluster:1 node:1"
"""
JOB = """\
format: placer/job
version: 1
name: j
parallelism: {tp: 4, dp: 8}
model: {layers: 8, hidden: 4096, ffn: 14336, heads: 32, kv_heads: 8, vocab: 128256}
sequence: 8192
micro_batches: 8
compute: {micro_batch_time: 120ms, fixed_time: 20ms}
"""


def numbered(text: str, numbers: list[int]) -> str:
    """The topology with other numbers for its GPUs, in the order of the file."""
    for gpu, number in enumerate(numbers):
        text = text.replace(f'dev="{gpu}"', f'dev="new{number}"', 1)
    return text.replace("new", "")


def two_sockets(links: dict[int, tuple[int, ...]], pci: str) -> str:
    """Half of the GPUs on each CPU, below a PCI switch with a NIC beside it."""
    text = node_xml(links)
    start = text.index("<pci")
    devices = text[start : text.index("</cpu>")].split("<pci ")[1:]
    half = len(devices) // 2
    cpus = [
        f'<cpu numaid="{cpu}"><pci busid="0000:a{cpu}:00.0" class="0x060400" {pci}>'
        + "".join(
            f'<pci link_speed="16.0 GT/s PCIe" link_width="16" {device}'
            for device in devices[cpu * half : (cpu + 1) * half]
        )
        + f'</pci><pci busid="0000:b{cpu}:00.0" class="0x020000">'
        f'<nic><net name="mlx5_{cpu}"/></nic></pci></cpu>'
        for cpu in (0, 1)
    ]
    return f'<system version="2">{"".join(cpus)}</system>'


def hardware(tmp_path: Path) -> str:
    """A file of hardware with islands of its own."""
    path = tmp_path / "xgmi.yaml"
    path.write_text(HARDWARE)
    return str(path)


def members(machine: Topology) -> tuple[int, ...]:
    assert machine.islands
    return machine.islands.members


def test_islands_become_a_tier(tmp_path: Path) -> None:
    """It has the figures of the hardware's node; its members are the launcher's."""
    machine, notes = machine_of(tmp_path, HOSTS, node_xml(TORN), hardware=H100)
    seen = machine.by_island
    assert [tier.name for tier in seen.tiers] == ["island", "node", "cluster"]
    assert [tier.scale_up for tier in seen.tiers] == [True, False, False]
    island, node, cluster = seen.tiers
    assert (island.bandwidth, island.latency) == (450e9, 1e-6)
    assert (node.bandwidth, node.latency) == (cluster.bandwidth, cluster.latency)
    assert members(machine) == MEMBERS
    assert machine.index_of_gpu[:8].tolist() == [*MEMBERS]
    assert any("4 nodes, 8 islands, 32 GPUs" in note for note in notes)
    assert any("as fast as cluster of dgx-h100-4x8" in note for note in notes)
    assert "island: GPU[0,2-3,5]; GPU[1,4,6-7]" in draw(machine)


def test_machine_is_written_and_read_back(tmp_path: Path) -> None:
    """With its islands, also where a cloud calls a level of its network island."""
    where = {"n1": ("a", "x"), "n2": ("b", "x"), "n3": ("c", "y"), "n4": ("c", "y")}
    metadata = "".join(
        f'{host}: {{"customerLocalBlock": "{block}", "customerHPCIslandId": "{far}"}}\n'
        for host, (block, far) in where.items()
    )
    xml = two_sockets(TORN, "")
    machine, _ = machine_of(tmp_path, metadata, xml, hardware=H100)
    assert [tier.name for tier in machine.by_island.tiers] == [
        "island",
        "node",
        "local-block",
        "island-2",
        "cluster",
    ]
    again = parse_topology(json.dumps(compact_document(machine)), "again")
    assert again.sha256 == machine.sha256
    assert again.affinity == machine.affinity
    assert members(again) == MEMBERS


def test_level_that_is_called_node(tmp_path: Path) -> None:
    """The tier of that name is the host: a level of hosts gets another."""
    kind = tmp_path / "host.yaml"
    kind.write_text(
        "{format: placer/topology, version: 1, name: kind, layout: 'cluster:1 host:2',"
        " tiers: [{name: host, size: 4, bandwidth: 450GB/s, scale_up: true},"
        " {name: cluster, bandwidth: 50GB/s}]}"
    )
    labels = {f"n{n}": {"x": f"b{n // 2}"} for n in range(4)}
    items = [{"metadata": {"name": n, "labels": own}} for n, own in labels.items()]
    (tmp_path / "nodes.json").write_text(json.dumps({"items": items}))
    machine = read_topology(
        f"kubernetes:{tmp_path / 'nodes.json'}",
        hardware=str(kind),
        labels={"x": "node"},
        note=[].append,
    )
    assert [tier.name for tier in machine.tiers] == ["node", "node-2", "cluster"]
    again = parse_topology(json.dumps(compact_document(machine)), "again")
    assert again.sha256 == machine.sha256


def test_gpus_are_counted_by_number() -> None:
    """The file may list GPUs in another order than a launcher counts them."""
    text = numbered(node_xml({**ring(0, 1), **ring(2, 3)}), [0, 2, 3, 1])
    assert read("nccl", text, "f").islands == ((0, 2), (1, 3))
    # A container may see the last GPUs of a node only: these are its first.
    text = numbered(node_xml({**ring(0, 1), **ring(2, 3)}), [4, 6, 7, 5])
    assert read("nccl", text, "f").islands == ((0, 2), (1, 3))


def test_gpus_without_numbers() -> None:
    """Where numbers are missing or come twice the order of the file counts: noted."""
    text = numbered(node_xml({**ring(0, 1), **ring(2, 3)}), [0, 0, 0, 0])
    findings = read("nccl", text, "f")
    assert findings.islands == ((0, 1), (2, 3))
    assert "its GPUs have no numbers: counted as they stand in the file" in (
        findings.notes
    )


def test_pcie_between_islands(tmp_path: Path) -> None:
    """What the file tells of PCIe are the node's figures, with their source."""
    pci = 'link_speed="8.0 GT/s PCIe" link_width="16"'
    xml = two_sockets({**ring(0, 1, 2, 3), **ring(4, 5, 6, 7)}, pci)
    machine, notes = machine_of(tmp_path, HOSTS, xml, hardware=H100)
    node = machine.tiers[0]
    # The slowest link of the way counts, and four GPUs share it.
    assert node.bandwidth == pytest.approx(15.754e9, rel=1e-4)
    assert node.bandwidth * node.efficiency == pytest.approx(12e9)
    assert node.oversubscription == pytest.approx(4)
    assert node.distance == pytest.approx(450 / 15.754, rel=1e-4)
    assert not node.scale_up
    (source,) = [text for text in machine.sources if text.startswith("tier node")]
    assert "PCIe 8 GT/s x16 with 128b/130b, 15.75 GB/s (PCI-SIG)" in source
    assert not any("as fast as" in note for note in notes)
    assert machine.affinity == Affinity(
        (0, 0, 0, 0, 1, 1, 1, 1), (("mlx5_0",),) * 4 + (("mlx5_1",),) * 4
    )


@pytest.mark.parametrize(
    ("speed", "gigabytes", "counted"),
    [
        # Sixteen lanes, one way, as published; what NCCL counts with.
        (2.5, 4.0, 3.0),
        (5.0, 8.0, 6.0),
        (8.0, 15.754, 12.0),
        (16.0, 31.508, 24.0),
        (32.0, 63.015, 48.0),
        (64.0, 121.0, 96.0),
    ],
)
def test_generations_of_pcie(speed: float, gigabytes: float, counted: float) -> None:
    """Figures of the generations 1 to 6."""
    paths = [(0, gpu) for gpu in range(1, 5)]
    lanes = dict.fromkeys(range(1, 5), (speed, 16))
    found = between_islands(paths, [], lanes, [(0, 1), (2, 3)])
    assert found is not None
    assert found.bandwidth / 1e9 == pytest.approx(gigabytes, rel=1e-4)
    assert found.bandwidth * found.efficiency / 1e9 == pytest.approx(counted)
    assert found.oversubscription == 1


def test_links_with_nics_below_are_not_shared() -> None:
    """Traffic of other nodes does not take them: the island's way out stays wide."""
    paths = [(0, 10, 1), (0, 10, 2), (0, 20, 3), (0, 20, 4)]
    lanes = dict.fromkeys((1, 2, 3, 4, 10, 20), (16.0, 16))
    islands = [(0, 1), (2, 3)]
    shared = between_islands(paths, [], lanes, islands)
    apart = between_islands(paths, [(0, 10, 5), (0, 20, 6)], lanes, islands)
    assert shared
    assert apart
    assert (shared.oversubscription, apart.oversubscription) == (2, 1)


@pytest.mark.parametrize(
    "pci",
    ["", 'link_speed="" link_width=""', 'link_speed="Unknown" link_width="0"'],
)
def test_lanes_that_are_not_told(pci: str) -> None:
    """Then the file tells nothing of PCIe."""
    text = node_xml(TORN).replace("<pci ", f"<pci {pci} ")
    assert read("nccl", text, "f").pcie is None


def test_hardware_with_islands(tmp_path: Path) -> None:
    """Its figures serve from island to island; a source still says which GPUs."""
    machine, notes = machine_of(
        tmp_path, HOSTS, node_xml(TORN), hardware=hardware(tmp_path)
    )
    assert [t.bandwidth for t in machine.by_island.tiers] == [150e9, 20e9, 25e9]
    assert members(machine) == MEMBERS
    assert "tier island: figures of hive of xgmi" in machine.sources
    assert not any("as fast as" in note for note in notes)


def test_hardware_with_more_tiers_inside(tmp_path: Path) -> None:
    """What NVLink joins takes the figures of a tier that NVLink joins."""
    path = tmp_path / "pairs.yaml"
    socket = "  - {name: socket, size: 2, bandwidth: 30GB/s}\n  - {name: node"
    path.write_text(HARDWARE.replace("  - {name: node", socket))
    machine, _ = machine_of(tmp_path, HOSTS, node_xml(TORN), hardware=str(path))
    assert [t.bandwidth for t in machine.by_island.tiers] == [150e9, 20e9, 25e9]


@pytest.mark.parametrize("text", [HOSTS, node_xml({gpu: [] for gpu in range(8)})])
def test_islands_of_the_hardware(tmp_path: Path, text: str) -> None:
    """Where no source tells how GPUs are joined, nodes are those of the hardware."""
    sources = (HOSTS,) if text == HOSTS else (HOSTS, text)
    machine, _ = machine_of(tmp_path, *sources, hardware=hardware(tmp_path))
    assert [t.name for t in machine.by_island.tiers] == ["hive", "node", "cluster"]
    assert machine.num_gpus == 32


def test_node_of_islands_that_misses_gpus(tmp_path: Path) -> None:
    """Which island has lost a GPU is not told: such a node is left out."""
    single = "\tGPU0\tCPU Affinity\nGPU0\t X \t0-7\n"
    text = labelled({"n1": single, "n2": single})
    with pytest.raises(InputError) as failure:
        machine_of(tmp_path, text, hardware=hardware(tmp_path))
    assert failure.value.problems[0].hint == ("1 GPUs where others have 8 in islands")


@pytest.mark.parametrize(
    ("texts", "kind", "words"),
    [
        ((node_xml(ring(*range(8))),), "", "joins all GPUs of a node, on xgmi those"),
        ((link_types(8, lambda *_: False),), "", "no NVLink or XGMI, on xgmi they"),
        (
            (node_xml(TORN), link_types(8, lambda a, b: (a < 4) == (b < 4))),
            H100,
            "islands GPU[0-3]; GPU[4-7] are joined by NVLink or XGMI here",
        ),
        (
            (node_xml(TORN), link_types(8, lambda *_: True)),
            H100,
            "all GPUs of a node are joined by NVLink or XGMI here",
        ),
    ],
)
def test_sources_that_disagree(
    tmp_path: Path, texts: tuple[str, ...], kind: str, words: str
) -> None:
    """With each other or with the hardware."""
    kind = kind or hardware(tmp_path)
    with pytest.raises(InputError) as failure:
        machine_of(tmp_path, HOSTS, *texts, hardware=kind)
    assert words in failure.value.problems[0].message


def test_nvlink_between_nodes_of_islands(tmp_path: Path) -> None:
    """Racks that share NVLink have no nodes that do not."""
    slurm = "BlockName=b1 Nodes=n[1-2]\nBlockName=b2 Nodes=n[3-4]\nBlockSizes=2\n"
    with pytest.raises(InputError) as failure:
        machine_of(tmp_path, slurm, node_xml(TORN), hardware=GB200)
    message = failure.value.problems[0].message
    assert "shares NVLink, the GPUs of a node do not" in message


def test_hosts_that_lost_links_or_gpus(tmp_path: Path) -> None:
    """Among hosts of two islands, those of smaller ones or fewer GPUs are left out."""
    text = labelled(
        {
            "n1": link_types(8, lambda a, b: (a < 4) == (b < 4)),
            "n2": link_types(8, lambda a, b: (a < 4) == (b < 4) and 7 not in (a, b)),
            "n3": link_types(6, lambda a, b: (a < 3) == (b < 3)),
            "n4": link_types(8, lambda *_: False),
        }
    )
    machine, notes = machine_of(tmp_path, text, hardware=H100)
    assert machine.node_names == ("n1",)
    assert "nodes left out, 3 XGMI islands: 1 (n2)" in notes
    assert "nodes left out, 6 GPUs where others have 8 in islands: 1 (n3)" in notes
    assert "nodes left out, no XGMI: 1 (n4)" in notes
    assert any("4 nodes, 2 islands, " in note for note in notes)
    # Uplinks are as wide as when the hosts were sound.
    assert machine.gpus_of_domain(1).tolist() == [32]


def test_hosts_that_only_others_list(tmp_path: Path) -> None:
    """They are taken for nodes like those that the islands are known of."""
    pairs = link_types(4, lambda a, b: a // 2 == b // 2)
    text = labelled({"n1": pairs, "n2": pairs})
    machine, _ = machine_of(tmp_path, HOSTS, text, hardware=H100)
    assert machine.gpus_of_node.tolist() == [4] * 4


TAIL = "\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n"
NEAR = (
    "\tGPU0\tGPU1\tNIC0\tNIC1" + TAIL + "GPU0\t X \tNV18\tPIX\tSYS\t0-7\t{0}\t\tN/A\n"
    "GPU1\tNV18\t X \tSYS\tPIX\t{2}\t{1}\t\tN/A\n"
    "NIC0\tPIX\tSYS\t X \tSYS\t\t\t\t\nNIC1\tSYS\tPIX\tSYS\t X \t\t\t\t\n"
    "\nNIC Legend:\n\n  NIC0: mlx5_0\n  NIC1: mlx5_1\n"
)


@pytest.mark.parametrize(
    ("text", "numa"),
    [
        (NEAR.format(0, 1, "8-15"), (0, 1)),
        (NEAR.format(0, 1, ""), (0, 1)),
        (NEAR.format(0, "N/A", "8-15"), ()),
        (NEAR.format(0, "0-1", "8-15"), ()),
        (NEAR.format(0, 1, "8-15").replace("\t", "  "), (0, 1)),
        # With blanks only, an empty cell does not show where it is.
        (NEAR.format(0, 1, "").replace("\t", "  "), ()),
    ],
)
def test_affinity_in_a_matrix(text: str, numa: tuple[int, ...]) -> None:
    """``nvidia-smi topo -m`` tells NUMA nodes by column, and NICs by its legend."""
    nics = (("mlx5_0",), ("mlx5_1",))
    assert read("topo-m", text, "f").affinity == Affinity(numa, nics)


def test_affinity_of_hosts() -> None:
    """Hosts that are alike tell it; where they differ it is not known."""
    one, other = NEAR.format(0, 1, "8-15"), NEAR.format(1, 0, "8-15")
    assert read("topo-m", labelled({"a": one, "b": one}), "f").affinity.numa == (0, 1)
    assert read("topo-m", labelled({"a": one, "b": other}), "f").affinity == Affinity()


@pytest.mark.parametrize(("nics", "known"), [(("a", "a"), (("a",),)), (("a", "b"), ())])
def test_nics_of_hosts_in_one_file(
    nics: tuple[str, str], known: tuple[tuple[str, ...], ...]
) -> None:
    """The NICs of another host are not near, though the file holds both."""
    cpus = "".join(
        f'<cpu numaid="0" host_hash="0x{host}">'
        f'<pci busid="0000:0{host}:00.0" class="0x030200"><gpu dev="0"/></pci></cpu>'
        f'<cpu numaid="1" host_hash="0x{host}"><nic><net name="{nic}"/></nic></cpu>'
        for host, nic in enumerate(nics)
    )
    affinity = read("nccl", f"<system>{cpus}</system>", "f").affinity
    assert affinity == Affinity((0,), known)
