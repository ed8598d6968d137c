"""Several jobs on disjoint nodes, and what that costs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from placer.allocate.offers import Asked, Offer, Offers
from placer.allocate.question import Question
from placer.allocate.shared import Allowance, Use, less
from placer.base.arrays import BoolArray
from placer.solve.problem.compiled import Problem


@dataclass(frozen=True, eq=False)
class Together:
    """The jobs of a question on their nodes."""

    offers: tuple[Offer, ...]  # of each job
    values: tuple[float, ...]  # of each placement while the others run
    cost: float  # weighted sum of the values and of the prices of moving

    @property
    def used(self) -> BoolArray:
        """All nodes that a job has; shape (N,)."""
        used: BoolArray = np.any([offer.nodes for offer in self.offers], axis=0)
        return used

    def others(self, index: int) -> list[Offer]:
        """The offers of all jobs but one."""
        return [offer for i, offer in enumerate(self.offers) if i != index]


def together(offers: Offers, found: Sequence[Offer]) -> Together:
    """The jobs on these nodes, all of them running."""
    question = offers.question
    values = tuple(
        _value(question, offer, share)
        for offer, share in zip(found, offers.uplinks.shares(found), strict=True)
    )
    cost = sum(
        wanted.weight * (value + offer.cost - offer.solution.value)
        for wanted, offer, value in zip(question.jobs, found, values, strict=True)
    )
    return Together(tuple(found), values, cost)


def exchanged(offers: Offers, best: Together, index: int, found: Offer) -> Together:
    """An allocation with another offer for one job."""
    changed = [*best.offers]
    changed[index] = found
    return together(offers, changed)


def moved_to(
    offers: Offers,
    best: Together,
    index: int,
    nodes: BoolArray,
    limits: Sequence[float],
) -> tuple[Offer | None, Together | None]:
    """The offer for one job on other nodes, and what it makes of an allocation.

    No allocation where it moves as the old one does not, or a job would cost more than
    its limit. What the job costs now is enough.
    """
    question, now = offers.question, best.offers[index]
    _, left = left_beside(question, best.others(index))
    asked = Asked(allowed=left, enough=now.solution.value, is_needed=True)
    found = offers.best(index, nodes, asked)
    if found is None or found.moved != now.moved:
        return found, None
    after = exchanged(offers, best, index, found)
    pairs = zip(after.values, limits, strict=True)
    return found, after if all(value <= most for value, most in pairs) else None


def left_beside(
    question: Question, offers: Iterable[Offer]
) -> tuple[BoolArray, Allowance]:
    """Free nodes, shape (N,), and what is left of the limits, beside some offers."""
    free, left = question.free.copy(), question.allowance
    for offer in offers:
        free &= ~question.taken(offer.nodes)
        left = less(left, offer.uses)
    return free, left


def in_turn(
    offers: Offers, order: Sequence[int], enough: Sequence[float], is_fair: bool = False
) -> dict[int, Offer]:
    """Each job in turn on the best of the nodes that those before it leave.

    A placement of a value that is ``enough`` for its job ends the search for one.
    Those before the first that finds no room, if there is one. A fair turn leaves to
    those that come later their share of every budget, and of the domains behind thin
    uplinks, by their size.
    """
    question = offers.question
    free, left = question.free.copy(), question.allowance
    found: dict[int, Offer] = {}
    for place, index in enumerate(order):
        later = order[place + 1 :] if is_fair else ()
        allowed = less(left, _shares(question, later))
        nodes = _fair_part(question, free, order[place:]) if is_fair else free
        asked = Asked(
            allowed=allowed,
            enough=enough[index],
            is_bounded=True,
            to_come=len(order) - place,
        )
        offer = offers.best(index, nodes, asked)
        if offer is None:
            break
        found[index] = offer
        free &= ~question.taken(offer.nodes)
        left = less(left, offer.uses)
    return found


def _fair_part(question: Question, free: BoolArray, coming: Sequence[int]) -> BoolArray:
    """Free nodes of so many domains as are the share of the first of some jobs; (N,).

    All of them where no tier has thin uplinks. Domains that no job has nodes of are
    shared, the roomiest first; the others too where these are too few.
    """
    machine = question.machine
    tiers = enumerate(machine.tiers)
    thin = [t for t, tier in tiers if t and tier.oversubscription > 1]
    if not thin:
        return free
    row = machine.domain_of_node[thin[0] - 1]
    sizes = [question.jobs[index].job.world_size for index in coming]
    room = np.bincount(row, free * machine.gpus_of_node)
    is_shared = np.bincount(row, question.free & ~free) > 0
    alone = np.where(is_shared, 0.0, room)
    room = alone if alone.sum() >= sum(sizes) else room
    roomiest = np.argsort(-room, kind="stable")
    before = np.cumsum(room[roomiest]) - room[roomiest]
    chosen = roomiest[before < room.sum() * sizes[0] / sum(sizes)]
    part: BoolArray = free & np.isin(row, chosen)
    return part


def _shares(question: Question, later: Sequence[int]) -> list[int]:
    """What jobs would have of each limit if all had a part by their size."""
    jobs = [wanted.job for wanted in question.jobs]
    return [
        limit.most
        * sum(limit.most_of(jobs[index]) for index in later)
        // sum(limit.most_of(job) for job in jobs)
        for limit in question.limits
    ]


def least_together(question: Question, leasts: Sequence[float]) -> float:
    """A bound, given what each job costs at least with the free nodes to itself."""
    return sum(w.weight * one for w, one in zip(question.jobs, leasts, strict=True))


def _value(question: Question, offer: Offer, share: Use | None) -> float:
    """Value of a placement when others leave such a share of each uplink."""
    if share is None or all((one >= 1).all() for one in share):
        return offer.solution.value
    machine = replace(question.machine, uplink_share=share)
    problem = Problem.of(machine, offer.job, question.objective)
    return float(problem.goal.value(offer.solution.placement.gpu_of_rank))
