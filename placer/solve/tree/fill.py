"""Fill the machine's tree with a sequence of ranks, in whole units or in runs.

A launch that counts ranks node by node gives every node consecutive ranks. Ranks that
follow each other in one domain are a *stretch*; each takes nodes of its own, which hold
it with little to spare. Nodes of a domain with as many GPUs are all alike, so it is a
question of counts: a domain with three nodes of 3 and one of 4 holds stretches of 9 and
4, but not of 8 and 5.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from placer.base.arrays import IntArray, by_appearance, equal_runs
from placer.solve.tree.domains import whole_sets
from placer.topology.machine import Machine


def fill(
    topology: Machine,
    capacity_of_node: IntArray,
    sequence: IntArray,
    units: Sequence[int],
) -> IntArray | None:
    """Node of every rank when domains take consecutive stretches of ``sequence``.

    ``capacity_of_node`` ((N,)): ranks each node may hold. ``sequence`` ((R,)): ranks in
    the order in which they are laid out along the tree. ``units`` (length T): a domain
    of tier ``t`` takes a multiple of ``units[t]`` ranks; each divides the next and the
    last divides R. Gives None when the whole units do not fit. Each domain uses as few
    children as can hold its share, those with the least left over.
    """
    world = len(sequence)
    takes = whole_sets(topology, capacity_of_node, units)
    if takes[-1].sum() < world:
        return None
    amounts = share_down(topology, takes, np.array([world], dtype=np.int64))
    order = tree_order(topology)
    node_of_rank = np.empty(world, dtype=np.int64)
    node_of_rank[sequence] = np.repeat(order, amounts[order])
    return node_of_rank


def fill_domains(
    topology: Machine,
    takes: Sequence[IntArray],
    domain_of_rank: IntArray,
    sequence: IntArray | None,
) -> IntArray | None:
    """Node of every rank when its domain of some tier is known; shape (R,).

    ``takes``: ranks that each domain can hold, from the nodes out to the tier of the
    domains. ``domain_of_rank``: shape (R,). ``sequence`` ((R,)): ranks in the order in
    which they are laid out along the nodes of a domain; None where nodes hold runs of
    consecutive ranks, and may have room for none.
    """
    if sequence is None:
        row = topology.domain_of_node[len(takes) - 1]
        return _in_runs(row, takes[0], domain_of_rank)
    counts = np.bincount(domain_of_rank, minlength=len(takes[-1]))
    amounts = share_down(topology, takes, counts)
    nodes = np.lexsort(topology.domain_of_node[: len(takes)])
    by_domain = sequence[np.argsort(domain_of_rank[sequence], kind="stable")]
    node_of_rank = np.empty(len(sequence), dtype=np.int64)
    node_of_rank[by_domain] = np.repeat(nodes, amounts[nodes])
    return node_of_rank


def share_down(
    topology: Machine, takes: Sequence[IntArray], amounts: IntArray
) -> IntArray:
    """Ranks that each node gets; shape (N,).

    ``takes``: ranks that each domain can hold, from the nodes out to the tier of
    ``amounts``. ``amounts`` ((domains,)): ranks that each domain of that tier is to
    hold.
    """
    for t in range(len(takes) - 1, 0, -1):
        amounts = _share_out(topology.domain_around[t - 1], takes[t - 1], amounts)
    return amounts


def tree_order(topology: Machine) -> IntArray:
    """Nodes in tree order: those of a domain side by side, at every tier."""
    return np.lexsort(topology.domain_of_node)


def in_tree_order(topology: Machine, tier: int) -> IntArray:
    """Domains of a tier in tree order; shape (D,)."""
    return by_appearance(topology.domain_of_node[tier][tree_order(topology)])[0]


def fullest_first(topology: Machine, capacity_of_node: IntArray) -> IntArray:
    """Nodes in tree order, at every tier the domain that can hold the most first."""
    keys = []
    for domain in topology.domain_of_node[-2::-1]:
        room = np.bincount(domain, capacity_of_node)
        keys += [-room[domain], domain]
    return np.lexsort(keys[::-1]) if keys else np.arange(len(capacity_of_node))


def _share_out(parent: IntArray, takes: IntArray, amounts: IntArray) -> IntArray:
    """Ranks each child gets when its parent holds ``amounts``."""
    given = np.zeros_like(takes)
    inside = np.bincount(parent, takes, len(amounts)).astype(np.int64)
    given[:] = np.where((inside == amounts)[parent], takes, 0)
    children = np.argsort(parent, kind="stable")
    bounds = np.searchsorted(parent[children], np.arange(len(amounts) + 1))
    for domain in np.flatnonzero((amounts > 0) & (inside != amounts)):
        members = children[bounds[domain] : bounds[domain + 1]]
        given[members] = choose_children(takes[members], int(amounts[domain]))
    return given


def choose_children(takes: IntArray, amount: int) -> IntArray:
    """Share of each child: as few children as can hold ``amount``, the largest full.

    What these leave goes to the smallest child that has room for it.
    """
    order = np.argsort(-takes, kind="stable")
    full = order[: np.searchsorted(np.cumsum(takes[order]), amount)]
    share = np.zeros_like(takes)
    share[full] = takes[full]
    rest = amount - int(share.sum())
    enough = np.flatnonzero((takes >= rest) & (share == 0))
    share[enough[takes[enough].argmin()]] = rest
    return share


Counts = tuple[int, ...]


def _in_runs(
    domain_of_node: IntArray, capacity_of_node: IntArray, domain_of_rank: IntArray
) -> IntArray | None:
    """Node of every rank, the longest stretches first; None where one has no nodes."""
    begins, lengths = equal_runs(domain_of_rank)
    node_of_rank = np.empty(len(domain_of_rank), dtype=np.int64)
    for domain in np.unique(domain_of_rank):
        nodes: dict[int, list[int]] = {}
        for node in np.flatnonzero(domain_of_node == domain)[::-1].tolist():
            nodes.setdefault(int(capacity_of_node[node]), []).append(node)
        here = np.flatnonzero(domain_of_rank[begins] == domain)
        here = here[np.argsort(-lengths[here], kind="stable")]
        sizes = sorted((size for size in nodes if size > 0), reverse=True)
        free = tuple(len(nodes[size]) for size in sizes)
        taken = _shared_out(lengths[here].tolist(), sizes, free)
        if taken is None:
            return None
        for stretch, counts in zip(here, taken, strict=True):
            used = [
                nodes[size].pop()
                for size, number in zip(sizes, counts, strict=True)
                for _ in range(number)
            ]
            begin, length = begins[stretch], lengths[stretch]
            filled = np.repeat(used, capacity_of_node[used])[:length]
            node_of_rank[begin : begin + length] = filled
    return node_of_rank


def _shared_out(
    lengths: Sequence[int], sizes: Sequence[int], free: Counts
) -> list[Counts] | None:
    """Nodes of each size for each stretch, those that waste the least."""
    found = list[Counts]()
    for length in lengths:
        covers = _covers(length, sizes, free)
        taken = min(covers, key=lambda one: _room(one, sizes), default=None)
        if taken is None:
            return None
        found.append(taken)
        free = tuple(n - k for n, k in zip(free, taken, strict=True))
    return found


def _room(counts: Counts, sizes: Sequence[int]) -> int:
    return sum(n * size for n, size in zip(counts, sizes, strict=True))


def _covers(length: int, sizes: Sequence[int], free: Counts) -> Iterator[Counts]:
    """Counts of nodes that hold a stretch, none of them in vain."""
    if not sizes:
        return
    for number in range(min(free[0], -(-length // sizes[0])), -1, -1):
        rest = length - number * sizes[0]
        if rest <= 0:
            yield (number,) + (0,) * (len(sizes) - 1)
        else:
            for others in _covers(rest, sizes[1:], free[1:]):
                yield (number, *others)
