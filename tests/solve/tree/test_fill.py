"""Filling the tree: whole units, capacities, as few domains as can be."""

from __future__ import annotations

import random
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
import pytest

from placer.solve.tree.capacity import whole_sets
from placer.solve.tree.fill import (
    choose_children,
    fill,
    fullest_first,
    tree_order,
)
from tests.solve.random_cases import machine_of, random_tiers

if TYPE_CHECKING:
    from placer.topology.model import Topology


def tree(rng: random.Random) -> Topology:
    """A machine of up to 4 tiers, nodes in any order."""
    gpus = [rng.randint(0, 8) for _ in range(rng.randint(1, 14))]
    gpus[0] = 8
    tiers = rng.randint(2, 4)
    rows: list[list[int]] = []
    below = list(range(len(gpus)))
    for _ in range(tiers - 2):
        count = max(below) + 1
        named = [rng.randrange(max(1, count // 2)) for _ in range(count)]
        first: dict[int, int] = {}
        rows.append([first.setdefault(named[d], len(first)) for d in below])
        below = rows[-1]
    rows.append([0] * len(gpus))
    return machine_of(gpus, rows, random_tiers(rng, tiers))


def best_choice(takes: list[int], amount: int) -> tuple[int, int]:
    """(children, left over) of the best set that holds ``amount``."""
    for count in range(len(takes) + 1):
        sums = [sum(chosen) for chosen in combinations(takes, count)]
        if any(total >= amount for total in sums):
            return count, min(total for total in sums if total >= amount) - amount
    raise AssertionError("it does not fit")


@pytest.mark.parametrize("seed", range(50))
def test_choice_of_children_is_the_best(seed: int) -> None:
    """The children chosen are as few as can be, and of those the least is left over."""
    rng = random.Random(seed)
    unit = rng.choice((1, 1, 2, 4))
    takes = [unit * rng.randint(0, 9) for _ in range(rng.randint(1, 9))] + [unit]
    amount = rng.randint(1, sum(takes))
    share = choose_children(np.array(takes), amount)
    assert share.sum() == amount
    assert (share >= 0).all()
    assert (share <= takes).all()
    used = np.flatnonzero(share)
    left_over = sum(takes[child] for child in used) - amount
    assert (len(used), left_over) == best_choice(takes, amount)


def test_two_domains_that_fit_beat_the_largest() -> None:
    """20 pods on domains of 19, 10, 10 leave nothing over on 10 + 10."""
    share = choose_children(np.array([19, 10, 10]), 20)
    assert share.tolist() == [0, 10, 10]


def test_many_children() -> None:
    """Above the limit of the exact choice the number of children is still the least."""
    takes = np.array([5, 3] * 200)
    share = choose_children(takes, 603)
    assert share.sum() == 603
    assert np.count_nonzero(share) == 121
    assert (share <= takes).all()


@pytest.mark.parametrize("seed", range(40))
def test_fill_keeps_units_whole(seed: int) -> None:
    """Domains take consecutive whole units of the sequence, within their capacity."""
    rng = random.Random(seed)
    topology = tree(rng)
    num_tiers = len(topology.tiers)
    units = [rng.choice((1, 1, 2, 3))]
    for _ in range(num_tiers - 1):
        units.append(units[-1] * rng.choice((1, 1, 2)))
    units[-1] = units[-2]
    capacity = topology.gpus_of_node
    room = int(whole_sets(topology, capacity, units)[-1].sum())
    world = units[-1] * rng.randint(1, max(1, room // units[-1] + 1))
    sequence = np.array(rng.sample(range(world), world))
    node_of_rank = fill(topology, capacity, sequence, units)
    assert (node_of_rank is None) == (world > room)
    if node_of_rank is None:
        return
    held = np.bincount(node_of_rank, minlength=topology.num_nodes)
    assert (held <= capacity).all()
    along = node_of_rank[sequence]
    for t, unit in enumerate(units):
        domain = topology.domain_of_node[t][along]
        assert (np.bincount(domain) % unit == 0).all()
        changes = int((domain[1:] != domain[:-1]).sum())
        assert changes == len(np.unique(domain)) - 1
    racks = whole_sets(topology, capacity, units)[-2]
    descending = np.sort(racks)[::-1]
    fewest = int(np.searchsorted(np.cumsum(descending), world)) + 1
    used = np.unique(topology.domain_of_node[num_tiers - 2][node_of_rank])
    assert len(used) == fewest


def test_tree_order_keeps_domains_together() -> None:
    """Interleaved nodes are put side by side, domain by domain, in node order."""
    topology = machine_of(
        [1] * 8, [[0, 1] * 4, [0] * 8], random_tiers(random.Random(0), 3)
    )
    assert tree_order(topology).tolist() == [0, 2, 4, 6, 1, 3, 5, 7]


def test_the_fullest_domains_come_first_at_every_tier() -> None:
    """Blocks by what they hold, racks inside them likewise, and nodes inside those."""
    gpus, rack, block = [4, 2, 4, 4, 1, 4, 8], [0, 1, 1, 2, 2, 2, 3], [0] * 3 + [1] * 4
    rows = [rack, block, [0] * 7]
    topology = machine_of(gpus, rows, random_tiers(random.Random(1), 4))
    order = fullest_first(topology, topology.gpus_of_node)
    assert order.tolist() == [3, 5, 4, 6, 2, 1, 0]
