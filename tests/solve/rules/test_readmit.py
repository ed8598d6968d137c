"""The fewest nodes to avoid that must be used, against every choice of them."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from placer.job.rules import Rules
from placer.solve.problem.colocation import colocation_of
from placer.solve.problem.packing import pack
from placer.solve.problem.rules import Limits
from placer.solve.rules.readmit import readmitted
from tests.solve.problem.test_packing import odd_job
from tests.solve.random_cases import random_machine


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


@pytest.mark.parametrize("avoid", [("n0",), ("n0", "n5")])
def test_hosts_that_have_to_be_used_leave_a_placement_no_worse_than_the_order(
    avoid: tuple[str, ...],
) -> None:
    """A job that fills the machine: constructions are tried on all its hosts."""
    machine = parse_topology(FULL, "full.yaml")
    rules = {"rules": {"avoid": [*avoid]}, "launcher": {"ranks": "free"}}
    shape = {"parallelism": {"tp": 4, "pp": 4, "dp": 4}}
    best = placer.place(machine, shape, objective="hop-cost", effort="full").plan
    found = placer.place(machine, shape | rules, objective="hop-cost", effort="full").plan
    assert found.bound["value"] == best.bound["value"]


def test_a_seat_that_cuts_groups_is_annealed() -> None:
    """Ranks of two tp groups are pinned to one node: parts of groups move."""
    machine = parse_topology(FULL, "full.yaml")
    shape = {"parallelism": {"tp": 2, "cp": 2, "pp": 2, "dp": 5}}
    rules = {"pin": [{"ranks": "1,9", "hosts": "n3"}], "spares": {"rack": 1}}
    job = shape | {"rules": rules, "launcher": {"ranks": "free"}}
    bound = placer.place(machine, job, objective="hop-cost", effort="full").plan.bound
    assert bound["value"] <= 1.2 * bound["lower_bound"]
