"""Every bound against every placement of tiny jobs."""

import random
from contextlib import suppress

import numpy as np
import pytest

from placer.base.errors import InputError
from placer.cost.least_cases import priced_step
from placer.placement.hop_bound import priced_hop_cost
from placer.placement.hop_parts import Cases
from placer.solve.bounds import certificate
from placer.solve.bounds.certificate import lower_bound
from placer.solve.bounds.hop_prices import hop_prices
from placer.solve.problem.compiled import Problem
from placer.solve.run.budget import ENDLESS
from placer.testing.oracle import gpus_of
from tests.marks import slow
from tests.solve.bounds.draws import DRAWS, MOST, some_placements
from tests.solve.oracle import distinct, hop_costs

ROUNDING = 1e-9
CASES = 8  # of one test: a failure names its seed


def costs(problem, machine, rng):
    """Of all placements, or of many."""
    job, legal = problem.job, some_placements(machine, problem.job, rng)
    if problem.goal.name == "hop-cost":
        return hop_costs(machine, job, np.array(legal, int).reshape(-1, job.world_size))
    legal = distinct(machine, job, legal)
    some = rng.sample(legal, min(MOST, len(legal)))
    seats = [np.array(gpus_of(machine, nodes)) for nodes in some]
    return np.array([problem.goal.value(gpus) for gpus in seats])


def shaken(what, rng):
    """Prices and bounds of cases, each of them a little wrong."""
    if isinstance(what, float | np.ndarray):
        return what * rng.uniform(0.9, 1.1) + rng.choice((0.0, 1.0, -1.0))
    if isinstance(what, Cases):
        what = what._replace(most=what.most + rng.choice((0, 1, -1)))
    if isinstance(what, list | tuple):
        found = [shaken(one, rng) for one in what]
        return type(what)(*found) if hasattr(what, "_fields") else found
    return what


def problems(sort, seeds):
    """Cases of a sort, but for jobs that are none."""
    for seed in seeds:
        machine, job, objective = DRAWS[sort](random.Random(f"{sort} {seed}"))
        with suppress(InputError):
            yield seed, machine, Problem.of(machine, job, objective)


@pytest.mark.parametrize("first", [0, *slow(range(CASES, 10 * CASES, CASES))])
@pytest.mark.parametrize("sort", DRAWS)
def test_no_placement_is_below_a_bound(sort, first):
    """Of every launch, and of the job's own."""
    for seed, machine, problem in problems(sort, range(first, first + CASES)):
        best = costs(problem, machine, random.Random(seed)).min(initial=np.inf)
        every, own = (lower_bound(problem, of) for of in (1, problem.forced_block))
        for value, argument, cases in (every, own):
            assert value <= best * (1 + ROUNDING), (seed, argument)
            of = problem.machine, problem.job
            if cases:
                counted = priced_step(*of, cases)
                assert value * (1 - ROUNDING) <= counted <= best * (1 + ROUNDING)
            if problem.goal.name == "hop-cost":
                prices = hop_prices(problem, value, ENDLESS)
                counted = priced_hop_cost(*of, prices)
                assert value * (1 - ROUNDING) <= counted <= best * (1 + ROUNDING)
                wrong = shaken(prices, random.Random(seed))
                assert priced_hop_cost(*of, wrong) <= best * (1 + ROUNDING), seed
        assert own.value >= every.value * (1 - 1e-12), seed


def best_bounds(sort, **params):
    """Of some cases of a sort."""
    return [
        lower_bound(problem.with_params(**params), problem.forced_block).value
        for _, _, problem in problems(sort, range(CASES))
    ]


ROWS = ("any, by time", "unequal", "traffic", "traffic", "lines")


@pytest.mark.parametrize(("row", "sort"), [*enumerate(ROWS)])
def test_every_bound_says_more_than_all_others(row, sort, monkeypatch):
    """Without it the best bound of some case is lower."""
    found, others = best_bounds(sort), [*certificate.BOUNDS]
    assert len(others) == len(ROWS)
    del others[row]
    monkeypatch.setattr(certificate, "BOUNDS", tuple(others))
    without = best_bounds(sort)
    assert any(a < b * (1 - 1e-6) for a, b in zip(without, found, strict=True))


@pytest.mark.parametrize(
    ("sort", "params"),
    [("experts", {"expert_rounds": 0}), ("lines", {"part_columns": 0})],
)
def test_parts_of_groups_say_more(sort, params):
    """So does what each knob of the search leaves out."""
    with_parts, without = best_bounds(sort), best_bounds(sort, **params)
    assert any(a < b * (1 - 1e-6) for a, b in zip(without, with_parts, strict=True))
