"""Machines, jobs and answers for tests, as the library offers them."""

import pytest

import placer
from placer import testing


def test_racks_are_told_by_name_or_by_number():
    """Nodes are counted or listed by their GPUs, in racks of a name or none."""
    named = testing.racks({"a": 2, "b": [8, 7]})
    assert named.node_names == ("a01", "a02", "b01", "b02")
    assert named.gpus_of_node.tolist() == [4, 4, 8, 7]
    assert testing.racks([1, 2], gpus=8).node_names == ("r0n1", "r1n1", "r1n2")


def test_a_job_of_keys_is_that_of_a_file():
    """What a file could not say is told as it is of a file."""
    job = testing.job(tp=2, dp=4, weights={"tp": 1}, launcher="free")
    assert (job.world_size, job.launcher) == (8, "free")
    with pytest.raises(placer.InputError, match="tq"):
        testing.job(tq=2)


@pytest.mark.parametrize("launcher", ["free", "node-contiguous"])
def test_the_least_is_what_a_search_proves(launcher):
    """Of all placements, in racks of nodes of several sizes; of none it is infinite."""
    machine = testing.racks([[2, 3], [1, 2]], oversubscription=2)
    job = testing.job(tp=3, dp=2, weights={"tp": 9, "dp": 1}, launcher=launcher)
    found = placer.place(machine, job)
    assert found.status == "optimal"
    assert found.plan.score["hop_cost"] == testing.least(machine, job)
    full = testing.racks([1], gpus=1)
    assert list(testing.placements(full, job)) == []
    assert testing.least(full, job) == float("inf")


@pytest.mark.parametrize(
    "more", [{"rules": {"at_most": {"rack": 1}}}, {"even": {"dp": "rack"}}]
)
def test_what_the_loops_do_not_know_is_refused(more):
    """A least of more placements than the job allows would fail a right search."""
    machine = testing.racks([1, 1], gpus=2)
    job = testing.job(dp=2, weights={"dp": 1}, launcher="free", **more)
    with pytest.raises(NotImplementedError, match="no rules"):
        testing.least(machine, job)
