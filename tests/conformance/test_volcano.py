"""Volcano issue 4899: a thousand pods, a hundred domains, fast either way."""

from __future__ import annotations

import pytest

from placer.base.errors import InfeasibleError
from tests.conformance.machines import domains_of, job, machine, ranks_in
from tests.solve.solving import solve


def test_a_hundred_subgroups_fill_a_hundred_domains() -> None:
    """Each subgroup of 10 one-node pods gets a domain of its own, with a proof."""
    hosts = domains_of({f"d{i:03d}": [1] * 10 for i in range(100)})
    topology = machine(("node", "domain", "cluster"), hosts)
    found = solve(topology, job({"tp": "domain"}, tp=10, dp=100))
    assert set(ranks_in(topology, found.placement, "domain").values()) == {10}
    assert found.status == "optimal"


def test_a_node_in_the_wrong_place_is_one_subgroup_too_many() -> None:
    """With a node of one domain moved to a domain of its own only 99 fit."""
    sizes = {f"d{i:03d}": [1] * 10 for i in range(100)}
    sizes["d042"], sizes["d100"] = [1] * 9, [1]
    topology = machine(("node", "domain", "cluster"), domains_of(sizes))
    with pytest.raises(InfeasibleError) as caught:
        solve(topology, job({"tp": "domain"}, tp=10, dp=100))
    assert "100 such parts are needed, 99 fit" in str(caught.value)


def test_a_node_down_is_a_gpu_too_few() -> None:
    """With a node down there are 999 places for 1,000 pods."""
    hosts = domains_of({f"d{i:03d}": [1] * 10 for i in range(100)})
    topology = machine(("node", "domain", "cluster"), hosts, down=["n421"])
    with pytest.raises(InfeasibleError) as caught:
        solve(topology, job({"tp": "domain"}, tp=10, dp=100))
    assert "needs 1,000 GPUs" in str(caught.value)
    assert "999 usable" in str(caught.value)
