"""The search: job after job in many orders, then one by one again, then all ways.

A cost that equals the sum of what each job would cost alone is proved to be the least.
On small machines every way to part the nodes is walked, which proves more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import permutations
from math import inf

from placer.allocate.every_way import EveryWay
from placer.allocate.fewest_leaves import on_fewest_leaves
from placer.allocate.offers import Asked, Offer, Offers
from placer.allocate.question import Question
from placer.allocate.shared import less
from placer.allocate.together import (
    Together,
    exchanged,
    in_turn,
    least_together,
    left_beside,
    together,
)
from placer.allocate.useful_rest import with_useful_rest
from placer.base.arrays import BoolArray
from placer.base.errors import InfeasibleError
from placer.base.rounding import EXACT
from placer.base.units import counted
from placer.cost import DIFFERENCE
from placer.solve.problem.params import NORMAL, QUICK, Effort, Params
from placer.solve.run.solution import is_reached

# Orders in which jobs take their nodes in turn, and rounds of placing each again.
ORDERS = 24
MOST_PERMUTED = 4
ROUNDS = 3
# Nodes of a machine on which placements that are not proved are searched further.
SEARCHED_NODES = 4_096
# Jobs named one by one.
_NAMED = 4


@dataclass(frozen=True, eq=False)
class Found:
    """What a search found."""

    together: Together
    alone: tuple[Offer, ...]  # each job with all free nodes to itself
    least: float  # a lower bound on the cost
    argument: str  # what that rests on
    stop_reason: str  # ``proved``, ``searched``, ``time-limit`` or ``interrupted``

    @property
    def is_optimal(self) -> bool:
        """Whether the cost is proved to be the least."""
        return is_reached(self.together.cost, self.least)


def searched(offers: Offers) -> Found:
    """Nodes and placements of all jobs of a question.

    Raises `InfeasibleError` if the nodes cannot hold a job, or no order was found that
    holds them all.
    """
    question = offers.question
    if _are_too_many(question):
        # Those that do not even fit alone are told so first.
        for index in range(len(question.jobs)):
            offers.needed(index, question.free, Asked(enough=inf))
        raise no_room(offers)
    alone = _alone(offers)
    leasts = [_least(offers, index, one) for index, one in enumerate(alone)]
    least = least_together(question, leasts)
    argument = "every job with all free nodes to itself"
    # A job that is as good as alone has nothing to gain from those beside it.
    enough = [
        low if one.solution.is_cut_short else max(low, one.cost)
        for low, one in zip(leasts, alone, strict=True)
    ]
    all_enough = least_together(question, enough)
    is_enough = partial(_is_enough, question, all_enough)
    best = _all_in_turn(offers, alone, all_enough)
    if best is not None and not is_enough(best) and not _are_apart(offers):
        best = _one_by_one(offers, enough, best)
    if len(alone) > 1 and (best is None or not is_reached(best.cost, least)):
        ways = EveryWay(offers, alone, best).walked()
        best = ways.best
        if ways.is_complete:
            least, argument = max(least, ways.least), "every way to part the nodes"
    if best is None:
        raise no_room(offers)
    # On huge machines constructions differ by more than steps that look alike.
    if int(question.free.sum()) <= SEARCHED_NODES:
        best = on_fewest_leaves(offers, best)
    best = with_useful_rest(offers, best)
    best = _on_own_nodes(offers, leasts, best)
    least = min(least, best.cost)
    why = _stop_reason(offers, is_reached(best.cost, least))
    return Found(best, tuple(alone), least, argument, why)


def _stop_reason(offers: Offers, is_proved: bool) -> str:
    """Why the search ended; a proof counts more than a limit that was met as well."""
    if is_proved:
        return "proved"
    if offers.budget.is_stopped:
        return "interrupted"
    is_over = offers.is_cut_short or offers.budget.is_over()
    return "time-limit" if is_over else "searched"


def _all_in_turn(
    offers: Offers, alone: Sequence[Offer], enough: float
) -> Together | None:
    """The best of turns in which each job takes what it likes, and of fair ones."""
    question = offers.question
    if _are_apart(offers):
        # The first order will do: in any other they have as many domains.
        fair = _in_turn(offers, alone, inf, is_fair=True)
        return fair or _in_turn(offers, alone, enough)
    best = _in_turn(offers, alone, enough)
    may_help = bool(question.limits) or (len(alone) > 1 and offers.uplinks.meet)
    if may_help and not _is_enough(question, enough, best):
        fair = _in_turn(offers, alone, enough, is_fair=True)
        best = fair if best is None else best if fair is None else _better(best, fair)
    return best


def _are_apart(offers: Offers) -> bool:
    """Whether jobs have domains of their own: behind thin uplinks on huge machines.

    To look for those that do well beside each other takes long there.
    """
    question = offers.question
    is_huge = int(question.free.sum()) > SEARCHED_NODES
    return is_huge and offers.uplinks.meet and len(question.jobs) > 1


def _in_turn(
    offers: Offers, alone: Sequence[Offer], enough: float, is_fair: bool = False
) -> Together | None:
    """The best of several orders in which jobs take their nodes, if any holds all.

    Those who need most come first. Few jobs are tried in every order; of many the one
    that finds no room, or lost most, comes first in the next.
    """
    question = offers.question
    indices = range(len(alone))
    values = [0.0 if one.solution.is_cut_short else one.solution.value for one in alone]
    order = tuple(sorted(indices, key=lambda i: (-int(alone[i].nodes.sum()), i)))
    every = permutations(order) if len(order) <= MOST_PERMUTED else iter(())
    tried: set[tuple[int, ...]] = set()
    best: Together | None = None
    while order not in tried and len(tried) < ORDERS:
        tried.add(order)
        found = in_turn(offers, order, values, is_fair)
        if len(found) == len(order):
            now = together(offers, [found[i] for i in indices])
            best = _better(best, now)
            if _is_enough(question, enough, best) or offers.budget.is_over():
                break
        order = next((one for one in every if one not in tried), order)
        if len(order) > MOST_PERMUTED:
            first = max(order, key=lambda i: _loss(question, alone[i], found.get(i), i))
            order = (first, *(i for i in order if i != first))
    return best


def _loss(question: Question, alone: Offer, found: Offer | None, index: int) -> float:
    """What a job pays for not being alone; infinite where it found no room."""
    if found is None:
        return inf
    return question.jobs[index].weight * (found.cost - alone.cost)


def _alone(offers: Offers) -> list[Offer]:
    """Each job alone on all free nodes, an equal share of the time for each.

    Those together get as much time as all alone, and where some stay as much again.
    """
    indices = range(len(offers.question.jobs))
    after = len(indices) * ((len(indices) > 1) + (offers.uplinks.kept is not None))
    found = []
    for index in indices:
        to_come = offers.different(indices[index:]) + after
        found.append(offers.alone(index, _effort(offers.question), to_come))
    return found


def _least(offers: Offers, index: int, alone: Offer) -> float:
    """A bound on what a job costs on all free nodes, beside those that stay."""
    if offers.uplinks.kept is None:
        return alone.least
    question = offers.question
    jobs = len(question.jobs)
    to_come = jobs * (1 + (jobs > 1)) - index
    effort = _effort(question)
    asked = Asked(share=offers.uplinks.kept, effort=effort, to_come=to_come)
    found = offers.best(index, question.free, asked)
    return alone.least if found is None else max(alone.least, found.least_beside)


def _are_too_many(question: Question) -> bool:
    """Whether the jobs have more ranks than there are free GPUs."""
    free = question.machine.gpus_of_node[question.free].sum()
    return sum(one.job.world_size for one in question.jobs) > int(free)


def _effort(question: Question) -> Effort:
    """How hard to search a job: by constructions alone on huge machines."""
    return QUICK if int(question.free.sum()) > SEARCHED_NODES else NORMAL


def _is_enough(question: Question, enough: float, found: Together | None) -> bool:
    """Whether jobs cost no more than is enough: what they cost alone.

    On huge machines, where that is what constructions find, not worth telling more.
    """
    is_huge = int(question.free.sum()) > SEARCHED_NODES
    more = Params.generation_gain if is_huge else EXACT
    return found is not None and found.cost <= enough * (1 + more)


def _better(best: Together | None, found: Together) -> Together:
    if best is None or found.cost < best.cost * (1 - EXACT):
        return found
    return best


def _one_by_one(offers: Offers, enough: Sequence[float], best: Together) -> Together:
    """Each job again on its own nodes and those that nobody has, while that helps.

    It sees the uplinks as the others leave them. One that costs as little as is
    ``enough`` is left where it is.
    """
    question = offers.question
    for _ in range(ROUNDS):
        before = best.cost
        for index in range(len(question.jobs)):
            if offers.budget.is_over():
                return best
            dear = _dearer(best, enough, EXACT)
            if index in dear:
                nodes, _ = left_beside(question, best.others(index))
                to_come = len(dear) - dear.index(index)
                effort = _effort(question)
                best = _again(offers, best, index, nodes, effort, to_come)
        if best.cost >= before * (1 - EXACT):
            break
    return best


def _on_own_nodes(offers: Offers, leasts: Sequence[float], best: Together) -> Together:
    """By all methods each job that constructions alone left far from its bound.

    On the nodes that it has, the farthest first; all share what time is left.
    """
    if _effort(offers.question) != QUICK:
        return best
    far = _dearer(best, leasts, DIFFERENCE)
    far.sort(key=lambda index: leasts[index] / best.offers[index].cost)
    for place, index in enumerate(far):
        if offers.budget.is_over():
            break
        nodes, to_come = best.offers[index].nodes, len(far) - place
        best = _again(offers, best, index, nodes, NORMAL, to_come)
    return best


def _dearer(best: Together, leasts: Sequence[float], share: float) -> list[int]:
    """Jobs that cost more than so much each, by more than a share."""
    return [
        index
        for index, one in enumerate(best.offers)
        if best.values[index] + one.cost - one.solution.value
        > leasts[index] * (1 + share)
    ]


def _again(
    offers: Offers,
    best: Together,
    index: int,
    nodes: BoolArray,
    effort: Effort,
    to_come: int,
) -> Together:
    """An allocation with one job searched again on some nodes, where that helps."""
    question = offers.question
    _, left = left_beside(question, best.others(index))
    share = offers.uplinks.shares(best.offers)[index]
    asked = Asked(share=share, effort=effort, allowed=left, to_come=to_come)
    found = offers.best(index, nodes, asked)
    if found is None:
        return best
    return _better(best, exchanged(offers, best, index, found))


def no_room(offers: Offers) -> InfeasibleError:
    """The error where each job fits alone, but no way was found to have them all."""
    question = offers.question
    wanted = sum(one.job.world_size for one in question.jobs)
    free = int(question.machine.gpus_of_node[question.free].sum())
    budgets = "".join(
        f"; {limit.most:,} {'replicas' if limit.of_replicas else 'GPUs'} of a budget "
        f"are left ({limit.budget})"
        for limit in question.limits
    )
    without = _left_out(offers)
    return InfeasibleError(
        f"the {len(question.jobs)} jobs do not find room beside each other, though "
        f"each fits alone: they need {wanted:,} GPUs, {free:,} are free{budgets}",
        hints=[" or ".join(_ways_out(offers, wanted - free, without))],
    )


def _ways_out(offers: Offers, short: int, without: list[str]) -> list[str]:
    """What would make the jobs fit; what is sure comes first."""
    question = offers.question
    found = []
    if question.apart is not None and short <= 0:
        asked = replace(question, apart=None)
        together = Offers(asked, offers.budget, offers.progress)
        if not _left_out(together):
            tier = question.machine.tiers[question.apart].name
            found.append(f"let jobs share a {tier}")
    more = -(-short // int(question.machine.gpus_of_node.max()))
    if more > 0 and int((~question.free).sum()) >= more:
        found.append(f"free {counted(more, 'more node')} at least")
    names = ", ".join(without[:_NAMED])
    others = len(without) - _NAMED
    return [*found, f"leave out {names}{f' and {others:,} more' * (others > 0)}"]


def _left_out(offers: Offers) -> list[str]:
    """Names of the jobs that find no room, the larger ones placed before the others."""
    question = offers.question
    sizes = [wanted.job.world_size for wanted in question.jobs]
    free, left = question.free.copy(), question.allowance
    # Any placement tells that a job fits; apart, a better one takes fewer domains.
    enough = inf if question.apart is None else 0.0
    found = []
    for index in sorted(range(len(sizes)), key=lambda i: -sizes[i]):
        offer = offers.best(index, free, Asked(allowed=left, enough=enough))
        if offer is None:
            found.append(question.jobs[index].name)
            continue
        free &= ~question.taken(offer.nodes)
        left = less(left, offer.uses)
    return found
