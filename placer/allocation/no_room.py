"""Why jobs do not find room beside each other, and what would help."""

from __future__ import annotations

from dataclasses import replace
from math import inf

from placer.allocation.budgets import less
from placer.allocation.offers import Offers
from placer.base.errors import InfeasibleError
from placer.base.units import plural

# Jobs named one by one.
_NAMED = 4


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
        found.append(f"free {more:,} more {plural('node', more)} at least")
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
        offer = offers.best(index, free, allowed=left, enough=enough)
        if offer is None:
            found.append(question.jobs[index].name)
            continue
        free &= ~question.taken(offer.nodes)
        left = less(left, offer.uses)
    return found
