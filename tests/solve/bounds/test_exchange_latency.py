"""The least cost of an exchange of all with all: no placement has a lower one."""

from __future__ import annotations

import random

import numpy as np
import pytest

from placer.cost.exchange import all_to_all_cost
from placer.cost.fabric import Fabric
from placer.solve.bounds.network.ideal import IdealNetwork
from placer.solve.bounds.network.messages import exchange_latency
from tests.marks import slow
from tests.solve.random_cases import random_machine


@pytest.mark.parametrize("seed", [*range(25), *slow(range(25, 160))])
def test_no_placement_exchanges_faster(seed: int) -> None:
    """Groups at random on GPUs at random, with copies and without."""
    rng = random.Random(f"exchange {seed}")
    machine = random_machine(rng, rng.randint(2, 14), 6, (1, 2, 3, 4))
    gpus = int(machine.gpus_of_node.sum())
    size = rng.randint(1, gpus)
    world = gpus // size * size
    members = np.arange(world).reshape(-1, size)
    label = np.tile(np.arange(world), (len(machine.tiers), 1))
    fabric = Fabric.of(machine)
    ideal = IdealNetwork(fabric, label, machine.gpus_of_node)
    sent, copies = rng.choice((1.0, 1e6, 1e9)), rng.choice((0, 0, 1, 3))
    least = ideal.all_to_all(members, sent, copies).seconds.max()
    draw = np.random.default_rng(seed)
    for _ in range(50):
        placed = draw.permutation(gpus)[:world][members]
        cost = all_to_all_cost(fabric, placed, sent, copies).seconds.max()
        assert least <= cost * (1 + 1e-12)


def test_peers_beyond_a_node_take_two_microseconds() -> None:
    """Of 35 peers a node has three; another rack has none that a rack can hold."""
    latency, most = np.array([1e-6, 2e-6, 5e-6]), np.array([4, 72, 36])
    assert exchange_latency(latency, most) == pytest.approx(3e-6 + 32 * 2e-6)
    assert exchange_latency(latency, np.array([4, 18, 36])) == pytest.approx(
        3e-6 + 14 * 2e-6 + 18 * 5e-6
    )
