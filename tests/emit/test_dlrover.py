"""DLRover's master makes the plan's order of what is emitted for it."""

import json
from random import Random

import pytest

from placer.emit import emit
from tests.emit.readback import plan_of


def reordered(nodes, group):
    """Its rule ``ep_dp_pp``: groups by their text, nodes of one by their own rank."""
    return sorted(nodes, key=lambda node: (group.get(node, ""), nodes.index(node)))


@pytest.mark.parametrize("count", [1, 4, 10, 11, 101])
def test_any_order_becomes_the_plan_s(count):
    """However the pods are numbered, also where node ranks differ in digits."""
    hosts = [f"n{k}" for k in range(count)]
    Random(count).shuffle(hosts)
    plan = plan_of([(host, gpu) for host in hosts for gpu in range(2)])
    group = json.loads(emit(plan, "dlrover"))
    assert reordered(sorted(hosts), group) == hosts
