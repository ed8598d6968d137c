"""The bound on heavy messages that cannot all stay in scale-up domains."""

import itertools
import random

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
from tests.solve.test_workloads import machine_of as racks_of


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


def test_two_that_send_to_the_same_ranks_share_a_domain_and_so_do_these():
    """One receiver is far from both, for 2 GB. One message alone allows 1 GB."""
    ends = zip(*itertools.product((0, 1), range(2, 10)), strict=True)
    job = job_of(10, traffic=with_traffic(*ends, [1e9] * 16))
    assert bound(Problem.of(machine_of([9, 9]), job)) == pytest.approx(2e9 / 50e9)


def test_nodes_of_a_launch_are_parted_where_least_is_sent():
    """Of three nodes of two ranks one is in another rack: the one that gets 1 GB."""
    traffic = with_traffic((3, 3, 1), (2, 0, 5), [1e9, 1e9, 2e9])
    job = job_of(6, "node-contiguous", traffic=traffic)
    value = bound(Problem.of(racks_of([2, 1], 2), job))
    assert value == pytest.approx(1e9 / 50e9, rel=1e-3)


def two_sides(seed):
    """Few ranks that send to, or receive from, the same others; sets of two in some."""
    draw = random.Random(seed)
    sizes = [draw.randint(1, 5) for _ in range(draw.randint(2, 3))]
    ranks = min(sum(sizes), 6)
    few = draw.randint(1, 3)
    every = itertools.product(range(few), range(few, ranks))
    chosen = [pair for pair in every if draw.random() < 0.9]
    chosen = [pair[:: draw.choice((1, 1, 1, -1))] for pair in chosen] or [(0, 1)]
    most = draw.choice((1, 1, 4))
    size = [draw.randint(1, most) * 1e9 for _ in chosen]
    waits = [draw.choice(("0us", "1ms")), draw.choice(("1ms", "50ms"))]
    machine = machine_of(sizes, waits=waits)
    traffic = with_traffic(*zip(*chosen, strict=True), size)
    return Problem.of(machine, job_of(ranks, traffic=traffic))


@pytest.mark.parametrize("case", [small_case, two_sides])
def test_no_placement_is_below_it(case):
    """Against every placement of tiny cases; it says something of some."""
    said = 0
    for seed in range(25):
        problem = case(seed)
        value = bound(problem)
        base = problem.model.step_on(best_of_problem(problem)).step_time_s
        assert value <= least(problem) * (1 + 1e-9), seed
        said += value > base * (1 + 1e-9)
    assert said > 0


@pytest.mark.slow
@pytest.mark.parametrize("case", [small_case, two_sides])
def test_no_placement_of_many_is_below_it(case):
    """The same of more cases."""
    for seed in range(1000, 1050):
        problem = case(seed)
        assert bound(problem) <= least(problem) * (1 + 1e-9), seed
