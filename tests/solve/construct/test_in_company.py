"""Expert groups side by side, where gradients would be exposed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from placer.cost.rings import build_rings
from placer.job.model import Compute, Job
from placer.placement.placement import Placement
from placer.solve.bounds.certificate import lower_bound
from placer.solve.construct.experts.in_company import (
    bundled,
    company_fills,
    shared_out,
    stages_in_company,
)
from placer.solve.construct.experts.parts_asked import Asked, asked_of
from placer.solve.construct.experts.parts_pace import Pace
from placer.solve.construct.experts.parts_walk import PartsWalk
from placer.solve.construct.units.in_parts import in_parts_fills
from placer.solve.problem.compiled import Problem
from placer.solve.run.budget import Budget
from tests.solve.construct.test_whole_first import job, machine

# Hosts of which a third lost a GPU; short sequences, so that gradients weigh.
SEVENS = machine([8] * 14 + [7] * 6, [0] * 10 + [1] * 10)
GROUPS = replace(
    job(tp=1, ep=8, pp=4, dp=32, vp=2), compute=Compute(0.002), sequence=32
)


def asked(dp: int = 32) -> tuple[Problem, Asked]:
    parallelism = replace(GROUPS.parallelism, dp=dp)
    problem = Problem.of(SEVENS, replace(GROUPS, parallelism=parallelism), "time")
    return problem, next(asked_of(problem))


def values(given: Job) -> tuple[float, float, float]:
    """The bound, the best of parts that know no gradients, and of those that do, s."""
    problem = Problem.of(SEVENS, given, "time")
    before = min(problem.goal.value(found) for _, found in in_parts_fills(problem))
    after = min(problem.goal.value(found) for _, found in company_fills(problem))
    return lower_bound(problem, 1).value, before, after


def test_halves_side_by_side_shorten_the_step() -> None:
    """Within 1 % of the bound, by 3 %; by 4 % where others are 6 % above it.

    Those are with few words: no stage waits for the one with the output layer then.
    """
    bound, before, after = values(GROUPS)
    assert after < 1.01 * bound
    assert after < 0.97 * before
    assert GROUPS.model is not None
    few_words = replace(GROUPS.model, vocab=500)
    bound, before, after = values(replace(GROUPS, model=few_words))
    assert before > 1.05 * bound
    assert after < 0.96 * before


@pytest.mark.parametrize("dp", [32, 24])
@pytest.mark.parametrize("members", [[2, 1, 1, 1], [2, 2, 1, 1], [3, 1, 1, 2]])
def test_gradient_groups_have_as_many_members_as_asked(
    dp: int, members: list[int]
) -> None:
    """Wherever they have some, odd numbers of groups too; nothing is too full."""
    problem, ground = asked(dp)
    outer = ground.ground.outer
    held = bundled(ground, np.array(members), 0 * outer, is_near=True)
    assert held is not None
    assert (held.sum(axis=1) == 8).all()
    assert (held.sum(axis=0) <= ground.ground.room).all()
    nodes = ground.node_of_rank(ground.slot(), held)
    gpu_of_rank = Placement.on_nodes(problem.machine, nodes).gpu_of_rank
    axes = problem.job.parallelism
    groups = axes.ranks_of_group["edp"]
    nics = build_rings(problem.model.fabric, gpu_of_rank[groups]).nics
    stage = axes.coordinates["pp"][groups[:, 0]]
    assert all(nics[stage == s].min() >= asks for s, asks in enumerate(members))


def test_where_bundles_do_not_fit_there_are_none() -> None:
    """Nine units have no place to lie side by side on hosts of 8."""
    _, ground = asked()
    members = np.array([9, 1, 1, 1])
    assert bundled(ground, members, 0 * ground.ground.outer, is_near=False) is None
    assert shared_out(np.array([3, 3]), np.array([0, 0]), 8, 1) is None


def test_walks_keep_bundles() -> None:
    """Units of the first stage stay where they are, and of that stage; others move."""
    problem, ground = asked()
    gpu_of_rank = next(found for _, found in company_fills(problem))
    step = problem.model.step(gpu_of_rank)
    stages = stages_in_company(ground, step, gpu_of_rank, 0.01)
    assert stages.tolist() == [True, False, False, False]
    held = ground.ground.held(gpu_of_rank)
    assert held is not None
    slot = ground.slot()
    kept = np.zeros(len(held), dtype=bool)
    kept[slot[:, stages]] = True
    near = ground.parts.seconds(ground.ground.floor.tier + 1).values()
    pace = Pace.of(ground.parts, min(near), 1.1 * max(near))
    walk = PartsWalk(ground.links(), pace, slot, held, np.random.default_rng(0), kept)
    walk.go(200, Budget(60))
    assert (walk.held[kept] == held[kept]).all()
    assert (walk.held[~kept] != held[~kept]).any()
    assert sorted(walk.slot[:, 0].ravel()) == sorted(slot[:, 0].ravel())


def test_a_single_nic_that_costs_nothing_keeps_nothing() -> None:
    """Where compute hides all gradients, walks move every unit."""
    problem, ground = asked()
    gpu_of_rank = next(found for _, found in company_fills(problem))
    step = problem.model.step(gpu_of_rank)
    assert not stages_in_company(ground, step, gpu_of_rank, 1.0).any()


def test_walks_may_have_nothing_to_move() -> None:
    """Where all units keep their parts, only replicas change theirs."""
    problem, ground = asked()
    gpu_of_rank = next(found for _, found in company_fills(problem))
    held = ground.ground.held(gpu_of_rank)
    assert held is not None
    near = ground.parts.seconds(ground.ground.floor.tier + 1).values()
    pace = Pace.of(ground.parts, min(near), 1.1 * max(near))
    kept, rng = np.ones(len(held), dtype=bool), np.random.default_rng(0)
    walk = PartsWalk(ground.links(), pace, ground.slot(), held, rng, kept)
    walk.go(50, Budget(60))
    assert (walk.held == held).all()
