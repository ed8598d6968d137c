"""A lower bound on the ranks that move, whatever the placement.

Ranks on lost nodes move: ``F``. Beyond those, two arguments; the stronger holds.

*Room.* A domain that has less room than ranks must let whole sets go: sets of ranks
that the requirements tie together there. A set takes along its ranks that have a seat,
and the fewest are a knapsack over the sets of each domain.

*Cost*, for the hop cost. Every edge is charged to one base domain at most, so what a
change costs is at least the sum of what each base domain loses by the ranks that leave
it (`least_loss`). The least sum for every number of moved ranks follows one base domain
after the other. All sets of a few move groups are listed; larger ones are taken to cost
nothing and gain all. Ranks of base domains that lost nothing may save the most that any
of them can. Move groups are dear to divide. Where one is divided all the same, the loss
is at least what that costs, less all that the ranks can save.
"""

from __future__ import annotations

from math import ceil, inf
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from placer.base.arrays import FloatArray, IntArray
from placer.solve.replace.affected import affected_domains
from placer.solve.replace.base_domain import base_domains
from placer.solve.replace.least_loss import LeastLoss
from placer.solve.run.solution import EXACT

if TYPE_CHECKING:
    from placer.solve.replace.base_domain import BaseDomain
    from placer.solve.replace.state import RepairState


class Fewest(NamedTuple):
    """A lower bound on the ranks that move, and what it rests on."""

    moves: int
    argument: str


def fewest_moves(state: RepairState, most: int, budget: float | None = None) -> Fewest:
    """How many ranks move at least in a placement that costs no more than ``budget``.

    Parameters
    ----------
    most : int
        Ranks that a known placement moves; the bound is never above.
    budget : float, optional
        Hop cost; None leaves the cost open.
    """
    lost = int(state.before.is_lost.sum())
    room = lost + _forced_by_room(state)
    if budget is not None and room < most:
        cost = lost + _forced_by_cost(state, most - lost, budget)
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


def _forced_by_room(state: RepairState) -> int:
    """Ranks with a seat that must leave it since their domain has no room."""
    return max(
        sum(
            least_cover(domain.size, domain.kept, domain.excess)
            for domain in affected_domains(state, tier)
        )
        for tier in range(max(1, len(state.topology.tiers) - 1))
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


def _forced_by_cost(state: RepairState, most: int, budget: float) -> int:
    """Ranks beside the lost ones that must move for the cost to fit; ``most`` at most.

    ``most`` counts the ranks that move beside the lost ones in a known placement.
    """
    if state.rise <= 0 or state.hops.distance.min() < state.hops.distance[0]:
        return 0
    before = state.cost_before()
    allowed = budget - before + EXACT * (budget + before)
    lost = int(state.before.is_lost.sum())
    highest = np.sort(state.gains)[::-1][: lost + most]
    limit = allowed + float(highest.sum())
    divided = min(limit, state.dearest_cut() * (1 - EXACT))
    elsewhere = _gains_elsewhere(state, divided, most)
    room = state.room_of_domains(state.tier)
    free = _free_room(state, room)
    least = np.zeros(most + 1)
    for base in base_domains(state, state.tied(divided, state.residents)):
        space = int(room[base.number]) if base.number < len(room) else 0
        losses = LeastLoss(state, base, free, elsewhere)
        whole = _least_losses(base, losses, space, most, limit)
        parted = divided - _largest_gains(state, base, most)
        least = _summed(least, np.minimum.accumulate(np.minimum(whole, parted)))
    reached = [
        float((least[: total + 1][::-1] - elsewhere[: total + 1]).min())
        for total in range(most)
    ]
    return next((n for n, loss in enumerate(reached) if loss <= allowed), most)


def _free_room(state: RepairState, room: IntArray) -> IntArray:
    """Ranks that enter each base domain and drive nobody out, at most; shape (D,).

    In an affected base domain lost ranks may make any room.
    """
    used = np.bincount(state.home, minlength=len(room))[: len(room)]
    free: IntArray = np.maximum(room - used, 0)
    affected = state.affected[state.affected < len(room)]
    free[affected] = room[affected]
    return free


def _gains_elsewhere(state: RepairState, divided: float, most: int) -> FloatArray:
    """The most that n ranks of base domains that lost nothing can save; (most + 1,)."""
    ranks = np.flatnonzero(~np.isin(state.home, state.affected))
    if not ranks.size:
        return np.zeros(most + 1)
    _, which = np.unique(state.tied(divided, ranks)[ranks], return_inverse=True)
    groups = np.arange(most + 1) // int(np.bincount(which).min())
    gains = state.gains[ranks]
    of_group = np.zeros(int(which.max()) + 1)
    np.add.at(of_group, which, gains)
    whole = _sums_of_largest(of_group, most)[groups]
    found: FloatArray = np.maximum(whole, _sums_of_largest(gains, most) - divided)
    return found


def _largest_gains(state: RepairState, base: BaseDomain, most: int) -> FloatArray:
    """The most that its lost ranks and n others can save; shape (most + 1,)."""
    ranks = np.concatenate(base.groups)
    is_lost = state.before.is_lost[ranks]
    lost = float(state.gains[ranks[is_lost]].sum())
    return lost + _sums_of_largest(state.gains[ranks[~is_lost]], most)


def _sums_of_largest(values: FloatArray, most: int) -> FloatArray:
    """Sums of the n largest values, n from 0 to ``most``."""
    sums = np.concatenate(([0.0], np.cumsum(np.sort(values)[::-1][:most])))
    found: FloatArray = sums[np.minimum(np.arange(most + 1), len(sums) - 1)]
    return found


def _least_losses(
    base: BaseDomain, losses: LeastLoss, room: int, most: int, limit: float
) -> FloatArray:
    """Least loss when at most n ranks with a seat move; shape (most + 1,)."""
    sets = base.few()
    sets = sets[sets @ base.size >= base.size.sum() - room]
    found = losses.up_to(sets, most, limit)
    # Sets that are not listed have more groups that lost nothing.
    free = np.sort(base.size[base.lost == 0])
    if base.most_others < len(free):
        others = int(free[: base.most_others + 1].sum())
        span = found[others:]
        np.minimum(span, -float(base.gain.sum()), out=span)
    return found


def _summed(first: FloatArray, second: FloatArray) -> FloatArray:
    """Least sums of two base domains for every total number of ranks."""
    found = np.full(len(first), inf)
    lower = second < np.concatenate(([inf], second[:-1]))
    for n in np.flatnonzero(lower).tolist():
        found[n:] = np.minimum(found[n:], first[: len(first) - n] + second[n])
    return found
