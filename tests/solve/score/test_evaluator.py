"""The evaluator of changes against the scorer: machines and jobs of every sort."""

import random
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from placer import testing
from placer.job.traffic import Group
from placer.solve.problem.compiled import Problem
from placer.solve.score import is_built
from placer.solve.score.evaluator import compiled
from placer.solve.score.slots import Slots
from tests.cost.random_cases import random_case, unequal, with_adapters
from tests.marks import slow
from tests.solve.attacked_cases import drawn
from tests.solve.machines import fragmented, matching_job
from tests.solve.random_workloads import random_workload, three_levels

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


def step_times(seed):
    """Experts, links, rails, speeds, thin uplinks, adapters and groups of one's own."""
    machine, job = drawn_case(seed)
    return Problem.of(machine, job, "time") if job.model or job.groups else None


def traffic_and_relays(seed):
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
    return Problem.of(machine, own, "time")


# Rings, trees and switches, on hosts and racks, behind thin uplinks.
REDUCTIONS = product(
    ("auto", "ring", "tree", "nvls"), ([3, 1, 2], [4, 4], [2, 2, 2, 1]), (False, True)
)


def own_reductions(case):
    """All-reduces of groups of several sizes that share ranks, in two kinds."""
    algorithm, racks, joined = case
    draw = np.random.default_rng(len(racks))
    machine = testing.racks(racks, joined=joined, oversubscription=4)
    ranks = machine.num_gpus - 1
    kinds = []
    for name, size in (("wide", 9), ("narrow", 4)):
        order = draw.permutation(ranks)
        rows = [order[at : at + size].tolist() for at in range(0, ranks, size)]
        sent = {"bytes": float(draw.choice([2e4, 3e6, 4e8])), "per_step": 3}
        kind = {"name": name, "collective": "all_reduce", "ranks": rows}
        kinds.append(kind | sent | {"overlap": name == "wide"})
    how = {"all_reduce": algorithm}
    job = testing.job(launcher="free", dp=ranks, collectives=how, groups=kinds)
    return Problem.of(machine, job, "time")


def workloads(seed):
    """Instances of roles with groups of their own, and all patterns of transfers."""
    rng = random.Random(seed)
    sizes, gpus = rng.choice(((2, 2), (1, 2, 3), (2, 1, 1))), rng.choice((3, 4))
    machine = three_levels(sizes, gpus)
    if seed % 3 == 0:
        speed = np.random.default_rng(seed).choice([1, 0.5, 0.8], machine.num_nodes)
        machine = replace(machine, compute_factor=speed)
    job = random_workload(rng)
    while job.world_size > machine.num_gpus:
        job = random_workload(rng)
    return Problem.of(machine, job, "time")


def units(seed):
    """Fragmented machines, whose slots take tp groups or halves of them.

    The last pair of ranks has a group of its own.
    """
    rng = random.Random(seed)
    machine = fragmented(rng)
    job = matching_job(rng, machine, "time")
    pair = (job.world_size - 2, job.world_size - 1)
    own = Group("pair", "all_reduce", 1e8, 1.0, False, (pair,))
    return Problem.of(machine, replace(job, groups=(own,)), "time")


def attacked(seed):
    """Islands, lost nodes, traffic and both objectives, tiny."""
    case = drawn(seed)
    return Problem.of(case.topology, case.job, case.objective)


def slots_of(problem, size):
    """Consecutive ranks as units, on consecutive GPUs of nodes; or every rank alone."""
    machine = problem.machine
    nodes = zip(machine.first_gpu_of_node, machine.gpus_of_node, strict=False)
    slots = [
        np.arange(first, first + size)
        for start, gpus in nodes
        for first in range(start, start + gpus - size + 1, size)
    ]
    return Slots(np.arange(problem.job.world_size).reshape(-1, size), np.array(slots))


# Draw, the case, and how many changes are made.
CASES = [
    *((traffic_and_relays, seed, 10) for seed in range(6)),
    *((own_reductions, case, 6) for case in REDUCTIONS),
    *((workloads, seed, 8) for seed in range(12)),
    *((step_times, seed, 6) for seed in range(24)),
    *slow((step_times, seed, 50) for seed in range(24, 240)),
    *((units, seed, 8) for seed in range(8)),
    *((attacked, seed, 6) for seed in range(40)),
]
# What the compiled part prices itself, without a call of the scorer.
NATIVE = (own_reductions, workloads)


@pytest.mark.parametrize("case", CASES)
def test_what_is_known_after_random_changes_is_what_the_scorer_says(case):
    """Changes are made and some taken back; the hop cost is right to the bit."""
    drawn, seed, changes = case
    if (problem := drawn(seed)) is None:
        return
    size = 2 if drawn is units and problem.job.parallelism.tp % 2 == 0 else 1
    slots = slots_of(problem, size)
    if len(slots.gpus) < len(slots.ranks):
        pytest.skip("units do not fit")
    evaluator = compiled(problem, slots)
    assert evaluator is not None
    places, kernel = evaluator.slots, evaluator.kernel
    draw = np.random.default_rng(seed if isinstance(seed, int) else 0)
    evaluator.load(draw.permutation(len(places.gpus))[: len(places.ranks)])
    for takes in (False, False, True) * changes:
        before = evaluator.value
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
    last = problem.goal.value(places.gpu_of_rank(evaluator.slot_of_unit))
    assert problem.goal.name != "hop-cost" or evaluator.value == last
    assert drawn not in NATIVE or not kernel.calls_scorer
