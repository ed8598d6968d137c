"""The bound on heavy messages that cannot all stay in scale-up domains."""

import pytest

from placer.solve.bounds.network.best_network import best_of_problem
from placer.solve.bounds.traffic.heavy_flows import least_of_heavy
from placer.solve.bounds.traffic.traffic import step_with
from placer.solve.problem.compiled import Problem
from placer.solve.run.budget import ENDLESS
from tests.solve.bounds.test_company import (
    least,
    machine_of,
    small_case,
    with_traffic,
)
from tests.solve.test_communicators import job_of


def bound(problem):
    network = best_of_problem(problem)
    seconds = least_of_heavy(network, problem.job.traffic, problem.params, ENDLESS)
    return step_with(problem.model, network, seconds)


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
        base = problem.model.step_on(best_of_problem(problem)).step_time_s
        assert value <= least(problem) * (1 + 1e-9), seed
        said += value > base * (1 + 1e-9)
    assert said > 0


@pytest.mark.slow
def test_no_placement_of_many_is_below_it():
    """The same of more cases."""
    for seed in range(1000, 1050):
        problem = small_case(seed)
        assert bound(problem) <= least(problem) * (1 + 1e-9), seed
