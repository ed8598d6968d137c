"""The bound on heavy messages that cannot all stay in scale-up domains."""

import pytest

from placer.solve.bounds.heavy_flows import heavy_flows
from placer.solve.bounds.problem_transfers import ideal_of
from placer.solve.problem.compiled import Problem
from tests.solve.bounds.test_company import (
    least,
    machine_of,
    small_case,
    with_traffic,
)
from tests.solve.test_communicators import job_of


def bound(problem):
    proof = heavy_flows(problem.model, ideal_of(problem, problem.forced_block))
    assert proof is not None
    return proof.value


@pytest.mark.parametrize(("sizes", "cut"), [([3, 3, 3], 0), ([3, 3, 2, 1], 1)])
def test_one_of_three_rings_is_cut_where_two_fit(sizes, cut):
    """The cheapest of them, and there its cheapest message."""
    ends = (0, 1, 2, 3, 4, 5, 6, 7, 8), (1, 2, 0, 4, 5, 3, 7, 8, 6)
    size = [9e9, 9e9, 9e9, 7e9, 7e9, 7e9, 5e9, 8e9, 6e9]
    job = job_of(9, traffic=with_traffic(*ends, size))
    problem = Problem.of(machine_of(sizes), job)
    # Without its message of 5 GB the third ring still needs to be whole.
    assert bound(problem) == pytest.approx(6e9 / 50e9 if cut else 9e9 / 400e9)


def test_no_placement_is_below_it():
    """Against every placement of tiny cases; it says something of some."""
    said = 0
    for seed in range(25):
        problem = small_case(seed)
        value = bound(problem)
        base = problem.model.step_on(
            ideal_of(problem, problem.forced_block)
        ).step_time_s
        assert value <= least(problem) * (1 + 1e-9), seed
        said += value > base * (1 + 1e-9)
    assert said > 0


@pytest.mark.slow
def test_no_placement_of_many_is_below_it():
    """The same of more cases."""
    for seed in range(1000, 1100):
        problem = small_case(seed)
        assert bound(problem) <= least(problem) * (1 + 1e-9), seed
