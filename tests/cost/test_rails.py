"""Machines whose rails cannot be joined."""

import pytest

from placer.base.errors import InputError
from placer.topology.read import parse_topology

MACHINE = """\
format: placer/topology
version: 1
name: rails
tiers:
  - {name: node, size: 4, bandwidth: 450GB/s, latency: 1us, scale_up: true}
  - {name: leaf, bandwidth: 50GB/s, latency: 5us, rails: true}
  - {name: cluster, bandwidth: 50GB/s, latency: 8us}
layout: "cluster:1 leaf:2 node:4"
"""


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("latency: 1us, scale_up: true", "latency: 1us", "cannot reach other rails"),
        ("scale_up: true}", "scale_up: true, rails: true}", "around nodes has rails"),
        ("size: 4", "size: 64", "64 rails"),
    ],
)
def test_rails_that_cannot_be(old, new, words):
    """A fabric of rails alone needs NVLink in the node to join them."""
    with pytest.raises(InputError, match=words):
        parse_topology(MACHINE.replace(old, new), "m.yaml")
