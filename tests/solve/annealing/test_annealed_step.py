"""Placements annealed on the exact step."""

from __future__ import annotations

from dataclasses import replace

import pytest

from placer.job.model import Compute
from placer.solve.annealing.annealed_step import annealed_step
from placer.solve.bounds.certificate import lower_bound
from placer.solve.construct.units.in_parts import in_parts_fills
from placer.solve.construct.units.whole_first import whole_first_fills
from placer.solve.problem.compiled import Problem
from placer.solve.problem.starts import starts
from placer.solve.run.budget import Budget
from placer.solve.run.incumbent import Incumbent
from placer.solve.score.kernel import is_built
from tests.marks import slow
from tests.solve.construct.test_whole_first import job, machine, uneven_experts

pytestmark = pytest.mark.skipif(not is_built(), reason="the compiled part is not built")


def begun(problem: Problem, workers: int = 1) -> Incumbent:
    """A search that knows the orders alone."""
    incumbent = Incumbent(problem, Budget(1e6, workers=workers))
    incumbent.offer_all(starts(problem))
    return incumbent


NINES = machine([9] * 15, [0] * 15)
SIXTEEN_GROUPS = replace(
    job(tp=1, ep=8, pp=4, dp=32, vp=2), compute=Compute(micro_batch_time=0.005)
)


def test_a_few_halves_beat_one_group_in_crumbs() -> None:
    """Fifteen hosts of 9 hold 15 of 16 groups of 8 whole, the last in eight parts.

    Neither as many whole groups as can be nor parts as even as can be are best.
    """
    problem = Problem.of(NINES, SIXTEEN_GROUPS, "time")
    incumbent = begun(problem)
    annealed_step(problem, incumbent, incumbent.budget)
    for others in (whole_first_fills(problem), in_parts_fills(problem)):
        best = min(problem.goal.value(placed) for _, placed in others)
        assert incumbent.value < 0.95 * best
    assert incumbent.value < 1.03 * lower_bound(problem, 1).value


@pytest.mark.parametrize("seed", [3, *slow([1])])
def test_groups_that_do_not_fit_uneven_hosts_are_cut_well(seed: int) -> None:
    """Behind thin uplinks or not: better than parts as even as can be."""
    problem = uneven_experts(seed)
    incumbent = begun(problem)
    incumbent.offer_all(in_parts_fills(problem))
    even = incumbent.value
    annealed_step(problem, incumbent, incumbent.budget)
    assert incumbent.value < 0.98 * even
