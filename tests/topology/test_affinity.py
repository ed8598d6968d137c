"""What the GPUs of a node are near to: read, kept, shown, and of no other effect."""

from __future__ import annotations

import json

from placer.report.machine_text import draw
from placer.topology.affinity import Affinity
from placer.topology.compact import compact_document
from placer.topology.read import parse_topology
from placer.topology.write import to_document

PLAIN = """\
format: placer/topology
version: 1
name: near
tiers:
  - {name: node, size: 4, bandwidth: 450GB/s, scale_up: true}
  - {name: cluster, bandwidth: 50GB/s}
layout: "cluster:1 node:2"
"""
NEAR = PLAIN + "affinity: {numa: [0, 0, 1, 1], nics: [[a, b], [a, b], [c], []]}\n"


def test_affinity_is_kept_and_shown() -> None:
    """Both ways to write a machine keep it; the drawing names the GPUs."""
    machine = parse_topology(NEAR, "m.yaml")
    assert machine.affinity == Affinity(
        (0, 0, 1, 1), (("a", "b"), ("a", "b"), ("c",), ())
    )
    for text in map(json.dumps, (to_document(machine), compact_document(machine))):
        assert parse_topology(text, "again").affinity == machine.affinity
    lines = draw(machine).splitlines()
    assert "NUMA 0: GPU[0-1]; NUMA 1: GPU[2-3]" in lines
    assert "NIC a b: GPU[0-1]; NIC c: GPU2; no NIC: GPU3" in lines


def test_affinity_changes_no_digest() -> None:
    """A plan stays good when only this is added."""
    known, plain = (parse_topology(text, "m.yaml") for text in (NEAR, PLAIN))
    assert known.sha256 == plain.sha256


def test_nodes_with_fewer_gpus_lose_it() -> None:
    """Where no node has all GPUs, what is written has no list for them."""
    text = NEAR.replace('layout: "cluster:1 node:2"', "nodes: [{names: a, gpus: 3}]")
    machine = parse_topology(text, "m.yaml")
    again = parse_topology(json.dumps(compact_document(machine)), "again")
    assert again.sha256 == machine.sha256
    assert again.affinity == Affinity()
