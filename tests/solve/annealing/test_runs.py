"""Launches by nodes annealed as runs of ranks on nodes."""

from __future__ import annotations

import random
from dataclasses import replace
from functools import cache
from itertools import count, permutations

import numpy as np
import pytest

from placer.solve.annealing.runs import Runs
from placer.solve.annealing.walks import PricedInFull, Walk
from placer.solve.problem.compiled import Problem
from placer.solve.problem.starts import starts
from placer.solve.run.budget import Budget
from placer.solve.score.kernel import is_built
from placer.testing import job
from tests.solve.attack import hosts_of_islands
from tests.solve.machines import fragmented, matching_job

pytestmark = pytest.mark.skipif(not is_built(), reason="the compiled part is not built")


@cache
def problem_of(number: int, objective: str = "time") -> Problem:
    """A fragmented machine and a job whose nodes may hold any number of ranks."""
    for seed in count(1_000 * number):
        rng = random.Random(f"runs {seed}")
        machine = fragmented(rng)
        job = replace(matching_job(rng, machine, objective), launcher="node-contiguous")
        problem = Problem.of(machine, job, objective, seed)
        is_timed = objective == "time"
        can_leave = not is_timed or problem.model.fabric.can_leave_scale_up
        if not can_leave or Runs.on_nodes(problem) is None:
            continue
        start = next(iter(starts(problem)))[1]
        if len(np.unique(machine.gpus_of_node)) > 1 and problem.allows(start):
            return problem
    raise AssertionError


@pytest.mark.parametrize("objective", ["time", "hop-cost"])
@pytest.mark.parametrize("number", range(8))
def test_walks_over_runs_cost_what_the_scorer_says(number: int, objective: str) -> None:
    """After many changes the best is a legal launch at the cost that the walk says."""
    problem = problem_of(number, objective)
    runs = Runs.on_nodes(problem)
    assert runs is not None
    try:
        walks = runs.walks()
    except PricedInFull:
        pytest.skip("changes are priced in full")
    held = walks.units.slot_of_unit(next(iter(starts(problem)))[1])
    before = walks.load(held)
    for scale in (30.0, 1.0):
        walk = walks.walk(Walk(number, scale, held), 3_000, Budget(1e6))
        value, held = walk.cost, walk.slots
        placed = walks.units.gpu_of_rank(held)
        assert value <= before
        assert held[:, 1].sum() * runs.size == problem.job.world_size
        assert problem.goal.value(placed) == pytest.approx(value, rel=1e-9)
        assert problem.allows(placed)


def test_walks_over_runs_keep_required_groups_together() -> None:
    """Groups of several units stay in one domain, even where that costs."""
    walked = 0
    for seed in count(5_000):
        rng = random.Random(f"runs {seed}")
        machine = fragmented(rng)
        job = replace(
            matching_job(rng, machine, "hop-cost"), launcher="node-contiguous"
        )
        require = {"cp": "node", "pp": "rack"}
        job = replace(job, require=require, weights={"dp": 1.0})  # which parts them
        problem = Problem.of(machine, job, "hop-cost", seed)
        runs = Runs.on_nodes(problem)
        legal = [at for _, at in starts(problem) if problem.allows(at)]
        if runs is None or not legal or not runs.tied:
            continue
        walks = runs.walks()
        begin = walks.units.slot_of_unit(legal[0])
        walk = walks.walk(Walk(seed, 3.0, begin), 3_000, Budget(1e6))
        assert problem.allows(walks.units.gpu_of_rank(walk.slots))
        if (walked := walked + 1) == 4:
            break


def test_units_of_several_ranks_on_rails_cost_what_the_scorer_says() -> None:
    """Ranks of a unit that stays whole are on rails of their own, and priced so."""
    rng = random.Random("runs 100016")
    machine = fragmented(rng)
    job = replace(matching_job(rng, machine, "time"), launcher="node-contiguous")
    job = replace(job, require={"tp": machine.tiers[0].name})
    node, rack, *rest = machine.tiers
    machine = replace(machine, tiers=(node, replace(rack, rails=True), *rest))
    problem = Problem.of(machine, job, "time", 0)
    runs = Runs.on_nodes(problem)
    assert runs is not None
    assert runs.size > 1
    walks = runs.walks()
    begin = walks.units.slot_of_unit(next(iter(starts(problem)))[1])
    before = walks.load(begin)
    walk = walks.walk(Walk(0, 1.0, begin), 3_000, Budget(1e6))
    placed = walks.units.gpu_of_rank(walk.slots)
    assert problem.goal.value(placed) == pytest.approx(walk.cost, rel=1e-9)
    assert walk.cost < before


def test_nodes_whose_islands_alternate_are_named_once() -> None:
    """What is compiled has a place for each node, and no more."""
    machine, _ = hosts_of_islands(random.Random(19))
    problem = Problem.of(machine, job(dp=4, weights={"dp": 1}), "hop-cost")
    runs = Runs.on_nodes(problem)
    assert runs is not None
    legal = [np.array(at) for at in permutations(range(machine.num_gpus), 4)]
    legal = [at for at in legal if problem.allows(at)]
    assert legal
    for at in legal:
        nodes, units = runs.slot_of_unit(at).T
        assert len(set(nodes.tolist())) == len(nodes)
        assert units.sum() * runs.size == 4
