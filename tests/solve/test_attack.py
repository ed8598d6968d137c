"""No certificate of a tiny case of any sort is false."""

import random
from collections import Counter

import pytest

from tests.marks import slow
from tests.solve.attack import DRAWS, attack, faults
from tests.solve.attacked_cases import Case
from tests.solve.random_workloads import random_workload, three_levels

# What was false once, and the number of its case.
ONCE = {
    "every placement was tried, but a pin came home with its islands turned": 1_627,
    "whole tp groups leave GPUs of each node free: their sum is no room": 270,
    "flows between sets some of whose numbers no set has": 500_568,
    "islands held ranks 0 and 3: no run, and no other seat was tried": 700_018,
    "a group of one rank sends nothing; who asked who waits for it crashed": 2_000_036,
}
CRASHED = {
    "no rank has a part in what only the scorer prices: flows over named links": 60_562,
}


@pytest.mark.parametrize("draw", DRAWS)
@pytest.mark.parametrize("first", [0, *slow(range(10, 90, 10))])
def test_certificates(first, draw):
    """Bounds are at most the least of all placements, which "optimal" says it is.

    Of these cases each has the least of all, proved or not.
    """
    counts, false = attack(first, first + 10, draw)
    assert false == []
    assert counts["status optimal"]
    assert counts["not the least"] == 0


@pytest.mark.parametrize("name", ONCE)
def test_certificates_that_were_false_once(name):
    """And of the first and the fourth there is a placement, the best for the first."""
    counts, false = attack(ONCE[name], ONCE[name] + 1)
    assert false == []
    if ONCE[name] == 1_627:
        assert counts["not the least"] == 0
    if ONCE[name] == 700_018:
        assert counts["status optimal"] + counts["status feasible"] == 1


@pytest.mark.parametrize("name", CRASHED)
def test_what_crashed_once(name):
    """The compiled annealer read what is not there."""
    counts, false = attack(CRASHED[name], CRASHED[name] + 1, "unusual ")
    assert false == []
    assert counts


@pytest.mark.parametrize("seed", [*range(2), *slow(range(2, 30))])
@pytest.mark.parametrize("launcher", ["free", "node-contiguous"])
def test_small_workloads_are_optimal_and_bounds_below(launcher, seed):
    rng = random.Random(seed)
    sizes, gpus = rng.choice(((2, 2), (1, 2), (2, 1, 1))), rng.choice((1, 2, 3))
    machine = three_levels(sizes, gpus)
    job = random_workload(rng, launcher)
    while job.world_size > min(machine.num_gpus, 6):
        job = random_workload(rng, launcher)
    counts = Counter()
    assert [*faults(Case("workload", machine, job, "time"), counts)] == []
    assert counts["workload time"] + counts["infeasible"] == 1
    assert counts["not the least"] == 0
