"""What cannot be placed, why, and the smallest relaxation that helps."""

import random
from dataclasses import replace
from itertools import product

import pytest

from placer import testing
from placer.base.errors import InfeasibleError
from placer.solve.rules.conflict import smallest_relaxation
from placer.testing.oracle import free_placements
from tests.solve.random_cases import machine_of, random_case, random_tiers
from tests.solve.solving import solve
from tests.texts import table


def racks(*sizes):
    """A machine of racks, each with the given GPUs of its nodes."""
    gpus = [count for rack in sizes for count in rack]
    rack_of = [rack for rack, nodes in enumerate(sizes) for _ in nodes]
    return machine_of(
        gpus, [rack_of, [0] * len(gpus)], random_tiers(random.Random(0), 3)
    )


def message_of(topology, job):
    """What the search says when it finds no placement."""
    with pytest.raises(InfeasibleError) as caught:
        solve(topology, job)
    return str(caught.value)


def fits(topology, job):
    """Whether a placement exists, by trying all."""
    return any(True for _ in free_placements(topology, job))


@pytest.mark.parametrize("seed", range(30))
def test_relaxation_fits_and_is_the_smallest(seed):
    """The relaxed job fits, and no job that gives up fewer tiers does."""
    topology, job = random_case(seed, "hop-cost")
    job = replace(job, launcher="free")
    tiers = [tier.name for tier in topology.tiers]
    found = smallest_relaxation(topology, job)
    given_up = {}
    levels = [range(tiers.index(tier), len(tiers)) for tier in job.require.values()]
    for choice in product(*levels):
        require = dict(zip(job.require, (tiers[t] for t in choice), strict=True))
        if fits(topology, replace(job, require=require)):
            given_up[tuple(require.items())] = sum(choice)
    if found is None:
        assert not given_up
    else:
        assert given_up[tuple(found.require.items())] == min(given_up.values())


@pytest.mark.parametrize(*table("solve/infeasible.yaml", "what_does_not_fit"))
def test_what_does_not_fit_is_counted(sizes, degrees, require, told):
    """Level by level: what is needed, what fits, and what helps.

    Three nodes more must not be used.
    """
    topology = replace(
        racks(*sizes), unavailable={"x1": "xid 79", "x2": "xid 79", "x3": "fan"}
    )
    given = {"weights": {"tp": 1, "dp": 1}, "require": require, **degrees}
    job = testing.job(launcher="free", **given)
    assert message_of(topology, job) == told


def test_a_launcher_that_stands_in_the_way_is_named():
    """Where only consecutive ranks do not fit, a free launch is the hint."""
    topology = machine_of([2, 2, 1], [[0, 0, 0]], random_tiers(random.Random(0), 2))
    ends = {"name": "ends", "collective": "all_reduce", "bytes": 1, "ranks": [[0, 4]]}
    job = testing.job(dp=5, weights={"dp": 1}, require={"ends": "node"}, groups=[ends])
    assert fits(topology, replace(job, launcher="free"))
    assert "use launcher: {ranks: free}" in message_of(topology, job)


def test_nodes_of_several_sizes_hold_ranks_in_order():
    """No equal blocks fit, yet without the requirement every GPU can be used."""
    job = testing.job(tp=8, dp=3, weights={"tp": 1, "dp": 1}, require={"tp": "node"})
    machine = racks((8, 7), (8, 7))
    last = machine.tiers[-1].name
    assert f"it fits with tp={last} instead of tp=node" in message_of(machine, job)
    assert solve(machine, replace(job, require={"tp": last})).value > 0
