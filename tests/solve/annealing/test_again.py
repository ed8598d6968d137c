"""Local search again: never for nothing, never by the clock unless asked."""

import random
from time import monotonic

import pytest

from placer.solve import search
from placer.solve.annealing import annealed as module
from placer.solve.problem.compiled import Problem
from placer.solve.problem.params import params_of
from placer.solve.run.budget import Budget
from tests.solve.machines import fragmented, matching_job


def hard(objective="hop-cost"):
    """Experts on a fragmented machine, which local search improves for long."""
    rng = random.Random("shuf 1")
    topology = fragmented(rng)
    job = matching_job(rng, topology, "hop-cost")
    return Problem.of(topology, job, objective)


def solved(problem, workers=1, seconds=300.0):
    return search.solve(problem, Budget(seconds, workers=workers))


@pytest.mark.slow
def test_generations_help_whatever_the_workers():
    """Two generations beat one race; three threads find the same as one, and say so."""
    problem = hard().with_params(races=1)
    once = solved(problem)
    one, three = (
        solved(problem.with_params(**params_of(2)), workers) for workers in (1, 3)
    )
    assert one.value < once.value
    assert one.placement.same_as(three.placement)
    assert one.value == three.value
    assert one.moves == three.moves
    assert {one.stop_reason, three.stop_reason} == {"searched"}
    assert one.deterministic
    assert three.deterministic


@pytest.mark.slow
def test_full_effort_uses_the_time():
    """With a gap left only the clock ends it, and the plan says that it did."""
    problem = hard().with_params(**params_of("full"))
    begin = monotonic()
    found = solved(problem, seconds=4.0)
    assert monotonic() - begin >= 4.0
    assert found.stop_reason == "time-limit"
    assert not found.deterministic


@pytest.mark.slow
def test_normal_effort_ends_where_it_hardly_helps(monkeypatch):
    """A generation that gains less than 0.1 % is the last one."""
    values = []

    def counted(incumbent, budget, variant):
        kept = searched(incumbent, budget, variant)
        values.append(kept.best[1])
        return kept

    searched = module._found
    monkeypatch.setattr(module, "_found", counted)
    once = solved(hard())
    found = solved(hard().with_params(**params_of("normal")))
    size = module.SEARCHES
    ends = [min(values[: i + size]) for i in range(0, len(values), size)]
    before = [once.value, *ends]
    gains = [(a - b) / a for a, b in zip(before, ends, strict=False)]
    assert all(gain >= 1e-3 for gain in gains[:-1])
    assert gains[-1] < 1e-3
    assert found.value == min(ends[-1], once.value)
    assert found.stop_reason == "searched"


def test_quick_effort_is_constructions_alone():
    """No local search, and still a bound."""
    found = solved(hard().with_params(**params_of("quick")))
    assert found.moves == {}
    assert found.lower_bound > 0
    assert found.stop_reason == "searched"
