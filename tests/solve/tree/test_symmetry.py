"""Exchanges of equal domains, against all permutations of tiny machines."""

from __future__ import annotations

import random
from itertools import permutations
from typing import TYPE_CHECKING

import numpy as np
import pytest

from placer import read_topology
from placer.solve.tree.symmetry import Symmetry
from tests.solve.random_cases import random_machine

if TYPE_CHECKING:
    from placer.topology.model import Topology


def is_symmetry(topology: Topology, becomes: tuple[int, ...]) -> bool:
    """Whether nodes keep their GPUs and speed, and domains stay together, both ways."""
    for node, new in enumerate(becomes):
        if topology.gpus_of_node[node] != topology.gpus_of_node[new]:
            return False
        if topology.bandwidth_factor[node] != topology.bandwidth_factor[new]:
            return False
    for row in topology.domain_of_node:
        pairs = {(row[node], row[new]) for node, new in enumerate(becomes)}
        if len(pairs) != len(set(row.tolist())):
            return False
    return True


@pytest.mark.parametrize("seed", range(20))
def test_finds_an_exchange_exactly_when_there_is_one(seed: int) -> None:
    """An exchange is a symmetry that brings nodes home, found if any permutation is."""
    rng = random.Random(seed)
    topology = random_machine(rng, 8, 6, (1, 2, 2))
    nodes = range(topology.num_nodes)
    homes = {
        node: frozenset(rng.sample(nodes, rng.randint(1, min(2, len(nodes)))))
        for node in rng.sample(nodes, rng.randint(1, min(3, len(nodes))))
    }
    found = Symmetry(topology).exchange(homes)
    possible = any(
        all(becomes[node] in targets for node, targets in homes.items())
        and is_symmetry(topology, becomes)
        for becomes in permutations(nodes)
    )
    assert (found is not None) == possible
    if found is not None:
        assert sorted(found) == list(nodes)
        assert is_symmetry(topology, tuple(found.tolist()))
        assert all(int(found[node]) in targets for node, targets in homes.items())


def test_leaves_alone_what_need_not_move() -> None:
    """Domains that are not concerned stay where they are."""
    topology = read_topology("rack:8 node:4 gpu:2")
    found = Symmetry(topology).exchange({0: frozenset({5})})
    assert found is not None
    assert found[0] == 5
    assert np.array_equal(found[8:], np.arange(8, 32))
