"""The evaluator of changes against the scorer: machines and jobs of every sort."""

import random
from dataclasses import replace

import numpy as np
import pytest

from placer import testing
from placer.solve.problem.compiled import Problem
from placer.solve.score.evaluator import compiled
from placer.solve.score.kernel import is_built
from placer.solve.score.slots import Slots
from tests.cost.random_cases import random_case, unequal, with_adapters
from tests.marks import slow
from tests.solve.attack import drawn
from tests.solve.machines import fragmented, matching_job
from tests.solve.test_workloads import machine_of, random_workload

pytestmark = pytest.mark.skipif(not is_built(), reason="the compiled part is not built")
ROUNDING = 1e-9


def drawn_case(seed):
    """A small machine and job: links, speeds and adapters in some of them."""
    case = random_case(seed)
    if seed % 3 == 1:
        case = with_adapters(case, seed)
    machine = case.topology
    if seed % 8 == 2:
        machine = unequal(machine, seed)
    if seed % 4 == 3:
        speed = np.random.default_rng(seed).choice([1, 1, 0.5, 0.8], machine.num_nodes)
        machine = replace(machine, compute_factor=speed)
    return machine, case.job


def ranks_alone(problem):
    """Every rank a unit, every GPU a slot."""
    ranks = np.arange(problem.job.world_size)[:, None]
    return Slots(ranks, np.arange(problem.machine.num_gpus)[:, None])


def in_sets(problem, size):
    """Consecutive ranks of one tp group as units, on consecutive GPUs of nodes."""
    machine = problem.machine
    slots = [
        np.arange(first, first + size)
        for start, gpus in zip(
            machine.first_gpu_of_node, machine.gpus_of_node, strict=False
        )
        for first in range(start, start + gpus - size + 1, size)
    ]
    return Slots(np.arange(problem.job.world_size).reshape(-1, size), np.array(slots))


def follows(problem, slots, draw, changes):
    """Make random changes and take others back; the cost is the scorer's."""
    if len(slots.gpus) < len(slots.ranks):
        pytest.skip("units do not fit")
    evaluator = compiled(problem, slots)
    assert evaluator is not None
    places, kernel = evaluator.slots, evaluator.kernel
    start = draw.permutation(len(places.gpus))[: len(places.ranks)]
    evaluator.load(start)
    for _ in range(changes):
        before = evaluator.value
        for takes in (False, False, True):
            pairs = draw.integers(len(places.gpus), size=(2, draw.integers(1, 4)))
            after = kernel.change(*map(evaluator.atoms, pairs))
            known = problem.goal.value(places.gpu_of_rank(evaluator.slot_of_unit))
            assert after == pytest.approx(known, rel=ROUNDING)
            if takes:
                kernel.keep()
                assert evaluator.value == after
            else:
                kernel.undo()
                assert evaluator.value == before
    return evaluator


@pytest.mark.parametrize("seed", range(8))
def test_traffic_and_relays_after_random_changes_cost_what_the_scorer_says(
    seed,
):
    """Flows of any sizes and hops in turn, on hosts of several sizes, thin uplinks."""
    draw = np.random.default_rng(seed)
    machine, _ = drawn_case(seed)
    while machine.links or machine.num_gpus < 12:
        machine, _ = drawn_case(seed := seed + 100)
    ranks = machine.num_gpus - machine.num_gpus % 2 - 2
    ends = draw.integers(ranks, size=(2, 4 * ranks))
    ends = ends[:, ends[0] != ends[1]]
    rows = draw.permutation(ranks)
    relays = [rows[:3].tolist(), rows[3:6].tolist(), rows[6:8].tolist()]
    relay = {"name": "relay", "collective": "relay", "bytes": 3e8, "ranks": relays}
    sizes = draw.exponential(1e8, ends.shape[1]).tolist()
    sent = {"from": ends[0].tolist(), "to": ends[1].tolist(), "bytes": sizes}
    own = testing.job(launcher="free", dp=ranks, groups=[relay], traffic=sent)
    problem = Problem.of(machine, own, "time")
    follows(problem, ranks_alone(problem), draw, 20)


