"""The least cost of an all-reduce in racks: no placement has a lower one."""

from __future__ import annotations

import random

import numpy as np
import pytest

from placer.cost.fabric import Fabric
from placer.cost.network import PlacedNetwork
from placer.solve.bounds.network.ideal import IdealNetwork
from tests.marks import slow
from tests.solve.test_workloads import machine_of


def networks(racks: list[int], block: int, size: int) -> tuple[IdealNetwork, Fabric]:
    machine = machine_of(racks, block, "900GB/s")
    fabric = Fabric.of(machine)
    label = np.tile(np.arange(size), (len(machine.tiers), 1))
    return IdealNetwork(fabric, label, machine.gpus_of_node), fabric


@pytest.mark.parametrize("seed", [*range(30), *slow(range(30, 130))])
def test_no_placement_reduces_faster(seed: int) -> None:
    """One group on GPUs at random, most of them near one another."""
    rng = random.Random(f"all-reduce {seed}")
    block = rng.choice((2, 3, 4, 8))
    racks = [rng.randrange(1, 7) for _ in range(rng.randrange(2, 5))]
    gpus = sum(racks) * block
    size = rng.randrange(2, min(gpus, 40) + 1)
    sent = rng.choice((1e3, 1e5, 1e6, 1e7, 1e9))
    name = rng.choice(("auto", "auto", "auto", "nvls", "ring", "tree"))
    ideal, fabric = networks(racks, block, size)
    members = np.arange(size)[None]
    least = ideal.all_reduce(members, sent, name).seconds.max()
    draw = np.random.default_rng(seed)
    for number in range(60):
        at = draw.permutation(gpus)[:size]
        if number % 2:
            first = draw.integers(gpus - size + 1)
            at = np.arange(first, first + size)
        cost = PlacedNetwork(fabric, at).all_reduce(members, sent, name)
        assert least <= cost.seconds.max() * (1 + 1e-12), seed
