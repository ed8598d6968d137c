"""Gradients and messages on the same thin uplinks, against all placements."""

from __future__ import annotations

import random
from itertools import product
from math import inf

import numpy as np
import pytest

from placer.cost.schedule import pipeline_times
from placer.job.axes import Parallelism
from placer.job.model import Compute, DataParallel, Job, Overlap
from placer.placement.placement import Placement
from placer.solve.bounds.gradients import stage_contents
from placer.solve.bounds.gradients.stage_contents import messages_s
from placer.solve.bounds.gradients.uplink_contents import Path, least_of_contents
from placer.solve.bounds.network.best_network import best_of_problem
from placer.solve.construct.stages.spread_runs import spread_runs
from placer.solve.problem.compiled import Problem
from placer.solve.run.budget import ENDLESS
from placer.solve.run.incumbent import Incumbent
from placer.topology.model import Tier
from tests.allocation.machines import racks, training
from tests.solve.random_cases import machine_of, random_model


def bound(problem: Problem) -> float:
    network = best_of_problem(problem)
    step = problem.model.step_on(network)
    found = least_of_contents(step, network, problem.params, inf, ENDLESS)
    return 0.0 if found is None else found.value


def tiny(rng: random.Random) -> Problem:
    """Four or six ranks on two or three nodes behind thin uplinks."""
    pp, dp, cp = rng.choice(((2, 2, 1), (2, 1, 2), (2, 3, 1), (3, 2, 1)))
    axes = Parallelism(1, cp, 1, pp, dp, rng.choice((1, 2)), 1)
    world = axes.world_size
    gpus = [rng.choice((2, 3, 4)) for _ in range(rng.choice((2, 3)))]
    gpus[0] += max(0, world - sum(gpus))
    outer = rng.choice((10e9, 50e9)), rng.choice((0.0, 5e-6))
    thin = float(rng.choice((1.5, 2, 4, 8)))
    tiers = [
        Tier("node", 400e9, 1e-6, True, 1.0, 1.0, 1.0),
        Tier("cluster", *outer, False, thin, 1.0, 9.0),
    ]
    overlap = rng.random() < 0.7
    job = Job(
        name="tiny",
        parallelism=axes,
        model=random_model(rng, axes),
        sequence=rng.choice((256, 4096, 16384)),
        micro_batches=pp,
        data_parallel=DataParallel(
            sharding=rng.choice(("zero1", "zero2", "zero3")),
            overlap_reduce=overlap,
            overlap_gather=overlap,
        ),
        overlap=Overlap(cp=True, pp=rng.random() < 0.5),
        compute=Compute(micro_batch_time=rng.choice((1e-5, 1e-3))),
        launcher="free",
    )
    machine = machine_of(gpus, [[0] * len(gpus)], tiers)
    return Problem.of(machine, job, "time")


def least(problem: Problem) -> float:
    """The best of all placements."""
    machine, world = problem.machine, problem.job.world_size
    best = inf
    for nodes in product(range(machine.num_nodes), repeat=world):
        held = np.bincount(nodes, minlength=machine.num_nodes)
        if (held <= machine.gpus_of_node).all():
            gpus = Placement.on_nodes(machine, np.array(nodes)).gpu_of_rank
            best = min(best, float(problem.goal.value(gpus)))
    return best


@pytest.mark.parametrize("seed", range(16))
def test_no_placement_is_below(seed: int) -> None:
    problem = tiny(random.Random(f"contents {seed}"))
    assert bound(problem) <= least(problem) * (1 + 1e-9)


@pytest.mark.parametrize(("columns", "rounds"), [(1, 2), (2, 1), (16, 0)])
def test_lists_that_are_cut_say_no_more(
    monkeypatch: pytest.MonkeyPatch, columns: int, rounds: int
) -> None:
    """Few contents of a domain, or few that a program gets."""
    said_less = 0
    for seed in range(6):
        problem = tiny(random.Random(f"contents {seed}"))
        most = bound(problem) * (1 + 1e-9)
        for few in (0, 1, 5, 50):
            assert bound(problem.with_params(contents=few)) <= most, seed
        with monkeypatch.context() as patch:
            patch.setattr(stage_contents, "COLUMNS", columns)
            patch.setattr(stage_contents, "ROUNDS", rounds)
            messages_s.cache_clear()
            found = bound(problem)
        messages_s.cache_clear()
        assert found <= most, seed
        said_less += found < most * (1 - 1e-6)
    assert said_less


def test_within_a_little_of_runs_that_are_spread() -> None:
    """Neither gradients nor messages alone come near."""
    machine = racks({f"r{i:02}": 18 for i in range(80)}, oversubscription=4)
    job = training(tp=4, cp=2, pp=8, vp=8, dp=32, require={"tp": "node"})
    problem = Problem.of(machine, job, "time")
    incumbent = Incumbent(problem, ENDLESS)
    spread_runs(problem, incumbent, ENDLESS)
    assert bound(problem) <= incumbent.value <= bound(problem) * 1.0125


@pytest.mark.parametrize("vp", [1, 4])
def test_no_lane_takes_less_than_the_path(vp: int) -> None:
    machine = racks(dict.fromkeys("abcd", 4), oversubscription=4)
    job = training(tp=4, pp=4, vp=vp, dp=2, require={"tp": "node"})
    problem = Problem.of(machine, job, "time")
    step = problem.model.step_on(best_of_problem(problem))
    path = Path.of(step, 1e-3)
    assert path is not None
    rows = np.tile(step.patterns(tuple(step.stage_times))[0], (200, 1))
    random_s = np.random.default_rng(0).exponential(1e-3, (200, 4))
    hops = path.inner_s + random_s * (path.times > 0)
    rows[:, 8:12] = hops
    seconds = pipeline_times(rows, job.micro_batches, vp, job.overlap.pp)
    assert (path.seconds + random_s @ path.times <= seconds + 1e-9).all()