def own_reductions(machine, draw, algorithm):
    """All-reduces of groups of several sizes that share ranks, in two kinds."""
    ranks = machine.num_gpus - 1
    kinds = []
    for name, size in (("wide", 9), ("narrow", 4)):
        order = draw.permutation(ranks)
        rows = [order[at : at + size].tolist() for at in range(0, ranks, size)]
        sent = {"bytes": float(draw.choice([2e4, 3e6, 4e8])), "per_step": 3}
        kind = {"name": name, "collective": "all_reduce", "ranks": rows}
        kinds.append(kind | sent | {"overlap": name == "wide"})
    return testing.job(
        launcher="free",
        dp=ranks,
        collectives={"all_reduce": algorithm},
        groups=kinds,
    )


@pytest.mark.parametrize("algorithm", ["auto", "ring", "tree", "nvls"])
@pytest.mark.parametrize("racks", [[3, 1, 2], [4, 4], [2, 2, 2, 1]])
@pytest.mark.parametrize("inner", ["50GB/s", "900GB/s"])
def test_all_reduces_of_ones_own_cost_what_the_scorer_says(algorithm, racks, inner):
    """Rings, trees and switches, on hosts and racks, behind thin uplinks."""
    draw = np.random.default_rng(len(racks))
    machine = testing.racks(racks, joined=inner == "900GB/s", oversubscription=4)
    job = own_reductions(machine, draw, algorithm)
    problem = Problem.of(machine, job, "time")
    found = follows(problem, ranks_alone(problem), draw, 12)
    assert not found.kernel.calls_scorer


@pytest.mark.parametrize("seed", range(20))
def test_workloads_after_random_changes_cost_what_the_scorer_says(seed):
    """Instances of roles with groups of their own, and all patterns of transfers."""
    rng = random.Random(seed)
    machine = machine_of(rng.choice(((2, 2), (1, 2, 3), (2, 1, 1))), rng.choice((3, 4)))
    if seed % 3 == 0:
        speed = np.random.default_rng(seed).choice([1, 0.5, 0.8], machine.num_nodes)
        machine = replace(machine, compute_factor=speed)
    job = random_workload(rng)
    while job.world_size > machine.num_gpus:
        job = random_workload(rng)
    problem = Problem.of(machine, job, "time")
    draw = np.random.default_rng(seed)
    found = follows(problem, ranks_alone(problem), draw, 8)
    assert not found.kernel.calls_scorer


@pytest.mark.parametrize("first", [*range(0, 40, 8), *slow(range(40, 240, 8))])
def test_step_time_after_random_changes_is_the_scorers(first):
    """Experts, links, rails, speeds, thin uplinks, adapters and groups of one's own."""
    for seed in range(first, first + 8):
        machine, job = drawn_case(seed)
        if job.model or job.groups:
            problem, draw = (
                Problem.of(machine, job, "time"),
                np.random.default_rng(seed),
            )
            follows(problem, ranks_alone(problem), draw, 6 if first < 40 else 50)


@pytest.mark.parametrize("seed", range(12))
def test_units_of_several_ranks_cost_what_their_ranks_do(seed):
    """Fragmented machines, whose slots take tp groups or halves of them."""
    rng = random.Random(seed)
    machine = fragmented(rng)
    job = matching_job(rng, machine, "time")
    size = 2 if job.parallelism.tp % 2 == 0 else 1
    problem = Problem.of(machine, job, "time")
    follows(problem, in_sets(problem, size), np.random.default_rng(seed), 8)


@pytest.mark.parametrize("seed", range(60))
def test_every_sort_of_problem_is_priced(seed):
    """Islands, lost nodes, traffic and both objectives, tiny; hop cost to the bit."""
    case = drawn(seed)
    problem = Problem.of(case.topology, case.job, case.objective)
    slots, draw = ranks_alone(problem), np.random.default_rng(seed)
    found = follows(problem, slots, draw, 6)
    if case.objective == "hop-cost":
        known = problem.goal.value(found.slots.gpu_of_rank(found.slot_of_unit))
        assert found.value == known
