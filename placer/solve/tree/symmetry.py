"""Exchanges of equal domains, the one that is worth the most.

Domains are alike when their nodes have the same GPUs and speed, in the same tree, and
where uplinks are shared these are as wide. One that a link names is like no other.
Exchanging them changes no cost. What is exchanged is chosen by assignment: an exchange
of domain A for domain B is worth what the best assignment of A's children to B's is,
found from the nodes outwards; the choice is then read off from the outermost tier in.
Only pairs worth something matter, so the work grows with them and not with the square
of the nodes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from placer.base.arrays import IntArray
from placer.base.loading import load
from placer.solve.tree.capacity import parent_of_domain

if TYPE_CHECKING:
    from placer.topology.machine import Domains

Pair = tuple[int, int]


def on_other_nodes(
    machine: Domains, gpu_of_rank: IntArray, becomes: IntArray
) -> IntArray:
    """GPU of every rank, the same of another node; shape (R,).

    ``becomes`` has the node that each node becomes, one of as many GPUs.
    """
    node = machine.node_of_gpu[gpu_of_rank]
    first = machine.first_gpu_of_node
    return np.asarray(first[becomes[node]] + gpu_of_rank - first[node])


class Symmetry:
    """The exchanges of equal domains of one machine.

    Parameters
    ----------
    marks : ndarray, shape (N,), optional
        Numbers that also tell nodes apart, such as those of what rules say of them.
    """

    def __init__(self, topology: Domains, marks: IntArray | None = None) -> None:
        self.topology = topology
        self._marks = np.zeros(topology.num_nodes, int) if marks is None else marks

    @cached_property
    def parent(self) -> list[IntArray]:
        """Domain around each domain, by its tier; none for the outermost."""
        tiers = range(1, len(self.topology.tiers))
        return [parent_of_domain(self.topology, tier) for tier in tiers]

    @cached_property
    def children(self) -> list[list[list[int]]]:
        """Domains of the tier below inside each domain, by tier (none for nodes)."""
        found: list[list[list[int]]] = [[]]
        for parent in self.parent:
            inside: list[list[int]] = [[] for _ in range(int(parent.max()) + 1)]
            for child, domain in enumerate(parent.tolist()):
                inside[domain].append(child)
            found.append(inside)
        return found

    @cached_property
    def shape(self) -> list[list[int]]:
        """Number of each domain's shape, by tier: equal numbers mean alike."""
        topology = self.topology
        nodes = topology.gpus_of_node, topology.kind_of_node, self._marks
        shapes = [_numbered([*zip(*(row.tolist() for row in nodes), strict=True)])]
        shared = any(tier.oversubscription != 1 for tier in topology.tiers)
        for tier, inside in enumerate(self.children[1:], start=1):
            below = shapes[-1]
            uplinks = topology.uplinks(tier) if shared else np.zeros(len(inside))
            shapes.append(
                _numbered(
                    [
                        (uplink, *sorted(below[child] for child in children))
                        for uplink, children in zip(
                            uplinks.tolist(), inside, strict=True
                        )
                    ]
                )
            )
        return shapes

    def exchange(self, worth: Mapping[Pair, int]) -> IntArray:
        """New node of every node in the exchange worth the most; shape (N,).

        Nodes that need not move stay.

        Parameters
        ----------
        worth : mapping of (int, int) to int
            What it is worth, above 0, that a node becomes another; nothing for others.
        """
        worth = {pair: value for pair, value in worth.items() if self._alike(0, pair)}
        chosen: list[dict[Pair, list[Pair]]] = []
        for tier, parent in enumerate(self.parent, start=1):
            inside: dict[Pair, dict[Pair, int]] = defaultdict(dict)
            for (a, b), value in worth.items():
                inside[int(parent[a]), int(parent[b])][a, b] = value
            chosen.append(
                {
                    pair: best_pairs(own)
                    for pair, own in inside.items()
                    if self._alike(tier, pair)
                }
            )
            worth = {
                pair: sum(inside[pair][child] for child in children)
                for pair, children in chosen[-1].items()
            }
        becomes = np.arange(self.topology.num_nodes)
        pairs = [(0, 0)]
        for tier in range(len(chosen), 0, -1):
            pairs = [
                child
                for pair in pairs
                for child in self._matched(tier, pair, chosen[tier - 1])
            ]
        for node, new in pairs:
            becomes[node] = new
        return becomes

    def _alike(self, tier: int, pair: Pair) -> bool:
        shape = self.shape[tier]
        return shape[pair[0]] == shape[pair[1]]

    def _matched(
        self, tier: int, pair: Pair, chosen: Mapping[Pair, list[Pair]]
    ) -> Iterable[Pair]:
        """The pairs of children of a pair; none where all stay as they are."""
        a, b = pair
        if a == b and pair not in chosen:
            return ()
        children = self.children[tier]
        best = chosen.get(pair, [])
        matched = completed(best, children[a], children[b], self.shape[tier - 1])
        return matched.items()


def best_pairs(weights: Mapping[Pair, int]) -> list[Pair]:
    """Pairs of the largest total weight, each left and each right in one at most.

    A flow of least cost: every left sends one unit to a right, at the price of what the
    pair falls short of the largest weight, or past all of them at that weight.
    """
    left = {a: i for i, a in enumerate(dict.fromkeys(a for a, _ in weights))}
    right = {b: i for i, b in enumerate(dict.fromkeys(b for _, b in weights))}
    if len(weights) == len(left) == len(right):  # none competes with another
        return list(weights)
    source, sink = 0, len(left) + len(right) + 1
    first_right = len(left) + 1
    top = max(weights.values())
    flow = load("ortools.graph.python.min_cost_flow").SimpleMinCostFlow()
    arcs = {
        pair: flow.add_arc_with_capacity_and_unit_cost(
            left[pair[0]] + 1, right[pair[1]] + first_right, 1, top - weight
        )
        for pair, weight in weights.items()
    }
    for i in range(len(left)):
        flow.add_arc_with_capacity_and_unit_cost(source, i + 1, 1, 0)
        flow.add_arc_with_capacity_and_unit_cost(i + 1, sink, 1, top)
    for i in range(len(right)):
        flow.add_arc_with_capacity_and_unit_cost(first_right + i, sink, 1, 0)
    flow.set_node_supply(source, len(left))
    flow.set_node_supply(sink, -len(left))
    flow.solve()
    return [pair for pair, arc in arcs.items() if flow.flow(arc)]


def completed(
    pairs: Iterable[Pair],
    left: Iterable[int],
    right: Iterable[int],
    kind: Sequence[int] | IntArray,
) -> dict[int, int]:
    """``pairs``, and a partner of its kind for every other left.

    That is itself where it can be, else the next in order. Both sides have as many of
    each kind.
    """
    found = dict(pairs)
    free = dict.fromkeys(right)
    for b in found.values():
        del free[b]
    others = [a for a in left if a not in found]
    for a in others:
        if a in free:
            found[a] = a
            del free[a]
    of_kind = defaultdict(list)
    for b in free:
        of_kind[kind[b]].append(b)
    queues = {key: iter(members) for key, members in of_kind.items()}
    for a in others:
        if a not in found:
            found[a] = next(queues[kind[a]])
    return found


def _numbered(keys: list[tuple[float, ...]]) -> list[int]:
    number: dict[tuple[float, ...], int] = {}
    return [number.setdefault(key, len(number)) for key in keys]
