"""The best network imaginable: no placement is faster on the real one."""

import random
from collections.abc import Callable

import numpy as np
import pytest

from placer.cost.fabric import Fabric
from placer.cost.least_links import LeastLinks
from placer.cost.links import Cost
from placer.cost.network import Network, PlacedNetwork
from placer.solve.bounds.ideal import IdealNetwork
from tests.marks import slow
from tests.solve.random_cases import random_machine
from tests.solve.random_workloads import three_levels

Call = Callable[[Network], Cost]


def call_of(rng, kind, world):
    """Groups at random, or flows of any sizes."""
    sent = rng.choice((1.0, 1e3, 1e5, 1e6, 1e7, 1e9))
    if kind == "all-reduce":
        members = np.arange(min(world, rng.randint(2, 40)))[None]
        name = rng.choice(("auto", "auto", "auto", "nvls", "ring", "tree"))
        return lambda network: network.all_reduce(members, sent, name)
    if kind == "all-to-all":
        size, copies = rng.randint(1, world), rng.choice((0, 0, 1, 3))
        rows = np.arange(world // size * size).reshape(-1, size)
        return lambda network: network.all_to_all(rows, sent, copies)
    draw = np.random.default_rng(rng.randrange(10**6))
    pairs = draw.integers(world, size=(rng.randint(2, 3 * world), 2))
    pairs[:, 1] += pairs[:, 0] == pairs[:, 1]
    ends = np.unique(pairs % world, axis=0).T
    sizes = draw.exponential(1e7, ends.shape[1])
    return lambda network: network.flows(*ends, sizes)


# In 66 switches reduce over two domains that hold unequal parts of a group.
SEEDS = [*range(20), 66, *slow(seed for seed in range(20, 120) if seed != 66)]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", ["all-reduce", "all-to-all", "flows"])
def test_no_placement_is_faster(kind, seed):
    """On GPUs at random, half of the time near one another."""
    rng = random.Random(f"{kind} {seed}")
    if rng.random() < 0.5:
        sizes = [rng.randint(1, 6) for _ in range(rng.randint(2, 4))]
        machine = three_levels(sizes, rng.choice((2, 3, 4, 8)), nvlink=900e9)
    else:
        machine = random_machine(rng, rng.randint(2, 14), 6, (1, 2, 3, 4))
    gpus = machine.num_gpus
    if gpus < 2:
        return
    world = rng.randint(2, gpus)
    call, fabric = call_of(rng, kind, world), Fabric.of(machine)
    label = np.tile(np.arange(world), (len(machine.tiers), 1))
    ideal = IdealNetwork(fabric, label, machine.gpus_of_node)
    whole = [*label[:-1], 0 * label[-1]]  # the outermost domain holds all
    networks = ideal, LeastLinks(fabric, whole, runs=False)
    least = max(call(network).seconds.max() for network in networks)
    draw = np.random.default_rng(seed)
    for number in range(40):
        placed = draw.permutation(gpus)[:world]
        if number % 2:
            placed = np.arange(world) + draw.integers(gpus - world + 1)
        cost = call(PlacedNetwork(fabric, placed)).seconds.max()
        assert least <= cost * (1 + 1e-12)
