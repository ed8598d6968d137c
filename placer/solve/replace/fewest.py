"""A lower bound on the ranks that move, whatever the placement.

Ranks on lost nodes move: ``F``. Beyond those, two arguments; the stronger holds.

*Room.* A domain that has less room than ranks must let whole parts go: sets of ranks
that the requirements tie together there. A part takes along its ranks that have a seat,
and the fewest are a knapsack over the parts of each domain.

*Cost*, for the hop cost: a placement that costs no more than the budget moves as many
ranks as it takes for the loss of the leaves to fit (`fewest_by_cost`).
"""

from __future__ import annotations

from math import ceil, inf
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from placer.solve.replace.fewest_by_cost import forced_by_cost
from placer.solve.replace.struck import struck_domains

if TYPE_CHECKING:
    from placer.solve.replace.ground import Ground

IntArray = npt.NDArray[np.int64]


class Fewest(NamedTuple):
    """A lower bound on the ranks that move, and what it rests on."""

    moves: int
    argument: str


def fewest_moves(ground: Ground, most: int, budget: float | None = None) -> Fewest:
    """How many ranks move at least in a placement that costs no more than ``budget``.

    Parameters
    ----------
    ground : Ground
    most : int
        Ranks that a known placement moves; the bound is never above.
    budget : float, optional
        Hop cost; None leaves the cost open.
    """
    lost = int(ground.before.is_lost.sum())
    room = lost + _forced_by_room(ground)
    if budget is not None and room < most:
        cost = lost + forced_by_cost(ground, most - lost, budget)
        if cost > room:
            return Fewest(
                min(cost, most),
                f"{lost:,} ranks were on lost nodes, and unless {cost - lost:,} more "
                "move, edges cut in leaves without room cost more than allowed",
            )
    if room > lost:
        return Fewest(
            min(room, most),
            f"{lost:,} ranks were on lost nodes, and {room - lost:,} more belong to "
            "required groups for which their domain has no room",
        )
    return Fewest(
        min(lost, most), f"the {lost:,} rank{'s' * (lost != 1)} on lost nodes"
    )


def _forced_by_room(ground: Ground) -> int:
    """Ranks with a seat that must leave it since their domain has no room."""
    return max(
        sum(
            least_cover(domain.size, domain.kept, domain.excess)
            for domain in struck_domains(ground, tier)
        )
        for tier in range(max(1, len(ground.topology.tiers) - 1))
    )


def least_cover(size: IntArray, price: IntArray, need: int) -> int:
    """Least sum of prices of items whose sizes add up to ``need`` or more."""
    if need <= 0:
        return 0
    if len(np.unique(size)) == 1:
        return int(np.sort(price)[: ceil(need / int(size[0]))].sum())
    best = np.full(need + 1, inf)
    best[0] = 0
    at = np.arange(need + 1)
    for own, cost in zip(size.tolist(), price.tolist(), strict=True):
        best = np.minimum(best, best[np.maximum(at - own, 0)] + cost)
    return int(best[need]) if best[need] < inf else int(price.sum())
