"""Sets of whole nodes that no component of transfers leaves.

A node of a node-contiguous launch holds consecutive ranks, of several components; each
of these has ranks on other nodes. Nodes that are joined so make a *closed set*. Along
the ranks of a role sets repeat, so most are alike. By hand: ranks 0 to 3 have pairs in
4 to 7, so two nodes of four are a closed set. A node may also begin anew where a role
or a stage does: with ranks 0 to 5 and their pairs in 6 to 11, nodes of four make one
set, and nodes that begin anew at 6 two. Shapes: S alike sets, P places in a set.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from placer.arrays import BoolArray, IntArray
from placer.solve.problem.colocation import join
from placer.solve.problem.needs import Need


@dataclass(frozen=True, eq=False)
class ClosedSets:
    """Closed sets that are alike.

    Attributes
    ----------
    ranks : ndarray, shape (S, P)
        In ascending order.
    follows : ndarray of bool, shape (P,)
        Whether a place is the next rank after the place before.
    needs : list of Need
        In places.
    block : int
        Ranks of a node.
    """

    ranks: IntArray
    follows: BoolArray
    needs: list[Need]
    block: int

    @property
    def nodes(self) -> int:
        """Nodes of a set that is whole, and shares none."""
        return sum(-(-len(places) // self.block) for places in self.stretches)

    @property
    def stretches(self) -> list[IntArray]:
        """Places of consecutive ranks, between those of other sets."""
        begins = np.flatnonzero(~self.follows)
        return np.split(np.arange(len(self.follows)), begins[1:])


def ways_to_close(
    needs: Sequence[Need], ranks: int, block: int
) -> Iterator[list[ClosedSets]]:
    """Closed sets of nodes in order; of nodes that begin anew, where those are smaller.

    They do where a component comes again that began more than a node before the last.
    By hand: two stages of 6 ranks, and both send to 12 others. On nodes of four the
    second node holds ranks of both stages. It joins all nodes to one set; with the
    stages on nodes of their own there are two.
    """
    first = np.arange(ranks)
    for need in needs:
        own = np.concatenate(need[:2])
        first[own] = np.minimum(first[own], own.min())
    in_order = closed_sets(needs, ranks, block)
    yield in_order
    anew = (np.flatnonzero(np.diff(first) < -block) + 1).tolist()
    if not anew:
        return
    smaller = closed_sets(needs, ranks, block, anew)
    if _largest(smaller) < _largest(in_order):
        yield smaller


def _largest(sets: Sequence[ClosedSets]) -> int:
    """Ranks of the largest set with needs."""
    return max((one.ranks.shape[1] for one in sets if one.needs), default=0)


def closed_sets(
    needs: Sequence[Need], ranks: int, block: int, anew: Sequence[int] = ()
) -> list[ClosedSets]:
    """Closed sets of so many ranks on nodes of ``block``, alike ones together.

    Nodes without needs are sets of their own. A node begins at each rank of ``anew``.
    """
    begins = np.union1d([0], np.asarray(anew, dtype=np.int64))
    lengths = np.diff(begins, append=ranks)
    before = np.cumsum(-(-lengths // block)) + lengths // -block
    node = (np.arange(ranks) - np.repeat(begins, lengths)) // block
    node += np.repeat(before, lengths)
    edges = [
        np.stack([np.repeat(of[0], len(of)), of], axis=1)
        for of in (node[np.concatenate(need[:2])] for need in needs)
    ]
    nodes = int(node[-1]) + 1
    label = join(np.arange(nodes), np.concatenate([np.empty((0, 2), int), *edges]))
    set_of_rank = np.unique(label, return_inverse=True)[1].ravel()[node]
    needs_of_set: defaultdict[int, list[Need]] = defaultdict(list)
    for need in needs:
        needs_of_set[int(set_of_rank[need.ranks[0]])].append(need)
    order = np.argsort(set_of_rank, kind="stable")
    parts = np.split(order, np.cumsum(np.bincount(set_of_rank))[:-1])
    alike: defaultdict[tuple[object, ...], list[ClosedSets]] = defaultdict(list)
    for number, part in enumerate(parts):
        own = sorted(
            (_in_places(need, part) for need in needs_of_set[number]),
            key=lambda need: (need.ranks.tolist(), need.partners.tolist()),
        )
        follows = np.diff(part, prepend=-2) == 1
        shape = [(n.ranks.tobytes(), n.partners.tobytes(), *n[2:]) for n in own]
        one = ClosedSets(part[None], follows, own, block)
        alike[follows.tobytes(), *shape].append(one)
    return [
        replace(of[0], ranks=np.concatenate([one.ranks for one in of]))
        for of in alike.values()
    ]


def _in_places(need: Need, part: IntArray) -> Need:
    """A need of ranks as one of their places in a set."""
    ranks, partners = (np.searchsorted(part, np.sort(of)) for of in need[:2])
    return Need(ranks, partners, need.needs, need.back)
