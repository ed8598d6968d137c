"""How good a granted allocation is: beside the best that was free, and the best at all.

What was free is what is free now and the granted nodes. The best at all is that on the
whole machine, were every node free.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from placer.allocate.offers import Asked, Offer, Offers
from placer.allocate.question import Question
from placer.allocate.search import Found
from placer.base.arrays import BoolArray
from placer.base.errors import InfeasibleError
from placer.solve.problem.params import NORMAL
from placer.solve.tree.domains import Rest


class Graded(NamedTuple):
    """One job on granted nodes, and what it might have had."""

    # granted, free and imaginable: on the granted nodes; on the best of those that were
    # free; on the best of all.
    granted: Offer
    free: Offer
    imaginable: Offer
    stranded: float  # nodes that the granted ones strand more than those of ``free``


def graded(offers: Offers, found: Found, granted: BoolArray) -> Graded:
    """The grade of granted nodes for the one job of a question.

    ``offers``: of a question whose free nodes have the granted ones among them.
    ``found``: the best of the free nodes. ``granted``: shape (N,). Raises
    `InfeasibleError` if the granted nodes cannot hold the job.
    """
    question = offers.question
    try:
        own = offers.needed(0, granted, Asked(effort=NORMAL))
    except InfeasibleError as error:
        raise error.of("the granted hosts cannot hold the job") from None
    best = found.together.offers[0]
    if own.cost < best.cost:  # never is what is granted better than the best
        best = own
    empty = offers.needed(0, np.ones_like(granted))
    if empty.cost > best.cost:
        empty = best
    return Graded(own, best, empty, _stranded(question, granted, best.nodes))


def _stranded(question: Question, granted: BoolArray, best: BoolArray) -> float:
    """Nodes in domains of the innermost tier that no job to come can fill, more."""
    rest = Rest(question.machine, question.demand)
    if len(rest.tiers) < 2:
        return 0.0
    own, other = (rest.left(used | ~question.free)[1] for used in (granted, best))
    nodes = int(granted.sum()) - int(best.sum())
    return float((other - own) / sum(share for _, share in question.demand) - nodes)


def counts_by_domain(question: Question, tier: int, nodes: BoolArray) -> dict[str, Any]:
    """How many of some nodes lie in each domain, and how many it has; by name."""
    row = question.machine.domain_of_node[tier]
    held = np.bincount(row, nodes).astype(np.int64)
    size = np.bincount(row)
    names = question.machine.domain_names[tier]
    return {
        names[d]: (int(held[d]), int(size[d])) for d in np.flatnonzero(held).tolist()
    }
