"""Machines whose nodes hold islands: tiers, figures, and what GPUs are near to."""

import pytest

from placer.formats.machines.islands import between_islands
from placer.report.machine_text import draw
from placer.topology.affinity import Affinity
from tests.readers.cases import H100, HOSTS, machine_of, node_xml, ring

TORN = {**ring(0, 2, 3, 5), **ring(1, 4, 6, 7)}
MEMBERS = (0, 2, 3, 5, 1, 4, 6, 7)


def two_sockets(links, pci):
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


def test_islands_become_a_tier(tmp_path):
    """It has the figures of the hardware's node; its members are the launcher's."""
    machine, notes = machine_of(tmp_path, HOSTS, node_xml(TORN), hardware=H100)
    seen = machine.by_island
    assert [tier.name for tier in seen.tiers] == ["island", "node", "cluster"]
    assert [tier.scale_up for tier in seen.tiers] == [True, False, False]
    island, node, cluster = seen.tiers
    assert (island.bandwidth, island.latency) == (450e9, 1e-6)
    assert (node.bandwidth, node.latency) == (cluster.bandwidth, cluster.latency)
    assert machine.islands.members == MEMBERS
    assert machine.index_of_gpu[:8].tolist() == [*MEMBERS]
    assert any("4 nodes, 8 islands, 32 GPUs" in note for note in notes)
    assert any("as fast as cluster of dgx-h100-4x8" in note for note in notes)
    assert "island: GPU[0,2-3,5]; GPU[1,4,6-7]" in draw(machine)


def test_pcie_between_islands(tmp_path):
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
        (32.0, 63.015, 48.0),
        (64.0, 121.0, 96.0),
    ],
)
def test_generations_of_pcie(speed, gigabytes, counted):
    """Figures of the generations 1 to 6."""
    paths = [(0, gpu) for gpu in range(1, 5)]
    lanes = dict.fromkeys(range(1, 5), (speed, 16))
    found = between_islands(paths, [], lanes, [(0, 1), (2, 3)])
    assert found is not None
    assert found.bandwidth / 1e9 == pytest.approx(gigabytes, rel=1e-4)
    assert found.bandwidth * found.efficiency / 1e9 == pytest.approx(counted)
    assert found.oversubscription == 1
