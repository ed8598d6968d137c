"""Failures on the fragmented instances of the placement benchmark."""

import pytest

import placer
from benchmarks.replace import failures, trays
from placer.placement.check import violations

pytestmark = pytest.mark.slow


def test_eight_failed_trays():
    """Within 0.1 % of the cheapest placement at most twice as many move as are lost."""
    topology, job = trays("B")
    plan = placer.place(topology, job).plan
    failed = failures(plan, "B", 8, 0)
    found = placer.replace(plan, topology, job, failed=failed)
    about = found.plan.previous
    assert about["lost"] == 32
    assert about["fewest"] <= about["moved"] <= 2 * about["fewest"]
    assert violations(found.plan, topology, job) == []
    left = [name for name in topology.node_names if name not in set(failed)]
    fresh = placer.place(topology, job, hosts=left)
    assert found.bound["value"] <= 1.001 * fresh.bound["value"]
