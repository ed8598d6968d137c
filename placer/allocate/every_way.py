"""Every way to part the free nodes of a small machine among the jobs: a proof.

Nodes that are alike in one domain are counted, and ways that differ only by domains
that are alike are walked once. More nodes are never worse: what a job costs on some
nodes bounds what it costs on fewer, and is reached on more. So few ways are placed.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import inf

import numpy as np

from placer.allocate.kinds import Counts, Kinds
from placer.allocate.offers import Asked, Offer, Offers
from placer.allocate.question import Question
from placer.allocate.together import Together, together
from placer.base.rounding import EXACT
from placer.solve.problem.params import QUICK, Effort

# Ways that are looked at, and parts that are listed for that, at the most.
WAYS = 20_000
LISTED = 500_000
# How hard a job is searched, and how many such searches there are at the most: jobs of
# few ranks by all methods, which prove their placements, others by constructions.
FEW_RANKS = 32
PLACED = {0: 600, QUICK: 16}


@dataclass(eq=False)
class EveryWay:
    """The walk through all ways, from the best offer of each job alone."""

    offers: Offers
    alone: Sequence[Offer]
    best: Together | None  # the best that is known
    # Whether nothing is left out that may be better.
    is_complete: bool = field(default=True, init=False)
    least: float = field(default=inf, init=False)  # no way costs less

    def __post_init__(self) -> None:
        self._kinds = Kinds(self.question)
        ranks = max(wanted.job.world_size for wanted in self.question.jobs)
        self._effort: Effort = 0 if ranks <= FEW_RANKS else QUICK
        self._known = [_Known(self._kinds.whole, one) for one in self.alone]
        self._looked = self._listed = 0
        self._placed_before = self.offers.count
        self._seen: set[Hashable] = set()

    @property
    def question(self) -> Question:
        """What the jobs ask for."""
        return self.offers.question

    @property
    def _limit(self) -> float:
        """What costs as much is no better than the best."""
        return inf if self.best is None else self.best.cost * (1 - EXACT)

    def _weight(self, index: int) -> float:
        return self.question.jobs[index].weight

    def walked(self) -> EveryWay:
        """The walk at its end."""
        if self._kinds.ways() > LISTED:
            self.is_complete = False
            return self
        self._walk([], self._kinds.whole, 0.0)
        if self.best is not None:
            self.least = min(self.least, self.best.cost)
        return self

    def _walk(self, parts: list[Counts], left: Counts, before: float) -> None:
        """All ways that begin with these parts, whose bounds sum to ``before``."""
        index = len(parts)
        last = index == len(self._known) - 1
        for part in [left] if last else self._parts(index, left):
            if not self.is_complete:
                return
            self._looked += 1
            over = self.offers.budget.is_over()
            placed = self.offers.count - self._placed_before
            if over or placed > PLACED[self._effort] or self._looked > WAYS:
                self.is_complete = False
                return
            rest = tuple(a - b for a, b in zip(left, part, strict=True))
            now = [*parts, part]
            if not last and self._is_known([*now, rest]):
                continue
            others = sum(
                self._weight(k) * self._known[k].least(rest)
                for k in range(index + 1, len(self._known))
            )
            bound = before + self._weight(index) * self._known[index].least(part)
            if bound + others >= self._limit:
                continue
            if self._offer(index, part) is None:
                self.is_complete &= not self.offers.is_unsure
                continue
            bound = before + self._weight(index) * self._known[index].least(part)
            if bound + others >= self._limit:
                continue
            if last:
                self._reach(now, bound)
            else:
                self._walk(now, rest, bound)

    def _reach(self, parts: list[Counts], bound: float) -> None:
        """A way that is parted to the end."""
        self.least = min(self.least, bound)
        found = [self._offer(index, part) for index, part in enumerate(parts)]
        dealt = self._kinds.dealt([offer for offer in found if offer is not None])
        now = together(self.offers, dealt)
        if now.cost < self._limit:
            self.best = now

    def _parts(self, index: int, left: Counts) -> Iterator[Counts]:
        """What a job may take so that the others may still fit."""
        worlds = [wanted.job.world_size for wanted in self.question.jobs]
        own, others = worlds[index], sum(worlds[index + 1 :])
        total = self._kinds.gpus_of(left)
        allowances = len(self.question.limits)
        ranges = [range(count, -1, -1) for count in left[: len(left) - allowances]]
        ranges += self._allowances(index, left[len(left) - allowances :])
        for part in product(*ranges):
            self._listed += 1
            if self._listed > LISTED:
                self.is_complete = False
                return
            gpus = self._kinds.gpus_of(part)
            if gpus >= own and total - gpus >= others:
                yield part

    def _allowances(self, index: int, left: Counts) -> Iterator[range]:
        """What a job may use of each limit: what it can, and all that others cannot."""
        jobs = [wanted.job for wanted in self.question.jobs]
        for limit, most in zip(self.question.limits, left, strict=True):
            others = sum(limit.most_of(job) for job in jobs[index + 1 :])
            own = limit.most_of(jobs[index])
            yield range(min(most, own), min(max(most - others, 0), own) - 1, -1)

    def _offer(self, index: int, part: Counts) -> Offer | None:
        """The best of a job on a part: that of a smaller one where it is as good."""
        known = self._known[index]
        found = known.reached(part)
        if found is not None:
            return found
        nodes, allowed = self._kinds.nodes(part), self._kinds.allowed(part)
        asked = Asked(effort=self._effort, allowed=allowed)
        found = self.offers.best(index, nodes, asked)
        known.add(part, found, self._kinds.needs(found) if found else part)
        return found

    def _is_known(self, parts: list[Counts]) -> bool:
        """Whether a way like this, equal domains exchanged, was met before."""
        key = self._kinds.shape(parts)
        if key in self._seen:
            return True
        self._seen.add(key)
        return False


class _Known:
    """What is known of a job: bounds on parts, and offers for some.

    A part on which it does not fit has an infinite bound.
    """

    def __init__(self, whole: Counts, alone: Offer) -> None:
        self._parts = np.array([whole])
        self._least = np.array([alone.least])
        self._needs = np.array([whole])
        self._offers = [alone]

    def least(self, part: Counts) -> float:
        """A bound on what it costs on a part: the best of those on larger parts."""
        larger = (self._parts >= part).all(axis=1)
        return float(self._least[larger].max())

    def reached(self, part: Counts) -> Offer | None:
        """An offer inside a part that reaches the bound on it; None if none does."""
        limit = self.least(part) * (1 + EXACT)
        inside = np.flatnonzero((self._needs <= part).all(axis=1))
        found = (self._offers[i] for i in inside.tolist())
        return next((offer for offer in found if offer.cost <= limit), None)

    def add(self, part: Counts, offer: Offer | None, needs: Counts) -> None:
        """What it costs on a part, and what it takes there."""
        self._parts = np.vstack((self._parts, part))
        self._least = np.append(self._least, inf if offer is None else offer.least)
        if offer is not None:
            self._needs = np.vstack((self._needs, needs))
            self._offers.append(offer)
