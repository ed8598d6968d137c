"""Moves and cost against every placement that is left after a failure."""

from __future__ import annotations

import pytest

from placer.base.errors import InfeasibleError
from placer.placement.check import violations
from placer.placement.previous import PreviousPlan
from placer.solve.problem.compiled import Problem
from placer.solve.replace.search import Terms, replaced
from placer.solve.run.budget import Budget
from tests.solve.replace.cases import random_failure

ROUNDING = 1 + 1e-9


def check(seed: int, objective: str) -> tuple[int, int]:
    """(1 when the moves are the fewest, cases) after all promises are checked."""
    case = random_failure(seed, objective)
    if case is None:
        return 0, 0
    within = (0.0, 0.001, 0.05, 0.3)[seed % 4]
    try:
        problem = Problem.of(case.left, case.job, objective)
        previous = PreviousPlan(case.plan, case.left)
        found = replaced(problem, previous, Terms(within), Budget(60.0))
    except InfeasibleError:
        assert case.legal == []
        return 0, 0
    front = case.front(objective)
    assert violations(found.solution.placement, case.left, case.job) == []
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
        ("hop-cost", range(30)),
        ("time", range(12)),
        pytest.param("hop-cost", range(30, 70), marks=pytest.mark.slow),
        pytest.param("time", range(12, 32), marks=pytest.mark.slow),
    ],
)
def test_bound_and_curve(objective: str, seeds: range) -> None:
    """The bound is at most the fewest moves, and no point lies below the true curve.

    Mostly the moves are the fewest there are.
    """
    results = [check(seed, objective) for seed in seeds]
    equal, cases = map(sum, zip(*results, strict=True))
    assert cases > 5
    assert equal > 0.8 * cases
