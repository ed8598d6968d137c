"""Jobs whose groups and traffic are the user's own are placed well."""

import pytest

import placer
from placer import testing
from tests.conformance.test_pipette import pipelines, racks
from tests.solve.solving import solve


def job_of(ranks, launcher="free", **keys):
    """A job of so many ranks with groups or traffic."""
    return testing.job("own", launcher=launcher, dp=ranks, **keys)


def test_distant_pairs_share_nodes():
    """Each pair, rank r beside rank r + half, is on one node, which is the bound."""
    machine = placer.read_topology("rack:4 node:8 gpu:4")
    rows = [[rank, rank + 64] for rank in range(64)]
    pairs = {"name": "pairs", "collective": "send_recv", "bytes": "2GB", "ranks": rows}
    found = solve(machine, job_of(128, groups=[pairs]))
    assert found.value == pytest.approx(4.4454e-3, rel=1e-4)
    assert found.lower_bound == pytest.approx(found.value)


def test_hosts_without_nvlink_are_annealed():
    """Nodes of one GPU have no domain to stay in, and yet racks to be in."""
    machine = racks([7, 6, 5, 4])
    found = solve(machine, pipelines(3, 7))
    assert found.moves
