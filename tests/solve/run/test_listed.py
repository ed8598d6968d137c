"""The order in which hosts are listed does not change what is found."""

import random

import numpy as np
import pytest

import placer
from placer.topology.model import Tier
from placer.topology.submachine import Submachine
from tests.marks import slow
from tests.solve.random_cases import machine_of, random_case
from tests.solve.rules.draws import ruled_case


def shuffled(rng, hosts):
    return rng.sample(hosts, len(hosts))


def seats(result):
    """Value and bound, and host and GPU of every rank."""
    plan = result.plan
    names = [plan.nodes[node] for node in plan.node_of_rank]
    at = list(zip(names, plan.gpu_of_rank, strict=True))
    return result.bound["value"], result.bound["lower_bound"], at


@pytest.mark.parametrize("seed", [*range(5), *slow(range(5, 10))])
def test_listed_in_any_order(seed):
    """Random small cases, some ruled: host and GPU of every rank, value and bound."""
    rng, objective = random.Random(seed), ("time", "hop-cost")[seed % 2]
    draw = ruled_case if seed > 2 else random_case
    topology, job = draw(seed, objective, "small")
    try:
        first = placer.place(topology, job, objective=objective, effort="normal")
    except placer.InfeasibleError:
        pytest.skip("nothing fits")
    for _ in range(2):
        hosts = shuffled(rng, topology.node_names)
        found = placer.place(
            topology, job, hosts=hosts, objective=objective, effort="normal"
        )
        assert seats(found) == seats(first)


def test_names_with_numbers_of_any_width():
    """Racks and hosts come in the order of their numbers, however they are written."""
    rows = [[0] * 12, [0] * 12]
    tiers = [Tier(t, 1e9, 0.0, False, 1.0, 1.0, 1.0) for t in ("node", "r", "c")]
    topology = machine_of([1] * 12, rows, tiers)
    assert Submachine.by_name(topology).topology is topology
    turned = topology.select(np.arange(12)[::-1])
    by_name = Submachine.by_name(turned).topology
    assert by_name.node_names == topology.node_names
