"""The model of homes: optimal hop costs, bounds that hold, exact group times."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from placer.job.axes import Parallelism
from placer.job.model import Collectives, Compute, Job
from placer.job.traffic import Group
from placer.placement.check import violations
from placer.placement.placement import Placement
from placer.solve.exact.enumeration import enumerated
from placer.solve.exact.exact import Exact, best_assignment, exact
from placer.solve.problem.compiled import Problem
from placer.solve.run.budget import Budget
from placer.topology.model import Tier
from tests.solve.oracle import gpus_of, hop_cost, least, legal_placements, step_time
from tests.solve.random_cases import machine_of, random_case, random_groups
from tests.solve.solving import known, with_colocation

if TYPE_CHECKING:
    from placer.solve.search import Method
    from placer.topology.model import Topology

ROUNDING = 1e-9
CHUNK = 25
COSTS = {"time": step_time, "hop-cost": hop_cost}


def small_case(seed: int, objective: str) -> tuple[Topology, Job]:
    """A random job; for time one that has groups of its own and nothing else."""
    topology, job = random_case(seed, objective)
    if objective == "hop-cost":
        return topology, job
    groups = job.groups or random_groups(random.Random(seed), job.world_size)
    named = {group.name for group in groups} - {group.name for group in job.groups}
    require = {axis: tier for axis, tier in job.require.items() if axis not in named}
    return topology, replace(job, model=None, groups=groups, require=require)


def check_case(seed: int, objective: str) -> bool:
    """Compare every block's model with all placements; whether there was a model."""
    topology, job = small_case(seed, objective)
    legal = legal_placements(topology, job)
    if not legal:
        return False
    best = least(topology, job, objective, legal)
    problem = Problem.of(topology, job, objective).with_params(exact_work=4.0)
    start = np.array(gpus_of(topology, legal[-1]))
    found_any = False
    for colocation in problem.choices:
        found = best_assignment(
            with_colocation(problem, colocation), start, Budget(60.0)
        )
        if found is None:
            continue
        found_any = True
        holds = colocation.block in (1, problem.forced_block)
        assert not holds or found.bound <= best * (1 + ROUNDING), seed
        assert found.gpu_of_rank is not None, seed
        broken = violations(Placement(found.gpu_of_rank), topology, job)
        assert not broken or job.launcher != "free", (seed, broken)
        if not broken:
            nodes = tuple(topology.node_of_gpu[found.gpu_of_rank].tolist())
            value = COSTS[objective](topology, job, nodes)
            assert value >= best * (1 - ROUNDING), seed
            if holds and objective == "hop-cost":
                assert value == pytest.approx(best, rel=ROUNDING), seed
                assert found.bound == pytest.approx(best, rel=ROUNDING), seed
    return found_any


@pytest.mark.parametrize("objective", ["time", "hop-cost"])
def test_no_placement_is_better(objective: str) -> None:
    """Bounds hold for all legal placements, and hop costs are the least of them."""
    assert sum(check_case(seed, objective) for seed in range(40)) > 10


@pytest.mark.slow
@pytest.mark.parametrize("objective", ["time", "hop-cost"])
@pytest.mark.parametrize("first", range(40, 140, CHUNK))
def test_no_placement_is_better_at_length(first: int, objective: str) -> None:
    """The same for many more jobs."""
    for seed in range(first, first + CHUNK):
        check_case(seed, objective)


TIERS = [
    Tier("node", 100e9, 0.0, False, 1.0, 1.0, 1.0),
    Tier("rack", 10e9, 0.0, False, 1.0, 1.0, 3.0),
    Tier("cluster", 1e9, 0.0, False, 1.0, 1.0, 10.0),
]


def machine(racks: list[int], gpus: int = 1) -> Topology:
    """Racks of so many nodes."""
    rack = [r for r, size in enumerate(racks) for _ in range(size)]
    return machine_of([gpus] * len(rack), [rack, [0] * len(rack)], TIERS)


