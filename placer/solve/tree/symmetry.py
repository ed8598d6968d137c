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
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import cached_property

import numpy as np

from placer.base.arrays import IntArray
from placer.base.loading import load
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

    ``marks`` ((N,)): numbers that also tell nodes apart, such as those of what rules
    say of them.
    """

    def __init__(self, topology: Domains, marks: IntArray | None = None) -> None:
        self.topology = topology
        self._marks = np.zeros(topology.num_nodes, int) if marks is None else marks

    @cached_property
    def children(self) -> list[list[list[int]]]:
        """Domains of the tier below inside each domain, by tier (none for nodes)."""
        found: list[list[list[int]]] = [[]]
        for parent in self.topology.domain_around:
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
        shapes = [numbered(zip(*(row.tolist() for row in nodes), strict=True))]
        shared = any(tier.oversubscription != 1 for tier in topology.tiers)
        for tier, inside in enumerate(self.children[1:], start=1):
            below = shapes[-1]
            uplinks = topology.uplinks(tier) if shared else np.zeros(len(inside))
            shapes.append(
                numbered(
                    (uplink, *sorted(below[child] for child in children))
                    for uplink, children in zip(uplinks.tolist(), inside, strict=True)
                )
            )
        return shapes

    def exchange(self, worth: Mapping[Pair, int]) -> IntArray:
        """New node of every node in the exchange worth the most; shape (N,).

        Nodes that need not move stay.

        ``worth``: what it is worth, above 0, that a node becomes another; nothing for
        others.
        """
        pairs = np.array([*worth], dtype=np.int64).reshape(-1, 2)
        value = np.array([*worth.values()], dtype=np.int64)
        chosen: list[dict[Pair, list[Pair]]] = []
        for parent, shape in zip(self.topology.domain_around, self.shape, strict=False):
            same = np.diff(np.array(shape)[pairs], axis=1)[:, 0] == 0
            pairs, value = pairs[same], value[same]
            outer, inside = np.unique(parent[pairs], axis=0, return_inverse=True)
            inside = inside.ravel()
            # Every two outer domains have an assignment of their own.
            best = best_pairs(inside[:, None] * len(parent) + pairs, value)
            own: dict[Pair, list[Pair]] = defaultdict(list)
            for (a, b), (c, d) in zip(
                outer[inside[best]].tolist(), pairs[best].tolist(), strict=True
            ):
                own[a, b].append((c, d))
            chosen.append(own)
            value = np.bincount(inside[best], value[best], len(outer)).astype(np.int64)
            pairs = outer

        def matched(tier: int, pair: Pair) -> Iterable[Pair]:
            """The pairs of children of a pair; none where all stay as they are."""
            best = chosen[tier - 1].get(pair, [])
            if pair[0] == pair[1] and not best:
                return ()
            a, b = (self.children[tier][one] for one in pair)
            return completed(best, a, b, self.shape[tier - 1]).items()

        return self.descended(matched)

    def descended(self, matched: Callable[[int, Pair], Iterable[Pair]]) -> IntArray:
        """New node of every node; shape (N,). Those that nobody names stay.

        ``matched`` has the pairs of children for a pair of domains of a tier.
        """
        pairs: list[Pair] = [(0, 0)]
        for tier in range(len(self.topology.domain_around), 0, -1):
            pairs = [child for pair in pairs for child in matched(tier, pair)]
        becomes = np.arange(self.topology.num_nodes)
        for old, new in pairs:
            becomes[old] = new
        return becomes


def best_pairs(pairs: IntArray, weight: IntArray) -> IntArray:
    """Which pairs have the largest total weight, no left or right in two of them.

    A flow of least cost: every left sends one unit to a right, at the price of what the
    pair falls short of the largest weight, or past all of them at that weight.
    """
    (lefts, tail), (rights, head) = (
        np.unique(own, return_inverse=True) for own in pairs.T
    )
    if len(weight) == len(lefts) == len(rights):  # none competes with another
        return np.arange(len(weight))
    top, sink = weight.max(), len(lefts) + len(rights)
    ends = np.arange(sink)
    tails = np.concatenate((tail, ends))
    heads = np.concatenate((head + len(lefts), np.full(sink, sink)))
    costs = np.concatenate((top - weight, np.where(ends < len(lefts), top, 0)))
    supply = np.append(np.where(ends < len(lefts), 1, 0), -len(lefts))
    flow = load("ortools.graph.python.min_cost_flow").SimpleMinCostFlow()
    ones = np.ones_like(tails)
    arcs = flow.add_arcs_with_capacity_and_unit_cost(tails, heads, ones, costs)
    flow.set_nodes_supplies(np.arange(sink + 1), supply)
    flow.solve()
    return np.flatnonzero(flow.flows(arcs[: len(weight)]))


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


def numbered(keys: Iterable[Hashable]) -> list[int]:
    """Number of each key, in the order in which they appear; -1 for None."""
    number: dict[Hashable, int] = {None: -1}
    return [number.setdefault(key, len(number) - 1) for key in keys]
