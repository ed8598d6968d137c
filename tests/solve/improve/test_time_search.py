"""Local search on the step time of small jobs."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest

from placer.cost.step import StepModel
from placer.job.axes import Parallelism
from placer.job.model import Compute, Job, Model
from placer.placement.check import violations
from placer.placement.placement import Placement
from placer.solve.construct.fills.fills import fullest_fills
from placer.solve.improve.anneal import annealed, better
from placer.solve.improve.region import by_value, time_region
from placer.solve.problem.compiled import Problem
from placer.solve.run.budget import Budget
from placer.solve.run.incumbent import Incumbent
from placer.topology.model import Tier, Topology
from tests.marks import slow
from tests.solve.machines import fragmented, matching_job
from tests.solve.oracle import step_time
from tests.solve.random_cases import machine_of
from tests.solve.solving import known, solve

TIERS = [
    Tier("node", 450e9, 1e-6, True, 1.0, 1.0, 1.0),
    Tier("leaf", 50e9, 4e-6, False, 1.0, 1.0, 9.0),
    Tier("spine", 50e9, 8e-6, False, 4.0, 1.0, 10.0),
]
FRAGMENTED = (0, 4, 27, *slow((3, 21, 24)))


def _leaves(leaf: list[int]) -> Topology:
    """Nodes of four GPUs in leaves with few uplinks."""
    return machine_of([4] * len(leaf), [leaf, [0] * len(leaf)], TIERS)


def _job(pp: int, dp: int, launcher: str = "node-contiguous") -> Job:
    return Job(
        name="chunks",
        parallelism=Parallelism(tp=4, pp=pp, dp=dp, etp=4),
        model=Model("m", 48, 8192, 22016, 64, 8, 32000),
        sequence=8192,
        micro_batches=8,
        compute=Compute(micro_batch_time=0.6),
        require={"tp": "node"},
        launcher=launcher,
    )


def _improved(topology: Topology, job: Job, start: np.ndarray) -> list[np.ndarray]:
    problem = Problem.of(topology, job, "time")
    return list(better(problem, known(problem, start), Budget(60.0)))


def _in_order(job: Job) -> np.ndarray:
    return np.arange(job.world_size)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("leaf", "pp", "dp"),
    [
        ([0, 0, 0, 1, 1, 1, 2], 2, 3),
        ([0, 1, 2, 0, 1, 2, 0], 3, 2),
        ([0, 1, 2, 0, 1, 2, 0], 1, 6),
    ],
)
def test_as_good_as_every_permutation(leaf: list[int], pp: int, dp: int) -> None:
    """Six units on seven nodes: nothing beats the search, by the plain-loop scorer."""
    topology, job = _leaves(leaf), _job(pp, dp)
    worst = _in_order(job)
    found = [worst, *_improved(topology, job, worst)][-1]
    kinds = {}
    for nodes in permutations(range(7), 6):
        first: dict[int, int] = {}
        look = [first.setdefault(leaf[node], len(first)) for node in nodes]
        held = [leaf.count(leaf[node]) for node in nodes]
        kinds.setdefault((tuple(look), tuple(held)), nodes)
    least = min(
        step_time(topology, job, tuple(np.repeat(nodes, 4))) for nodes in kinds.values()
    )
    value = StepModel(topology, job).step(found).step_time_s
    assert value == pytest.approx(least, rel=1e-9)


def _spread(order: list[int]) -> Topology:
    """Sixteen hosts in four leaves, host h in leaf h mod 4, in the order given."""
    leaf = [host % 4 for host in order]
    first: dict[int, int] = {}
    return _leaves([first.setdefault(one, len(first)) for one in leaf])


@pytest.mark.slow
@pytest.mark.parametrize("hosts", [15, 16])
def test_order_of_hosts_does_not_matter(hosts: int) -> None:
    """Any order of hosts gives as fast a step as a placement laid out by hand.

    Of seven replicas of two stages, each stage has two leaves to itself.
    """
    job = replace(_job(2, 7), compute=Compute(micro_batch_time=0.5))
    by_hand = _spread(list(range(16)))
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


@pytest.mark.slow
@pytest.mark.parametrize("seed", FRAGMENTED)
def test_each_placement_is_legal_and_faster(seed: int) -> None:
    """What is offered keeps every rule, and each is faster than the one before."""
    rng = random.Random(f"general {seed}")
    topology = fragmented(rng)
    job = matching_job(rng, topology, "time")
    problem = Problem.of(topology, job, "time")
    if not problem.choices:
        pytest.skip("nothing fits in equal blocks")
    model = StepModel(topology, job)
    start = solve(topology, job, time_limit=0.0).placement.gpu_of_rank
    values = [model.step(start).step_time_s]
    for gpu_of_rank in better(problem, known(problem, start), Budget(60.0)):
        assert violations(Placement(gpu_of_rank), topology, job) == []
        values.append(model.step(gpu_of_rank).step_time_s)
    assert values == sorted(set(values), reverse=True)


def test_each_start_is_a_placement() -> None:
    """Placements to begin with hold every unit, and no domain holds too many."""
    topology, job = _leaves([0, 0, 0, 1, 1, 2, 2, 2, 2]), _job(2, 4)
    region = time_region(Problem.of(topology, job, "time"), _in_order(job))
    assert region is not None
    starts = list(region.along_the_tree(by_value))
    assert len(starts) >= 4
    for home in starts:
        assert (np.bincount(home, minlength=3) <= [3, 2, 4]).all()
        assert len(region.homes([region.gpu_of_rank(home)])) == 1


def test_stages_have_leaves_of_their_own() -> None:
    """One of the placements to begin with has no leaf that holds two stages."""
    topology, job = _spread(list(range(16))), _job(2, 7)
    region = time_region(Problem.of(topology, job, "time"), _in_order(job))
    assert region is not None
    stage = job.parallelism.coordinates["pp"]
    apart = []
    for home in region.along_the_tree(by_value):
        leaf = home[region.label]
        apart.append(not set(leaf[stage == 0]) & set(leaf[stage == 1]))
    assert any(apart)


def test_work_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """No more placements are priced than the limit says; each move is counted."""
    topology, job = _spread(list(range(16))), _job(2, 7)
    problem = Problem.of(topology, job, "time").with_params(exchange_scores=50)
    start = _in_order(job)
    priced = []
    model, step = problem.model, problem.model.step
    monkeypatch.setattr(model, "step", lambda gpus: priced.append(1) or step(gpus))
    list(better(problem, known(problem, start), Budget(60.0)))
    assert 10 <= len(priced) <= 50 + 2  # and the placement to beat, twice


def test_the_method_improves_the_incumbent() -> None:
    """What annealing finds is kept, under its name, and its moves are counted."""
    topology, job = _spread(list(range(16))), _job(2, 7)
    problem = Problem.of(topology, job, "time").with_params(exchange_scores=60)
    incumbent = known(problem, _in_order(job))
    before = incumbent.value
    annealed(problem, incumbent, Budget(60.0))
    assert incumbent.value < before
    assert incumbent.method == "annealed, from start"
    assert set(incumbent.moves.as_dict()) == {"exchange"}


def test_stops_when_asked() -> None:
    """A request to stop ends the work before another placement is priced."""
    topology, job = _spread(list(range(16))), _job(2, 7)
    problem = Problem.of(topology, job, "time")
    start = _in_order(job)
    asked = []

    def stop() -> bool:
        asked.append(1)
        return len(asked) > 20

    found = list(better(problem, known(problem, start), Budget(60.0, stop)))
    assert len(found) <= 20
    assert len(asked) <= 22


def test_large_jobs_are_left_alone() -> None:
    """A job that takes long to price is not searched."""
    topology, job = _spread(list(range(16))), _job(2, 7)
    problem = Problem.of(topology, job, "time").with_params(exchange_ranks=8)
    incumbent = known(problem, _in_order(job))
    assert list(better(problem, incumbent, Budget(60.0))) == []
    assert incumbent.moves.as_dict() == {}


@pytest.mark.slow
def test_same_seed_same_placements() -> None:
    """The same seed finds the same placements."""
    topology, job = _spread([0, 3, 1, 6, 2, 9, 5, 4, 7, 8, 10, 15]), _job(2, 5)
    start = _in_order(job)
    once, again = (_improved(topology, job, start) for _ in range(2))
    assert once
    assert [one.tolist() for one in once] == [one.tolist() for one in again]


def test_a_job_of_more_than_a_thousand_ranks_is_searched() -> None:
    """What a scheduler left over: leaves of all sizes, the emptiest first."""
    sizes = [2, 12, 44, 4, 64, 64, 64, 18]
    topology, job = _leaves(np.repeat(np.arange(8), sizes).tolist()), _job(16, 17)
    assert job.world_size == topology.num_gpus == 1088
    problem = Problem.of(topology, job, "time").with_params(exchange_scores=60)
    incumbent = Incumbent(problem, Budget(60.0))
    incumbent.offer_all(fullest_fills(problem))
    before = incumbent.value
    annealed(problem, incumbent, Budget(60.0))
    assert incumbent.value < before
