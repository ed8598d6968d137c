"""Placements annealed on the exact step."""

from __future__ import annotations

import random
from functools import cache
from itertools import count

import numpy as np
import pytest

from placer.solve.annealing.annealed_step import annealed_step
from placer.solve.annealing.units import Units
from placer.solve.annealing.walks import Walks
from placer.solve.problem.compiled import Problem
from placer.solve.problem.starts import starts
from placer.solve.run.budget import Budget
from placer.solve.run.incumbent import Incumbent
from placer.solve.score.kernel import is_built
from placer.solve.search import solve
from tests.solve.machines import fragmented, matching_job

pytestmark = pytest.mark.skipif(not is_built(), reason="the compiled part is not built")


@cache
def problem_of(number: int) -> Problem:
    """A fragmented machine and a job without requirements whose units fit."""
    for seed in count(1_000 * number):
        rng = random.Random(f"annealed {seed}")
        machine = fragmented(rng)
        problem = Problem.of(machine, matching_job(rng, machine, "time"), "time", seed)
        leaves = problem.model.fabric.can_leave_scale_up
        if leaves and not problem.job.require and Units.of(problem) is not None:
            return problem
    raise AssertionError


def begun(problem: Problem, workers: int = 1) -> Incumbent:
    """A search that knows the orders alone."""
    incumbent = Incumbent(problem, Budget(1e6, workers=workers))
    incumbent.offer_all(starts(problem))
    return incumbent


@pytest.mark.parametrize("number", range(6))
def test_walks_keep_what_the_scorer_says(number: int) -> None:
    """The best of a walk is a placement, and costs what the walk says."""
    problem = problem_of(number)
    units = Units.of(problem)
    assert units is not None
    walks = Walks(units, 3)
    before = walks.load(next(iter(starts(problem)))[1])
    walks.walk(4_000, 1.0, Budget(1e6))
    value, _ = walks.best
    placed = walks.gpu_of_rank
    assert value <= before
    assert len(set(placed.tolist())) == problem.job.world_size
    assert problem.goal.value(placed) == pytest.approx(value, rel=1e-9)
    assert problem.allows(placed)


@pytest.mark.slow
def test_walks_find_what_constructions_do() -> None:
    """From orders of hosts walks come within a percent of the whole search."""
    for problem in map(problem_of, range(3)):
        incumbent = begun(problem)
        annealed_step(problem, incumbent, incumbent.budget)
        assert incumbent.value <= 1.01 * solve(problem, Budget(20.0)).value


def test_threads_change_nothing() -> None:
    """One thread and two find the same placement."""
    problem = problem_of(0)
    found = []
    for workers in (1, 2):
        incumbent = begun(problem, workers)
        annealed_step(problem, incumbent, incumbent.budget)
        found.append(incumbent.best)
    assert np.array_equal(*found)


def test_a_walk_ends_in_time() -> None:
    """With no time left nothing is annealed, and the search knows that it was cut."""
    problem = problem_of(0)
    incumbent = Incumbent(problem, Budget(0.0))
    for name, placed in starts(problem):
        incumbent.offer(name, placed)
    annealed_step(problem, incumbent, incumbent.budget)
    assert incumbent.cut_short
