"""Local search on the step time, on exact changes and priced in full."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import permutations
from typing import TYPE_CHECKING

import numpy as np
import pytest

from placer.cost.step import StepModel
from placer.job.axes import Parallelism
from placer.job.model import Compute, Job
from placer.job.models import Model
from placer.placement.placement import Placement
from placer.solve.annealing import annealed_step as annealing
from placer.solve.annealing import in_full
from placer.solve.annealing.annealed_step import annealed_step
from placer.solve.annealing.in_full import annealed_in_full
from placer.solve.problem.compiled import Problem
from placer.solve.score.kernel import is_built
from placer.topology.model import Tier, Topology
from tests.solve.oracle import step_time
from tests.solve.random_cases import machine_of
from tests.solve.solving import known, solve

if TYPE_CHECKING:
    from placer.solve.run.later import Method

TIERS = [
    Tier("node", 450e9, 1e-6, True, 1.0, 1.0, 1.0),
    Tier("leaf", 50e9, 4e-6, False, 1.0, 1.0, 9.0),
    Tier("spine", 50e9, 8e-6, False, 4.0, 1.0, 10.0),
]


@pytest.fixture(params=[annealed_step, annealed_in_full])
def method(request: pytest.FixtureRequest) -> Method:
    """With the compiled cost, and priced in full."""
    if request.param is annealed_step and not is_built():
        pytest.skip("the compiled part is not built")
    found: Method = request.param
    return found


def leaves(leaf: list[int]) -> Topology:
    """Nodes of four GPUs in leaves with few uplinks."""
    return machine_of([4] * len(leaf), [leaf, [0] * len(leaf)], TIERS)


def training(pp: int, dp: int) -> Job:
    """Stages of a node each."""
    return Job(
        name="chunks",
        parallelism=Parallelism(tp=4, pp=pp, dp=dp, etp=4),
        model=Model("m", 48, 8192, 22016, 64, 8, 32000),
        sequence=8192,
        micro_batches=8,
        compute=Compute(micro_batch_time=0.6),
        require={"tp": "node"},
        launcher="node-contiguous",
    )


def spread(order: list[int]) -> Topology:
    """Sixteen hosts in four leaves, host h in leaf h mod 4, in the order given."""
    leaf = [host % 4 for host in order]
    first: dict[int, int] = {}
    return leaves([first.setdefault(one, len(first)) for one in leaf])


@pytest.mark.parametrize(
    ("leaf", "degrees"),
    [
        ([0, 0, 0, 1, 1, 1, 2], (2, 3)),
        pytest.param([0, 1, 2, 0, 1, 2, 0], (3, 2), marks=pytest.mark.slow),
        pytest.param([0, 1, 2, 0, 1, 2, 0], (1, 6), marks=pytest.mark.slow),
    ],
)
def test_as_good_as_every_permutation(
    leaf: list[int], degrees: tuple[int, int], method: Method
) -> None:
    """Six units on seven nodes: nothing beats the search, by the plain-loop scorer."""
    topology, job = leaves(leaf), training(*degrees)
    kinds = {}
    for nodes in permutations(range(7), 6):
        first: dict[int, int] = {}
        look = [first.setdefault(leaf[node], len(first)) for node in nodes]
        held = [leaf.count(leaf[node]) for node in nodes]
        kinds.setdefault((tuple(look), tuple(held)), nodes)
    least = min(
        step_time(topology, job, tuple(np.repeat(nodes, 4))) for nodes in kinds.values()
    )
    problem = Problem.of(topology, job, "time")
    problem = problem.with_params(enough_value=least * (1 + 1e-9))
    found = known(problem, np.arange(job.world_size))
    method(problem, found, found.budget)
    value = StepModel(topology, job).step(found.best).step_time_s
    assert value == pytest.approx(least, rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("hosts", [15, 16])
def test_order_of_hosts_does_not_matter(hosts: int) -> None:
    """Any order of hosts gives as fast a step as a placement laid out by hand.

    Of seven replicas of two stages, each stage has two leaves to itself.
    """
    job = replace(training(2, 7), compute=Compute(micro_batch_time=0.5))
    by_hand = spread(list(range(16)))
    stages = [[0, 4, 8, 12, 1, 5, 9], [2, 6, 10, 14, 3, 7, 11]]
    stage_by_stage = job.parallelism.order.index("pp") > job.parallelism.order.index(
        "dp"
    )
    node = np.repeat(np.array(stages) if stage_by_stage else np.array(stages).T, 4)
    gpus = Placement.on_nodes(by_hand, node.ravel()).gpu_of_rank
    least = StepModel(by_hand, job).step(gpus).step_time_s
    order = list(range(16))
    random.Random(hosts).shuffle(order)
    value = solve(by_hand.select(np.array(order[:hosts])), job).value
    assert value <= least * (1 + 1e-9)


def test_without_the_compiled_part_changes_are_priced_in_full(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The search is the same but for what it finds."""
    monkeypatch.setattr(annealing, "is_built", lambda: False)
    topology, job = spread(list(range(16))), training(2, 7)
    problem = Problem.of(topology, job, "time").with_params(races=1)
    found = known(problem, np.arange(job.world_size))
    before = found.value
    annealed_step(problem, found, found.budget)
    assert found.value < before
    assert found.method == in_full.NAME
