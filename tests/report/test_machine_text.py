"""The drawing of a machine."""

from __future__ import annotations

import numpy as np
import pytest

from placer.report.machine_text import draw
from placer.topology.read import parse_topology, read_topology


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        (
            "block:16 rack:8 node:18 gpu:4",
            "cluster: 16 blocks x 8 racks x 18 nodes x 4 GPUs",
        ),
        ("node:1 gpu:1", "cluster: 1 node x 1 GPU"),
        ("switch:2 box:3 gpu:8", "cluster: 2 switches x 3 boxes x 8 GPUs"),
    ],
)
def test_regular_machine_is_one_line(text, tree):
    """A regular machine's tree is folded into one line."""
    assert tree in draw(read_topology(text)).splitlines()


def test_table_has_a_row_a_tier():
    """Every tier has a row with its domains, their GPUs, bandwidth and latency."""
    lines = draw(read_topology("rack:2 node:3 gpu:4")).splitlines()
    rows = {line.split()[0]: line.split()[1:] for line in lines[3:7]}
    assert rows["cluster"] == [
        "1",
        "24",
        "50",
        "GB/s",
        "5",
        "us",
        "1",
        "1",
        "scale-out",
    ]
    assert rows["rack"] == ["2", "12", "50", "GB/s", "5", "us", "1", "1", "scale-out"]
    assert rows["node"] == ["6", "4", "450", "GB/s", "1", "us", "1", "1", "scale-up"]


def test_uneven_machine_lists_its_sizes():
    """Uneven tiers are listed by capacity, the commonest first."""
    machine = read_topology("rack:4 node:3 gpu:4")
    lines = draw(machine.select(np.arange(10))).splitlines()
    assert "rack: 3 of 12 GPUs, 1 of 4 GPUs" in lines
    assert not any(line.startswith("node:") for line in lines)


def test_many_sizes_are_cut():
    """More sizes than fit a line are counted together."""
    machine = read_topology("rack:12 node:12 gpu:1")
    kept = [12 * rack + node for rack in range(12) for node in range(rack + 1)]
    text = draw(machine.select(np.array(kept)))
    assert "1 of 5 GPUs, 4 of 4 other sizes" in text


def test_equal_sizes_of_different_parts():
    """Racks of as many GPUs but another number of nodes are not called regular."""
    machine = parse_topology(
        """\
format: placer/topology
version: 1
name: odd
description: two kinds of rack
tiers:
  - {name: node, size: 8, bandwidth: 1GB/s}
  - {name: rack, bandwidth: 1GB/s}
  - {name: cluster, bandwidth: 1GB/s}
nodes:
  - {names: a1, rack: r1}
  - {names: "b[1-2]", rack: r2, gpus: 4, bandwidth_factor: 0.5}
  - {names: "c[1-3]", rack: r3}
unavailable: {"c[1-3]": "no power"}
""",
        "odd.yaml",
    )
    lines = draw(machine).splitlines()
    assert lines[:3] == ["odd", "two kinds of rack", "3 nodes, 16 GPUs"]
    assert "node: 2 of 4 GPUs, 1 of 8 GPUs" in lines
    assert "2 nodes with a bandwidth factor below 1" in lines
    assert "left out, no power: c[1-3]" in lines