def solved(topology: Topology, job: Job, objective: str) -> tuple[Exact, float]:
    """What the model finds from ranks in order, and the value of that placement."""
    problem = Problem.of(topology, job, objective).with_params(exact_work=4.0)
    assert problem.choices
    found = best_assignment(problem, np.arange(job.world_size), Budget(60.0))
    assert found is not None
    assert found.gpu_of_rank is not None
    return found, problem.goal.value(found.gpu_of_rank)


def test_a_ring_over_uneven_racks() -> None:
    """Twelve ranks on racks of 5, 4, 4 nodes: three hops between racks, nine inside."""
    job = Job("ring", Parallelism(dp=12), weights={"dp": 2.0})
    found, value = solved(machine([5, 4, 4]), job, "hop-cost")
    assert value == found.bound == 2.0 * (9 * 3 + 3 * 10)


def test_a_grid_of_chains_and_rings() -> None:
    """4 x 4 ranks on two racks of 8: a ring cut twice a stage beats cut chains.

    Two replicas a rack leave the four rings of 4 with two hops between racks each;
    stages 0-1 and 2-3 would cut the four chains once each, at five times the weight.
    """
    sizes = Parallelism(pp=4, dp=4, order=("tp", "cp", "ep", "pp", "dp"))
    job = Job("grid", sizes, weights={"pp": 5.0, "dp": 1.0})
    found, value = solved(machine([8, 8]), job, "hop-cost")
    hops = 3 * (12 * 5 + 16 * 1) + 7 * (4 * 2 * 1)
    assert value == found.bound == hops


def test_ranks_of_a_requirement_move_as_one() -> None:
    """Pairs tied to a rack leave two racks of 3 room for one pair each."""
    order = ("tp", "cp", "ep", "pp", "dp")
    job = Job(
        "pairs",
        Parallelism(tp=2, dp=3, etp=2, order=order),
        require={"tp": "rack"},
        launcher="free",
        weights={"tp": 0.1, "dp": 1.0},
    )
    topology = machine([3, 3, 2])
    found, value = solved(topology, job, "hop-cost")
    rack = topology.domain_of_gpu[1][found.gpu_of_rank]
    assert (rack[0::2] == rack[1::2]).all()
    assert len(set(rack[0::2].tolist())) == 3
    assert value == pytest.approx(3 * 0.1 * 3 + 6 * 1.0 * 10)
    assert found.bound == pytest.approx(value, rel=ROUNDING)


def group_job(world: int, *groups: Group) -> Job:
    """A job of single ranks with groups of its own."""
    return Job(
        "groups", Parallelism(dp=world), groups=groups, collectives=Collectives("ring")
    )


def test_relays_cross_as_seldom_as_can_be() -> None:
    """Three relays of 4 on racks of 6: one must change the rack, once, and it counts.

    A hop takes 0.1 s in a rack and 1 s between racks.
    """
    rows = tuple(tuple(range(4 * i, 4 * i + 4)) for i in range(3))
    job = group_job(12, Group("relay", "relay", 1e9, 1.0, False, rows))
    found, value = solved(machine([6, 6]), job, "time")
    assert value == pytest.approx(0.2 + 1.0)
    assert found.bound == pytest.approx(value, rel=ROUNDING)


def test_one_slow_message_is_enough() -> None:
    """With all messages at once a second crossing costs nothing more."""
    rows = tuple(tuple(range(4 * i, 4 * i + 4)) for i in range(3))
    job = group_job(12, Group("pairs", "send_recv", 1e9, 2.0, False, rows))
    found, value = solved(machine([6, 6]), job, "time")
    assert value == pytest.approx(2 * 1.0)
    assert found.bound == pytest.approx(value, rel=ROUNDING)


