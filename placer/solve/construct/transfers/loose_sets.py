"""Closed sets of which a few lie rank by rank, wherever domains have nodes left.

Domains often hold whole sets and some nodes besides. The sets that are left over then
lie in pieces, and where one of them ends a piece may share a node with the next. So a
program places the ranks of a few consecutive sets one by one, and counts how many whole
sets each domain holds. By hand: pairs 0 and 1, 2 and 3, on nodes of two. Cut both,
ranks 1 and 2 share a node.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from placer.arrays import IntArray
from placer.solve.construct.transfers.closed_sets import ClosedSets
from placer.solve.construct.transfers.set_ways import piece_of
from placer.solve.count.engine import Limits, solve
from placer.solve.count.model import Program, Term

if TYPE_CHECKING:
    from placer.solve.problem.params import Params
    from placer.solve.run.budget import Budget


class Loose(NamedTuple):
    """What domains hold.

    Attributes
    ----------
    ranks, home : ndarray
        Of the sets, and the domain of each.
    nodes : ndarray
        That each domain needs for them.
    """

    ranks: IntArray
    home: IntArray
    nodes: IntArray


def loose_sets(
    sets: ClosedSets, nodes: IntArray, params: Params, budget: Budget
) -> Loose | None:
    """All of the sets on domains of so many nodes; None if nothing is found.

    One set more is loose than there are whole ones too many.
    """
    count = len(sets.ranks)
    loose = count - int((nodes // sets.nodes).sum()) + 1
    if not 1 < loose <= count or loose * sets.ranks.shape[1] > params.loose_ranks:
        return None
    own = _joined(sets, count - loose)
    program, places = Program(), list(range(own.ranks.size))
    pieces = [piece_of(own, program, places, 0) for _ in nodes]
    whole = [program.column(room // sets.nodes) for room in nodes.tolist()]
    for place in places:
        program.row([Term(held[place]) for held, _ in pieces], 1, 1)
    for (_, begins), column, room in zip(pieces, whole, nodes.tolist(), strict=True):
        taken = [*map(Term, begins.values()), Term(column, sets.nodes)]
        program.row(taken, most=room)
    program.row(map(Term, whole), count - loose, count - loose)
    limits = Limits(params.loose_work, budget.seconds_left)
    counts = solve(program, limits).counts
    if counts is None:
        return None
    held = np.array([[counts[of[place]] for place in places] for of, _ in pieces])
    begun = np.array([sum(counts[c] for c in of.values()) for _, of in pieces])
    wholes = np.array([counts[column] for column in whole])
    home = np.repeat(np.repeat(np.arange(len(nodes)), wholes), sets.ranks.shape[1])
    return Loose(
        np.concatenate([sets.ranks[: count - loose].ravel(), own.ranks.ravel()]),
        np.concatenate([home, held.argmax(axis=0)]),
        begun + wholes * sets.nodes,
    )


def _joined(sets: ClosedSets, first: int) -> ClosedSets:
    """The sets from one on as a single one."""
    ranks = np.sort(sets.ranks[first:].ravel())
    needs = [
        need._replace(
            ranks=np.searchsorted(ranks, one[need.ranks]),
            partners=np.searchsorted(ranks, one[need.partners]),
        )
        for one in sets.ranks[first:]
        for need in sets.needs
    ]
    follows = np.diff(ranks, prepend=-2) == 1
    return ClosedSets(ranks[None], follows, needs, sets.block)
