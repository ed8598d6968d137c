"""Launches by nodes that do not hold all groups whole: cut where nodes end."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from placer.job.axes import Parallelism
from placer.job.model import Compute, Job
from placer.placement.check import violations
from placer.solve.construct.by_nodes.cut_at_nodes import (
    Chain,
    chains_of,
    cut_fills,
    fewest_cut_chains,
)
from placer.solve.problem.compiled import Problem
from placer.topology.model import Tier
from tests.solve.machines import MODEL, machine_of_islands
from tests.solve.random_cases import machine_of
from tests.solve.solving import solve

TIERS = [
    Tier("node", 450e9, 1e-6, True, 1.0, 0.8, 1.0),
    Tier("leaf", 50e9, 5e-6, False, 1.0, 1.0, 9.0),
    Tier("cluster", 50e9, 8e-6, False, 1.0, 1.0, 11.0),
]
# Twelve groups: eight nodes hold one each, of the six others three hold two.
GPUS = [8, 8, 7, 8, 7, 8, 7] * 2
MACHINE = machine_of(GPUS, [[0] * 7 + [1] * 7, [0] * 14], TIERS)
JOB = Job(
    "dense",
    Parallelism(tp=8, pp=4, dp=3, order=("tp", "cp", "ep", "pp", "dp")),
    MODEL,
    4096,
    micro_batches=8,
    compute=Compute(micro_batch_time=0.05),
)


def parts_of(gpu_of_rank: np.ndarray) -> list[list[int]]:
    """Members of each tp group on each node that it touches, in order."""
    node = MACHINE.node_of_gpu[gpu_of_rank].reshape(-1, 8)
    return [np.unique(row, return_counts=True)[1].tolist() for row in node]


def test_two_groups_on_three_nodes_have_no_part_below_three() -> None:
    """4, then 4 and 3, then 5: two stages on three nodes, and no other group is cut."""
    problem = Problem.of(MACHINE, JOB)
    fills = [gpu_of_rank for _, gpu_of_rank in cut_fills(problem)]
    best = parts_of(min(fills, key=problem.goal.value))
    assert sorted(len(parts) for parts in best) == [1] * 8 + [2] * 4
    assert min(min(parts) for parts in best) == 3


@pytest.mark.slow
def test_the_step_is_near_its_bound() -> None:
    """In order, groups are cut into 7 and 1, and steps take up to twice as long."""
    found, problem = solve(MACHINE, JOB), Problem.of(MACHINE, JOB)
    assert not violations(found.placement, MACHINE, JOB)
    best = min(problem.goal.value(gpu_of_rank) for _, gpu_of_rank in cut_fills(problem))
    assert found.value <= best
    assert found.lower_bound > 0.96 * best


@pytest.mark.parametrize("least", [1, 2, 3, 4])
def test_chains_hold_their_units_in_parts_no_smaller(least: int) -> None:
    """No node holds more than its GPUs, no part of a unit is below the least."""
    for units in (1, 2, 3):
        for chain in chains_of(units, 8, least, ((3,), (7,))):
            assert sum(chain.held) == 8 * units
            for held, node in zip(chain.held, chain.nodes, strict=True):
                assert held <= sum(node)
            home = np.repeat(np.arange(len(chain.held)), chain.held).reshape(units, 8)
            for unit in home:
                assert np.unique(unit, return_counts=True)[1].min() >= least


def test_chains_with_few_slow_groups_are_chosen() -> None:
    """On nodes of 7 all groups of 8 are cut: one in four has a part of two, no more."""
    assert Chain(2, (5, 6, 5), ((7,), (7,), (7,))).slowness == pytest.approx(
        [4 / 3, 4 / 3]
    )
    found = fewest_cut_chains([(7,)] * 52, 8, 320, 5)
    assert found is not None
    least, chains = found
    slowness = [one for chain in chains for one in chain.slowness]
    assert (least, len(slowness)) == (2, 40)
    assert slowness.count(2.0) <= 10


def test_groups_are_cut_between_islands_of_hosts_in_turn() -> None:
    """Islands of 4 and 3, then of 3 and 4: one group of two lies on two hosts."""
    tiers = (
        Tier("island", 450e9, 1e-6, True, 1.0, 0.8, 1.0),
        Tier("node", 60e9, 2e-6, False, 1.0, 0.8, 4.0),
        Tier("cluster", 50e9, 8e-6, False, 1.0, 1.0, 9.0),
    )
    hosts = replace(machine_of_islands([(4, 3), (4, 4), (3, 4), (3, 3)]), tiers=tiers)
    job = replace(JOB, parallelism=Parallelism(tp=2, dp=14), launcher="node-contiguous")
    problem, fewest = Problem.of(hosts, job), 14
    for _, gpu_of_rank in cut_fills(problem):
        assert problem.allows(gpu_of_rank)
        island = hosts.node_of_gpu[gpu_of_rank].reshape(-1, 2)
        fewest = min(fewest, int((island[:, 0] != island[:, 1]).sum()))
    assert fewest == 2  # the other one lies on two islands of three


def test_a_unit_between_islands_of_a_host_is_not_cut() -> None:
    """A host of 4 + 4 holds a unit of 8; one on two hosts of 3 + 4 is cut, evenly."""
    assert Chain(1, (4, 4), ((4, 4),)).cut == []
    apart = Chain(1, (0, 4, 0, 4), ((3, 4), (3, 4)))
    assert apart.cut == [0]
    assert apart.slowness == [1.0]