def test_the_dearer_of_two_kinds_stays_in_its_racks() -> None:
    """Rings of 4 in rows and relays of 4 in columns cannot both stay in racks of 4.

    A ring takes 2 x 3/4 of a message of 2 GB at the slowest hop: 0.3 s, or 3 s between
    racks; a relay of 1 GB messages 0.3 s, or 3 s when all three hops are between racks.
    """
    rows = tuple(tuple(range(4 * i, 4 * i + 4)) for i in range(4))
    columns = tuple(tuple(range(i, 16, 4)) for i in range(4))
    rings = Group("rings", "all_reduce", 4e9, 1.0, False, rows)
    relays = Group("relays", "relay", 1e9, 1.0, False, columns)
    found, value = solved(machine([4] * 4), group_job(16, rings, relays), "time")
    # Both at their worst 6 + 3; rings whole 0.6 + 3; relays whole 6 + 0.3; two by two
    # of each in a rack 6 + 1.2.
    assert value == pytest.approx(0.6 + 3.0)
    assert found.bound == pytest.approx(value, rel=ROUNDING)


def test_hidden_time_costs_nothing() -> None:
    """What a step of compute hides is not worth a crossing elsewhere."""
    pairs = Group("pairs", "relay", 1e9, 1.0, True, ((0, 1), (2, 3)))
    others = Group("others", "relay", 1e9, 1.0, False, ((0, 2), (1, 3)))
    job = replace(group_job(4, pairs, others), compute=Compute(micro_batch_time=0.75))
    found, value = solved(machine([2, 2]), job, "time")
    assert value == pytest.approx(0.75 + (1.0 - 0.75) + 0.1)
    assert found.bound == pytest.approx(value, rel=ROUNDING)


@pytest.mark.parametrize(
    ("method", "argument"), [(exact, "CP-SAT"), (enumerated, "ways to place 6 ranks")]
)
def test_each_method_finds_and_proves_the_best(method: Method, argument: str) -> None:
    """From ranks in any order, both offer the best placement and its proof.

    A ring of 6 on two racks of 3: two hops between racks, four inside.
    """
    job = Job("ring", Parallelism(dp=6), weights={"dp": 2.0}, launcher="free")
    problem = Problem.of(machine([3, 3]), job, "hop-cost")
    incumbent = known(problem, np.array([0, 3, 1, 4, 2, 5]))
    method(problem, incumbent, Budget(60.0))
    solution = incumbent.solution()
    assert solution.value == solution.lower_bound == 2.0 * (4 * 3 + 2 * 10)
    assert argument in solution.argument


def test_the_same_every_time() -> None:
    """Two searches that the work limit ends give the same placement and bound."""
    sizes = Parallelism(
        tp=2, cp=2, pp=2, dp=4, etp=2, order=("tp", "cp", "ep", "pp", "dp")
    )
    job = Job(
        "grid",
        sizes,
        launcher="free",
        weights={"tp": 20.6, "cp": 0.3, "pp": 0.1, "dp": 7.6},
    )
    topology = machine([9, 7, 6, 5, 6, 3])
    problem = Problem.of(topology, job, "hop-cost").with_params(exact_work=0.1)
    assert problem.choices
    start = np.arange(job.world_size)
    first, second = (best_assignment(problem, start, Budget(60.0)) for _ in range(2))
    assert first is not None
    assert second is not None
    assert first.in_time
    assert first.bound == second.bound
    assert np.array_equal(first.gpu_of_rank, second.gpu_of_rank)
    assert first.gpu_of_rank is not None
    value = problem.goal.value
    assert value(first.gpu_of_rank) <= value(start)


def test_it_ends_when_asked_to() -> None:
    """A search that is stopped keeps its start and says that it was cut short."""
    sizes = Parallelism(pp=8, dp=5, order=("tp", "cp", "ep", "pp", "dp"))
    job = Job("grid", sizes, weights={"pp": 11.0, "dp": 760.0})
    topology = machine([7, 5, 6, 4, 7, 6, 8])
    problem = Problem.of(topology, job, "hop-cost").with_params(exact_work=1e9)
    assert problem.choices
    start = np.arange(40)
    found = best_assignment(problem, start, Budget(60.0, lambda: True))
    assert found is not None
    assert not found.in_time
    assert found.bound <= problem.goal.value(start)
