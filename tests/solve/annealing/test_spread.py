"""Pipelines spread behind thin uplinks, against all runs of stages laid alike."""

from __future__ import annotations

from itertools import combinations
from math import inf

import numpy as np
import pytest

from placer.placement.check import violations
from placer.placement.placement import Placement
from placer.solve.annealing.annealed_step import annealed_step
from placer.solve.problem.compiled import Problem
from placer.solve.problem.starts import starts
from placer.solve.run.budget import Budget
from placer.solve.run.incumbent import Incumbent
from placer.solve.score.kernel import is_built
from tests.allocation.machines import racks, training
from tests.marks import slow

pytestmark = pytest.mark.skipif(not is_built(), reason="the compiled part is not built")

STAGES = 4


def least(problem: Problem, room: int, racks_there: int, replicas: int) -> float:
    """The best of all cuts and numbers of copies, rack by rack; a stage a node."""
    machine, best = problem.machine, inf
    for count in range(2, STAGES + 1):
        for cuts in combinations(range(STAGES), count):
            for copies in range(1, replicas + 1):
                nodes = np.full((replicas, STAGES), -1)
                rack, fits = 0, True
                for begin, end in zip(cuts, (*cuts[1:], cuts[0] + STAGES), strict=True):
                    stages = [s % STAGES for s in range(begin + 1, end + 1)]
                    here = min(copies, room // len(stages))
                    for first in range(0, replicas, here):
                        own = range(first, min(first + here, replicas))
                        cells = [(replica, s) for replica in own for s in stages]
                        fits &= rack < racks_there
                        for place, cell in enumerate(cells):
                            nodes[cell] = rack * room + place
                        rack += 1
                if fits:
                    gpus = machine.first_gpu_of_node[nodes][..., None] + np.arange(4)
                    best = min(best, problem.model.step(_by_rank(gpus)).step_time_s)
    return best


def _by_rank(gpus: np.ndarray) -> np.ndarray:
    """From replica, stage, tp member to ranks in the order tp, dp, pp."""
    return gpus.transpose(1, 0, 2).ravel()


@pytest.mark.parametrize("there", [24, *slow([10, 6])])
@pytest.mark.parametrize("thin", [4, 16])
def test_as_good_as_all_that_are_laid_so(there: int, thin: int) -> None:
    """From the usual order; on ten racks 0.3 % is left to runs of 3 and 1 stages."""
    names = {f"r{i:02}": 4 for i in range(there)}
    machine = racks(names, oversubscription=thin)
    job = training(tp=4, pp=STAGES, vp=4, dp=6, require={"tp": "node"})
    problem = Problem.of(machine, job, "time")
    wanted = least(problem, 4, there, 6) * 1.0035
    search = Incumbent(problem.with_params(enough_value=wanted), Budget(60.0))
    search.offer_all(starts(problem))
    annealed_step(problem, search, search.budget)
    assert search.value <= wanted
    assert not violations(Placement(search.best), machine, job)
