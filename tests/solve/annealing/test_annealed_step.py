"""Placements annealed on the exact step."""

from __future__ import annotations

import random
from itertools import count
from typing import TYPE_CHECKING

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
from tests.solve.machines import fragmented, matching_job

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.skipif(not is_built(), reason="the compiled part is not built")


def problems(wanted: int) -> Iterator[Problem]:
    """Fragmented machines and jobs without requirements whose units fit."""
    found = 0
    for seed in count():
        rng = random.Random(f"annealed {seed}")
        machine = fragmented(rng)
        problem = Problem.of(machine, matching_job(rng, machine, "time"), "time", seed)
        if problem.job.require or Units.of(problem) is None:
            continue
        if not problem.model.fabric.can_leave_scale_up:
            continue
        yield problem
        found += 1
        if found == wanted:
            return


def begun(problem: Problem, workers: int = 1) -> Incumbent:
    """A search that knows the orders alone."""
    incumbent = Incumbent(problem, Budget(1e6, workers=workers))
    incumbent.offer_all(starts(problem))
    return incumbent


@pytest.mark.parametrize("problem", problems(6))
def test_walks_keep_what_the_scorer_says(problem: Problem) -> None:
    """The best of a walk is a placement, and costs what the walk says."""
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


def test_walks_find_what_constructions_do() -> None:
    """From the given order of hosts a walk comes within a percent of the whole search."""
    from tests.solve.solving import solve

    for problem in problems(3):
        incumbent = begun(problem)
        annealed_step(problem, incumbent, incumbent.budget)
        assert incumbent.value <= 1.01 * solve(problem).value


def test_threads_change_nothing() -> None:
    """One thread and two find the same placement."""
    problem = next(problems(1))
    found = []
    for workers in (1, 2):
        incumbent = begun(problem, workers)
        annealed_step(problem, incumbent, incumbent.budget)
        found.append(incumbent.best)
    assert np.array_equal(*found)


def test_a_walk_ends_in_time() -> None:
    """With no time left nothing is annealed, and the search knows that it was cut."""
    problem = next(problems(1))
    incumbent = Incumbent(problem, Budget(0.0))
    for name, placed in starts(problem):
        incumbent.offer(name, placed)
    annealed_step(problem, incumbent, incumbent.budget)
    assert incumbent.cut_short
