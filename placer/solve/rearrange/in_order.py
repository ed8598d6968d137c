"""A placement with equal domains in the order of their first ranks.

Exchanges of equal domains cost nothing. People read a plan, though, and a worker on
``r01t[01-09]`` is easier to find than one on ``r10t[18,15,13,...]``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from placer.base.arrays import IntArray
from placer.solve.tree.symmetry import Pair, Symmetry, on_other_nodes

if TYPE_CHECKING:
    from placer.solve.problem.compiled import Problem


def in_order(problem: Problem, gpu_of_rank: IntArray) -> IntArray:
    """The placement with equal domains exchanged; GPU of every rank, shape (R,)."""
    topology = problem.machine
    symmetry = Symmetry(topology)
    node = topology.node_of_gpu[gpu_of_rank]
    first = np.full(topology.num_nodes, len(node))
    np.minimum.at(first, node, np.arange(len(node)))
    firsts = [first]
    for parent in symmetry.parent:
        outer = np.full(int(parent.max()) + 1, len(node))
        np.minimum.at(outer, parent, firsts[-1])
        firsts.append(outer)
    becomes = np.arange(topology.num_nodes)
    pairs: list[Pair] = [(0, 0)]
    for tier in range(len(topology.tiers) - 1, 0, -1):
        pairs = [
            one for pair in pairs for one in _matched(symmetry, firsts, tier, pair)
        ]
    for old, new in pairs:
        becomes[old] = new
    return on_other_nodes(topology, gpu_of_rank, becomes)


def _matched(
    symmetry: Symmetry, firsts: list[IntArray], tier: int, pair: Pair
) -> Iterator[Pair]:
    """Each child of a domain, and the one of its shape that it becomes in another."""
    shape, first = symmetry.shape[tier - 1], firsts[tier - 1]
    queues: dict[int, list[int]] = defaultdict(list)
    for child in symmetry.children[tier][pair[1]]:
        queues[shape[child]].append(child)
    left = {kind: iter(members) for kind, members in queues.items()}
    for child in sorted(symmetry.children[tier][pair[0]], key=first.__getitem__):
        yield child, next(left[shape[child]])
