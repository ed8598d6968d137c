"""Ranks that must move besides the lost ones for the hop cost to fit a budget.

Every edge is charged to one leaf at most, so what a change costs is at least the sum of
what each leaf loses by the ranks that leave it (`least_loss`). The least sum for every
number of moved ranks follows leaf by leaf. All sets of a few atoms are listed; larger
ones are taken to cost nothing and gain all. Ranks of leaves that lost nothing may save
the most that any of them can.

Atoms are groups that are dear to divide. Where one is divided all the same, the loss is
at least what that costs, less all that the ranks can save.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from placer.solve.replace.leaf import leaves_of
from placer.solve.replace.least_loss import LeastLoss
from placer.solve.run.solution import EXACT

if TYPE_CHECKING:
    from placer.solve.replace.ground import Ground
    from placer.solve.replace.leaf import Leaf

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]


def forced_by_cost(ground: Ground, most: int, budget: float) -> int:
    """Ranks beside the lost ones that must move for the cost to fit; ``most`` at most.

    ``most`` counts the ranks that move beside the lost ones in a known placement.
    """
    if ground.rise <= 0 or ground.hops.distance.min() < ground.hops.distance[0]:
        return 0
    before = ground.cost_before()
    allowed = budget - before + EXACT * (budget + before)
    lost = int(ground.before.is_lost.sum())
    highest = np.sort(ground.gains)[::-1][: lost + most]
    limit = allowed + float(highest.sum())
    divided = min(limit, ground.dearest_cut() * (1 - EXACT))
    elsewhere = _gains_elsewhere(ground, divided, most)
    room = ground.room_of_domains(ground.tier)
    free = _free_in_leaves(ground, room)
    least = np.zeros(most + 1)
    for leaf in leaves_of(ground, ground.tied(divided, ground.residents)):
        space = int(room[leaf.number]) if leaf.number < len(room) else 0
        losses = LeastLoss(ground, leaf, free, elsewhere)
        whole = _least_losses(leaf, losses, space, most, limit)
        parted = divided - _largest_gains(ground, leaf, most)
        least = _summed(least, np.minimum.accumulate(np.minimum(whole, parted)))
    reached = [
        float((least[: total + 1][::-1] - elsewhere[: total + 1]).min())
        for total in range(most)
    ]
    return next((n for n, loss in enumerate(reached) if loss <= allowed), most)


def _free_in_leaves(ground: Ground, room: IntArray) -> IntArray:
    """Ranks that enter each leaf without driving others out, at most; shape (D,).

    In a struck leaf lost ranks may make any room.
    """
    used = np.bincount(ground.home, minlength=len(room))[: len(room)]
    free: IntArray = np.maximum(room - used, 0)
    struck = ground.struck[ground.struck < len(room)]
    free[struck] = room[struck]
    return free


def _gains_elsewhere(ground: Ground, divided: float, most: int) -> FloatArray:
    """The most that n ranks of leaves that lost nothing can save; (most + 1,)."""
    ranks = np.flatnonzero(~np.isin(ground.home, ground.struck))
    if not ranks.size:
        return np.zeros(most + 1)
    _, which = np.unique(ground.tied(divided, ranks)[ranks], return_inverse=True)
    atoms = np.arange(most + 1) // int(np.bincount(which).min())
    gains = ground.gains[ranks]
    of_atom = np.zeros(int(which.max()) + 1)
    np.add.at(of_atom, which, gains)
    whole = _sums_of_largest(of_atom, most)[atoms]
    found: FloatArray = np.maximum(whole, _sums_of_largest(gains, most) - divided)
    return found


def _largest_gains(ground: Ground, leaf: Leaf, most: int) -> FloatArray:
    """The most that the lost ranks of a leaf and n others can save; (most + 1,)."""
    ranks = np.concatenate(leaf.atoms)
    is_lost = ground.before.is_lost[ranks]
    lost = float(ground.gains[ranks[is_lost]].sum())
    return lost + _sums_of_largest(ground.gains[ranks[~is_lost]], most)


def _sums_of_largest(values: FloatArray, most: int) -> FloatArray:
    """Sums of the n largest values, n from 0 to ``most``."""
    sums = np.concatenate(([0.0], np.cumsum(np.sort(values)[::-1][:most])))
    found: FloatArray = sums[np.minimum(np.arange(most + 1), len(sums) - 1)]
    return found


def _least_losses(
    leaf: Leaf, losses: LeastLoss, room: int, most: int, limit: float
) -> FloatArray:
    """Least loss of a leaf when at most n ranks with a seat move; (most + 1,)."""
    sets = leaf.few()
    sets = sets[sets @ leaf.size >= leaf.size.sum() - room]
    found = losses.up_to(sets, most, limit)
    # Sets that are not listed have more atoms that lost nothing.
    free = np.sort(leaf.size[leaf.lost == 0])
    if leaf.most_others < len(free):
        others = int(free[: leaf.most_others + 1].sum())
        span = found[others:]
        np.minimum(span, -float(leaf.gain.sum()), out=span)
    return found


def _summed(first: FloatArray, second: FloatArray) -> FloatArray:
    """Least sums of two leaves for every total number of ranks."""
    found = np.full(len(first), inf)
    lower = second < np.concatenate(([inf], second[:-1]))
    for n in np.flatnonzero(lower).tolist():
        found[n:] = np.minimum(found[n:], first[: len(first) - n] + second[n])
    return found
