"""Moves and cost against every placement that is left after a random failure."""

import random
from dataclasses import replace

import numpy as np
import pytest

from placer.base.errors import InfeasibleError
from placer.placement.build import build_plan
from placer.placement.check import violations
from placer.placement.placement import Placement
from placer.placement.previous import PreviousPlan
from placer.solve.problem.compiled import Problem
from placer.solve.replace import Required, replaced
from placer.solve.run.budget import Budget
from tests.solve import oracle
from tests.solve.random_cases import random_job, random_machine

MOST_PLACEMENTS = 30_000
COSTS = {"time": oracle.step_time, "hop-cost": oracle.hop_cost}


def random_failure(seed, objective):
    """What is left, the job, its plan, and the least cost for each number of moves.

    Of all placements on what is left; None where there is no plan that could fail.
    """
    rng = random.Random(f"{seed} {objective} failure")
    world = rng.choice((3, 4, 4, 5, 6))
    topology = random_machine(rng, world + rng.choice((2, 3, 4)), 5, (1, 2, 3))
    job = random_job(rng, world, topology, objective)
    if rng.random() < 0.7:
        job = replace(job, launcher="free")
    if topology.num_nodes**world > MOST_PLACEMENTS:
        return None
    legal = oracle.legal_placements(topology, job)
    if not legal:
        return None
    cost = COSTS[objective]
    tried = rng.sample(legal, min(len(legal), 8))
    old = min(tried, key=lambda nodes: cost(topology, job, nodes))
    used = sorted(set(old))
    failed = rng.sample(used, 1 if len(used) < 3 else rng.choice((1, 1, 2)))
    left = [node for node in range(topology.num_nodes) if node not in failed]
    if not left:
        return None
    plan = build_plan(topology, job, Placement.on_nodes(topology, np.array(old)))
    after = [nodes for nodes in legal if not set(nodes) & set(failed)]
    front = {}
    for nodes in after:
        moves = sum(a != b for a, b in zip(nodes, old, strict=True))
        value = cost(topology, job, nodes)
        front[moves] = min(value, front.get(moves, float("inf")))
    return topology.select(np.array(left)), job, plan, front


ROUNDING = 1 + 1e-9


def check(seed, objective):
    """(1 when the moves are the fewest, cases) after all promises are checked."""
    case = random_failure(seed, objective)
    if case is None:
        return 0, 0
    left, job, plan, front = case
    within = (0.0, 0.001, 0.05, 0.3)[seed % 4]
    try:
        problem = Problem.of(left, job, objective)
        previous = PreviousPlan(plan, left)
        found = replaced(problem, previous, Required(within), Budget(60.0))
    except InfeasibleError:
        assert front == {}
        return 0, 0
    assert violations(found.solution.placement, left, job) == []
    for point in found.points:
        least = min(cost for moves, cost in front.items() if moves <= point.moves)
        assert point.value * ROUNDING >= least
    cheapest = min(front.values())
    assert found.chosen.value <= max(found.budget, cheapest) * ROUNDING
    allowed = max(found.budget, found.chosen.value) * ROUNDING
    fewest = min(moves for moves, cost in front.items() if cost <= allowed)
    assert found.fewest.moves <= fewest <= found.chosen.moves
    return int(found.chosen.moves == fewest), 1


@pytest.mark.parametrize(
    ("objective", "seeds"),
    [
        ("hop-cost", [1, 3, 12, 14, 19, 21, 28]),
        ("time", [0, 9, 11, 13, 16, 25]),
        pytest.param("hop-cost", range(70), marks=pytest.mark.slow),
        pytest.param("time", range(32), marks=pytest.mark.slow),
    ],
)
def test_bound_and_curve(objective, seeds):
    """The bound is at most the fewest moves, and no point lies below the true curve.

    Mostly the moves are the fewest there are.
    """
    results = [check(seed, objective) for seed in seeds]
    equal, cases = map(sum, zip(*results, strict=True))
    assert cases > 5
    assert equal > 0.8 * cases
