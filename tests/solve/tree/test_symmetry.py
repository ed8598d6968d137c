"""Exchanges of equal domains, against all permutations of tiny machines."""

import random

import numpy as np
import pytest

from placer.solve.tree.symmetry import Symmetry
from tests.allocation.machines import racks
from tests.solve.oracle import symmetries
from tests.solve.random_cases import random_machine


@pytest.mark.parametrize("seed", range(20))
def test_brings_home_as_many_as_any_exchange(seed):
    """The exchange found is a symmetry, and no other brings more nodes home."""
    rng = random.Random(seed)
    topology = random_machine(rng, 8, 6, (1, 2, 2))
    nodes = range(topology.num_nodes)
    homes = {
        node: frozenset(rng.sample(nodes, rng.randint(1, min(2, len(nodes)))))
        for node in rng.sample(nodes, rng.randint(1, min(3, len(nodes))))
    }
    worth = {(node, home): 1 for node, own in homes.items() for home in own}
    found = Symmetry(topology).exchange(worth)
    every = symmetries(topology)
    most = max(
        sum(becomes[node] in targets for node, targets in homes.items())
        for becomes in every
    )
    assert tuple(found.tolist()) in every
    assert sum(int(found[node]) in own for node, own in homes.items()) == most


@pytest.mark.parametrize(("oversubscription", "alike"), [(1, True), (2, False)])
def test_domains_with_unequal_uplinks_are_not_alike(oversubscription, alike):
    """A rack that lost half its nodes keeps its uplink: it is no small rack."""
    whole = racks({"a": 8, "b": 4}, joined=False, oversubscription=oversubscription)
    left = whole.select(np.array([0, 1, 2, 3, 8, 9, 10, 11]))
    first, second = Symmetry(left).shape[1]
    assert (first == second) == alike
