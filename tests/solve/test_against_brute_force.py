"""Small jobs: the answer is the best of all placements, and the bounds hold."""

import pytest

from placer.base.errors import InfeasibleError
from placer.placement.check import violations
from tests.cost.random_cases import unequal
from tests.marks import slow
from tests.solve.oracle import allowed_placements, hop_cost, least, step_time
from tests.solve.random_cases import random_case
from tests.solve.rules.draws import budget_case, ruled_case
from tests.solve.solving import solve

ROUNDING = 1e-9
# Placements above which a proof by trying all may be given up, without rules and with.
MANY, FEW = 5_000, 100
CHUNK = 5  # cases of one test: a failure names its seed
COSTS = {"time": step_time, "hop-cost": hop_cost}


def unequal_case(seed, objective, sort):
    """Hosts of several speeds, and links between domains."""
    topology, job = random_case(seed, objective, sort)
    return unequal(topology, seed), job


DRAWS = {
    "plain": random_case,
    "unequal": unequal_case,
    "rules": ruled_case,
    "budgets": budget_case,
}


def compare(what, seed, objective, sort="small"):
    """Solve one case and compare with the best of all placements that it allows."""
    topology, job = DRAWS[what](seed, objective, sort)
    case = f"{what} {objective} {seed} {sort} {job.rules}"
    legal = allowed_placements(topology, job)
    if not legal:
        with pytest.raises(InfeasibleError):
            solve(topology, job, objective=objective)
        return
    best = least(topology, job, objective, legal)
    found = solve(topology, job, objective=objective)
    nodes = tuple(topology.node_of_gpu[found.placement.gpu_of_rank].tolist())
    assert violations(found.placement, topology, job) == [], case
    assert nodes in set(legal), case
    known = COSTS[objective](topology, job, nodes)
    assert found.value == pytest.approx(known, rel=ROUNDING), case
    assert found.lower_bound <= best * (1 + ROUNDING), case
    if job.rules and found.status != "optimal":
        assert len(legal) > FEW, case
        return
    assert found.value == pytest.approx(best, rel=ROUNDING), case
    assert found.status == "optimal" or len(legal) > MANY, case


@pytest.mark.parametrize("objective", COSTS)
@pytest.mark.parametrize("first", [0, CHUNK, *slow(range(2 * CHUNK, 50, CHUNK))])
@pytest.mark.parametrize("what", DRAWS)
def test_small_jobs(what, first, objective):
    """A job of 3 to 6 ranks gets the optimum, a proof of it, and no false bound.

    Under rules it is placed just when some placement keeps them, with no more hosts to
    avoid than must be.
    """
    for seed in range(first, first + CHUNK):
        compare(what, seed, objective)


@pytest.mark.parametrize("objective", COSTS)
@pytest.mark.parametrize("seed", [0, *slow(range(1, 5))])
@pytest.mark.parametrize("sort", ["large", "runs"])
@pytest.mark.parametrize("what", ["plain", *slow(["rules", "budgets"])])
def test_larger_jobs(what, sort, seed, objective):
    """So does one of 6 to 8 ranks, and a node-contiguous launch of 9 to 24."""
    compare(what, seed, objective, sort)


def test_one_part():
    """A job whose replicas, kept whole, are one part leaves nothing to polish."""
    compare("rules", 573, "hop-cost")
