"""The fewest nodes to avoid that must be used, against every choice of them."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
import pytest

import placer
from placer.job.axes import Parallelism
from placer.job.model import Job
from placer.job.rules import Pin, Rules
from placer.solve.problem.colocation import colocation_of
from placer.solve.problem.packing import pack
from placer.solve.problem.rules import Limits
from placer.solve.rules.readmit import readmitted
from tests.solve.problem.test_packing import odd_job
from tests.solve.random_cases import random_machine
from tests.solve.solving import solve

if TYPE_CHECKING:
    from placer.solve.run.solution import Solution


@pytest.mark.parametrize("seed", range(40))
def test_as_few_as_can_be(seed: int) -> None:
    """So many are readmitted as the smallest set with which a packing exists."""
    rng = random.Random(seed)
    world = rng.choice((5, 6, 7))
    topology = random_machine(rng, world, 3, (1, 2, 3, 4))
    names = topology.node_names
    avoid = tuple(rng.sample(names, rng.randint(1, len(names))))
    job = replace(odd_job(rng, topology, world), rules=Rules(avoid=avoid))
    limits, colocation = Limits.of(topology, job), colocation_of(topology, job, 1)
    avoided = np.flatnonzero(limits.avoided).tolist()

    def fits(used: tuple[int, ...]) -> bool:
        capacity = np.where(limits.avoided, 0, topology.gpus_of_node)
        capacity[list(used)] = topology.gpus_of_node[list(used)]
        return pack(topology, colocation, capacity) is not None

    sizes = range(len(avoided) + 1)
    fewest = next((n for n in sizes if any(map(fits, combinations(avoided, n)))), None)
    found = readmitted(limits, job)
    if fewest is None:
        assert found is None
        return
    assert found is not None
    assert len(found) == fewest
    assert fits(tuple(found.tolist()))


MACHINE = placer.read_topology("rack:4 node:4 gpu:4")


def hops_of(rules: Rules, **degrees: int) -> Solution:
    """What is found of a free launch on four racks of four nodes."""
    axes, weights = Parallelism(**degrees), {"tp": 4000, "cp": 400, "pp": 40, "dp": 4}
    job = Job("job", axes, launcher="free", weights=weights, rules=rules)
    return solve(MACHINE, job, objective="hop-cost")


@pytest.mark.parametrize("avoided", [1, 2])
def test_a_full_machine_costs_no_more_for_hosts_to_avoid(avoided: int) -> None:
    """They have to be used: constructions are tried on all hosts."""
    rules = Rules(avoid=tuple(MACHINE.node_names[: 5 * avoided : 5]))
    found, best = (hops_of(one, tp=4, pp=4, dp=4) for one in (rules, Rules()))
    assert found.value == best.value


def test_a_seat_that_cuts_groups_is_annealed() -> None:
    """Ranks of two tp groups are pinned to one node: parts of groups move."""
    pin = Pin((1, 9), (MACHINE.node_names[3],))
    found = hops_of(Rules(pin=(pin,), spares={"rack": 1}), tp=2, cp=2, pp=2, dp=5)
    assert found.value <= 1.2 * found.lower_bound
