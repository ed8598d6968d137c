"""Runs of pipelines spread behind thin uplinks, against all that are laid the same."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from math import inf

import numpy as np
import pytest

from placer.job.axes import Parallelism
from placer.placement.check import violations
from placer.placement.placement import Placement
from placer.solve.construct.stages.spread_runs import spread_runs
from placer.solve.problem.compiled import Problem
from placer.solve.run.budget import ENDLESS
from placer.solve.run.incumbent import Incumbent
from tests.allocation.machines import racks, training

STAGES = 4


def spread(problem: Problem) -> Incumbent:
    incumbent = Incumbent(problem, ENDLESS)
    spread_runs(problem, incumbent, ENDLESS)
    return incumbent


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


@pytest.mark.parametrize("there", [24, 10, 6])
@pytest.mark.parametrize("thin", [4, 16])
def test_as_good_as_all_that_are_laid_so(there: int, thin: int) -> None:
    names = {f"r{i:02}": 4 for i in range(there)}
    machine = racks(names, oversubscription=thin)
    job = training(tp=4, pp=STAGES, vp=4, dp=6, require={"tp": "node"})
    problem = Problem.of(machine, job, "time")
    found = spread(problem)
    wanted = least(problem, 4, there, 6)
    assert found.value <= wanted * 1.001
    assert not violations(Placement(found.best), machine, job)


def test_nothing_where_uplinks_carry_all() -> None:
    machine = racks(dict.fromkeys("abcdefgh", 4))
    job = training(tp=4, pp=STAGES, vp=4, dp=4, require={"tp": "node"})
    assert spread(Problem.of(machine, job, "time")).value == inf


def test_expert_groups_may_lie_across_those_of_context_parallelism() -> None:
    """Members of a cp group are not tried apart where stages then differ in size."""
    machine = racks(dict.fromkeys("abcd", 1), oversubscription=4)
    job = training(cp=2, pp=2, dp=3)
    model = replace(job.model, experts=6, top_k=1, moe_layers=job.model.layers)
    axes = Parallelism(cp=2, pp=2, dp=3, ep=3)
    problem = Problem.of(machine, replace(job, model=model, parallelism=axes), "time")
    assert spread(problem).value == inf
