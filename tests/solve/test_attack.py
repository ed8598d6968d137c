"""No certificate of a tiny case of any sort is false, nor is a better one missed."""

from collections import Counter

import pytest

from tests.marks import slow
from tests.solve.attack import DRAWS, attack, false_seats, faults
from tests.solve.attacked_cases import Case
from tests.solve.every_placement import Sorts, every_legal
from tests.solve.random_cases import random_case
from tests.solve.rules.draws import budget_case, ruled_case
from tests.solve.solving import solve

# What was false once: the number of its case, and the draw that makes it.
ONCE = {
    "every placement was tried, but a pin came home with its islands turned": (1_627,),
    "whole tp groups leave GPUs of each node free: their sum is no room": (270,),
    "flows between sets some of whose numbers no set has": (500_568,),
    "islands held ranks 0 and 3: no run, and no other seat was tried": (700_018,),
    "a group of one rank sends nothing; who asked who waits crashed": (2_000_036,),
    "sets of two where each rack has room for one: seated in two racks": (152_145,),
    "flows over named links: the annealer read what is not there": (60_562, "unusual "),
    "free ranks on islands turned round: two on a GPU": (152_895, "unusual "),
    "one group whole counted for more than two in parts": (153_881, "unusual "),
}


@pytest.mark.parametrize("draw", DRAWS)
@pytest.mark.parametrize("first", [0, *slow(range(10, 90, 10))])
def test_certificates(first, draw):
    """Bounds are at most the least of all placements, which "optimal" says it is.

    Of these cases each has the least of all, mostly proved.
    """
    counts, false = attack(first, first + 10, draw)
    assert false == []
    assert counts["status optimal"]
    assert first or not counts["status feasible"]
    assert counts["not the least"] == 0


@pytest.mark.parametrize("name", ONCE)
def test_certificates_that_were_false_once(name):
    """And of the first and the fourth there is a placement, the best for the first."""
    first, *draw = ONCE[name]
    counts, false = attack(first, first + 1, *draw)
    assert false == []
    assert counts
    if first == 1_627:
        assert counts["not the least"] == 0
    if first == 700_018:
        assert counts["status optimal"] + counts["status feasible"] == 1


# Sorts of `random_case`, and how their jobs come to rules.
LARGER = {"plain": random_case, "rules": ruled_case, "budgets": budget_case}


@pytest.mark.parametrize("objective", ["time", "hop-cost"])
@pytest.mark.parametrize("seed", [0, *slow(range(1, 8))])
@pytest.mark.parametrize("sort", ["large", "runs"])
@pytest.mark.parametrize("draw", LARGER)
def test_larger_jobs(draw, sort, seed, objective):
    """Nor of jobs of 6 to 8 ranks, and of node-contiguous launches of 9 to 24."""
    counts = Counter()
    case = Case(sort, *LARGER[draw](seed, objective, sort), objective)
    assert [*faults(case, counts)] == []
    assert counts["not the least"] == 0
    assert counts["status optimal"] + counts["infeasible"]


@pytest.mark.parametrize("first", [0, *slow(range(100, 1000, 100))])
def test_seats_keep_every_rule(first):
    """There are some where tiny jobs have a legal placement, and none elsewhere."""
    for seed in range(first, first + 100):
        topology, job = ruled_case(seed, "hop-cost", "small")
        placements = Sorts(topology).one_of_each(every_legal(topology, job))
        case = Case("small", topology, job, "hop-cost")
        assert [*false_seats(case, placements)] == [], seed


def test_one_part():
    """A job whose replicas, kept whole, are one part leaves nothing to polish."""
    assert solve(*ruled_case(573, "hop-cost", "small")).status == "optimal"
