"""Nodes that hold one run of consecutive ranks each, in domains that are known.

A launch that counts ranks node by node gives every node consecutive ranks. Ranks that
follow each other in one domain are a *stretch*; each takes nodes of its own, which hold
it with little to spare. Nodes of a domain with as many GPUs are all alike, so it is a
question of counts: a domain with three nodes of 3 and one of 4 holds stretches of 9 and
4, but not of 8 and 5.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import count

import numpy as np

from placer.base.arrays import IntArray, equal_runs

Counts = tuple[int, ...]

MOST_STRETCHES = 256  # of a domain
MOST_TRIED = 5_000  # nodes left over, before some stretch of a domain


def fill_in_runs(
    domain_of_node: IntArray, capacity_of_node: IntArray, domain_of_rank: IntArray
) -> IntArray | None:
    """Node of every rank when its domain is known; shape (R,).

    None where the nodes of a domain hold no such runs, or none is found soon.

    ``domain_of_node`` and ``capacity_of_node`` ((N,)): ranks that a node may hold.
    ``domain_of_rank``: shape (R,).
    """
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
) -> tuple[Counts, ...] | None:
    """Nodes of each size for each stretch, those that waste the least tried first."""
    if len(lengths) > min(MOST_STRETCHES, sum(free)):
        return None
    wanted = np.cumsum(lengths[::-1])[::-1].tolist()
    tried = count()

    @cache
    def shares(place: int, free: Counts) -> tuple[Counts, ...] | None:
        if place == len(lengths):
            return ()
        if _room(free, sizes) < wanted[place] or next(tried) > MOST_TRIED:
            return None
        for taken in sorted(
            _covers(lengths[place], sizes, free), key=lambda one: _room(one, sizes)
        ):
            left = tuple(n - k for n, k in zip(free, taken, strict=True))
            others = shares(place + 1, left)
            if others is not None:
                return (taken, *others)
        return None

    return shares(0, free)


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
