"""Placements annealed on the exact step."""

import random
from dataclasses import replace
from functools import cache
from itertools import count

import numpy as np
import pytest

import placer
from placer.job.model import Compute
from placer.solve.annealing.annealed import annealed, walked_briefly
from placer.solve.annealing.units import Units
from placer.solve.bounds.certificate import lower_bound
from placer.solve.construct.fills import starts
from placer.solve.construct.whole_groups import whole_group_fills
from placer.solve.problem.compiled import Problem
from placer.solve.run.budget import Budget
from placer.solve.run.incumbent import Incumbent
from placer.solve.score import is_built
from tests.solve.construct.test_whole_groups import job, machine
from tests.solve.machines import MODEL, fragmented, matching_job
from tests.solve.solving import known, own_job

pytestmark = pytest.mark.skipif(not is_built(), reason="the compiled part is not built")


@cache
def problem_of(number):
    """A fragmented machine and a job without requirements whose units fit."""
    for seed in count(1_000 * number):
        rng = random.Random(f"annealed {seed}")
        machine = fragmented(rng)
        problem = Problem.of(machine, matching_job(rng, machine, "time"), "time", seed)
        leaves = problem.model.fabric.can_leave_scale_up
        if leaves and not problem.job.require and Units.of(problem) is not None:
            return problem
    raise AssertionError


def begun(problem, workers=1):
    """A search that knows the orders alone."""
    return known(problem, budget=Budget(1e6, workers=workers))


NINES = machine([9] * 15, [0] * 15)
SIXTEEN_GROUPS = replace(
    job(tp=1, ep=8, pp=4, dp=32, vp=2), compute=Compute(micro_batch_time=0.005)
)


def test_a_few_halves_beat_one_group_in_crumbs():
    """Fifteen hosts of 9 hold 15 of 16 groups of 8 whole, the last in eight parts.

    As many whole groups as can be are not best.
    """
    problem = Problem.of(NINES, SIXTEEN_GROUPS, "time")
    bound = lower_bound(problem, 1).value
    wanted = problem.with_params(enough_value=1.029 * bound)
    incumbent = begun(wanted)
    annealed(wanted, incumbent, incumbent.budget)
    fills = whole_group_fills(problem)
    best = min(problem.goal.value(placed) for _, placed in fills)
    assert incumbent.value < 0.95 * best
    assert incumbent.value < 1.03 * bound


@pytest.mark.parametrize(("hosts", "walks"), [([9] * 15, True), ([8] * 16, False)])
def test_expert_groups_that_are_cut_walk_first(hosts, walks):
    """Where constructions keep them whole, a walk would only take time."""
    problem = Problem.of(machine(hosts, [0] * len(hosts)), SIXTEEN_GROUPS, "time")
    incumbent = begun(problem)
    before = incumbent.value
    walked_briefly(problem, incumbent, incumbent.budget)
    assert (incumbent.value < before) == walks
    assert incumbent.method.startswith("annealed") == walks


def test_groups_that_no_domain_holds_are_annealed():
    """A free launch whose tp groups take two hosts each moves what one host holds."""
    hosts = [9, 7, 5]
    rack = [number for number, many in enumerate(hosts) for _ in range(many)]
    topology = machine([4] * len(rack), rack)
    dense = replace(job(tp=8, pp=4, dp=2), model=MODEL)
    problem = Problem.of(topology, dense, "time")
    incumbent = begun(problem)
    before = incumbent.value
    annealed(problem, incumbent, incumbent.budget)
    assert incumbent.value < before


def test_threads_change_nothing():
    """One thread and two find the same placement."""
    problem = problem_of(0)
    found = []
    for workers in (1, 2):
        incumbent = begun(problem, workers)
        annealed(problem, incumbent, incumbent.budget)
        found.append(incumbent.best)
    assert np.array_equal(*found)


def test_time_may_end_between_two_races():
    """Then no start of the next one is looked at; what was found is kept."""
    rng = np.random.default_rng(3)
    ends = {"from": rng.integers(32, size=96), "to": rng.integers(32, size=96)}
    sent = {name: ranks.tolist() for name, ranks in ends.items()}
    sent["bytes"] = rng.exponential(1e8, 96).tolist()
    topology = placer.read_topology("rack:2 node:4 gpu:4")
    problem = Problem.of(topology, own_job(32, traffic=sent))
    walked = []
    budget = Budget(1e6, lambda: bool(walked[0].moves.tried))
    walked.append(Incumbent(problem, budget))
    walked[0].offer_all(starts(problem))
    annealed(problem, walked[0], walked[0].budget)
    assert walked[0].moves.tried
    assert walked[0].solution().is_cut_short
