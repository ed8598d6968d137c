"""What a domain behind a thin uplink may hold of each stage, and what that costs lanes.

``m_s - m_(s+1)`` messages leave a domain with ``m_s`` ranks of each stage ``s`` where
that is positive, or more, and as many enter it where it is negative. All go at once, so
each takes as long as all of them need on the uplink. Half of a hop is booked on each of
both domains. So contents ``m`` cost ``f(m)``. Prices ``y_s`` of ranks with ``y m <=
f(m)`` for all that a domain may hold make lanes take ``sum of y_s`` longer, in the
mean: a linear program finds the best (Gilmore and Gomory 1961).

Rings. Where no group of a stage is whole, ``g`` of its rings cross. Of ``q`` NICs at
most, one waits for all bytes of those with no more NICs, and for ``h / q`` of those
with ``h``. So in the order in which stages are done the i-th waits for ``i g`` rings,
and each for its own ``g`` and ``g h / q`` of every other stage there.

By hand: two stages of two ranks (g = 1), an uplink of one NIC. If gradients may take as
long as one ring, no domain has ranks of both, and all messages wait for uplinks that
are shared by as many as lie together.

All are counted in sets of ranks that share a domain. Shapes: P stages, M contents, k
stages in parts.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import combinations
from math import ceil, comb, inf
from typing import NamedTuple

import numpy as np

from placer.arrays import FloatArray, IntArray
from placer.solve.bounds.gradients.uplink_room import ROUNDING
from placer.solve.count.columns import ColumnProgram, entries_of

# Contents that a program gets at once, and how often.
COLUMNS, ROUNDS = 16, 40


class Domain(NamedTuple):
    """A domain, and the sets of stages that it may hold.

    Attributes
    ----------
    most : int
        Sets that it has room for.
    whole : int
        Fewest sets of a stage where one of its groups is whole.
    ranks, rings : int
        Of a set, and groups that it has ranks of, at the least.
    nics : float
        That carry as much as the uplink does for each of those rings.
    sent_s : float, s
        Messages of one set on the uplink.
    message_s : float, s
        Least time of a message.
    inner_s, times : tuple of float, length P
        Hops inside domains, s, and how often a step of a lane waits for each.
    contents : int
        Most contents that are looked at.
    """

    most: int
    whole: int
    ranks: int
    rings: int
    nics: float
    sent_s: float
    message_s: float
    inner_s: tuple[float, ...]
    times: tuple[float, ...]
    contents: int

    @property
    def stages(self) -> int:
        """Stages, P."""
        return len(self.times)

    @property
    def most_whole(self) -> int:
        """Most stages with a group whole."""
        return self.most // self.whole


class _Contents(NamedTuple):
    """Contents with groups of k stages in parts, some of others whole.

    Attributes
    ----------
    held : ndarray, shape (M, P)
    parts : ndarray, shape (M, k)
        The stages.
    cost : ndarray, shape (M,), s
        ``f``.
    """

    held: IntArray
    parts: IntArray
    cost: FloatArray

    def rows(self, some: IntArray) -> _Contents:
        """Some of them."""
        return _Contents(self.held[some], self.parts[some], self.cost[some])


@lru_cache(maxsize=4096)
def messages_s(domain: Domain, rings: tuple[float, ...]) -> float:
    """What lanes wait for messages at the least, in the mean, s; inf for no contents.

    Parameters
    ----------
    rings : tuple of float, length P
        A ring of each stage waits for fewer, in units of those of a set.
    """
    most = max(rings)
    parts = domain.stages if most > domain.stages else ceil(most) - 1
    if _are_too_many(domain, parts):
        return 0.0
    found = [
        contents.rows(_allowed(domain, contents, np.array(rings)))
        for contents in (_contents(domain, count) for count in range(parts + 1))
    ]
    held = np.concatenate([contents.held for contents in found])
    if not (held > 0).any(axis=0).all():
        return inf
    return _least_mix(held, np.concatenate([contents.cost for contents in found]))


def _least_mix(held: IntArray, cost: FloatArray) -> float:
    """Least cost of contents that have one set of each stage, a share of each."""
    stages, number = held.shape[1], held.sum(axis=1)
    program = ColumnProgram([1.0] * stages, 1.0 + float(cost.max()))
    total = 0.0
    for _ in range(ROUNDS):
        optimum = program.solve()
        if optimum is None:
            break
        worth = (held @ optimum.prices - cost) / number
        # Less for each set, so that no contents are worth more than they cost.
        above = max(float(worth.max()), 0.0)
        total = max(total, float(optimum.prices.sum()) - stages * above)
        best = np.argsort(-worth, kind="stable")[:COLUMNS]
        new = [program.add(float(cost[i]), entries_of(held[i])) for i in best]
        if above < ROUNDING or not any(new):
            break
    return total


def _allowed(domain: Domain, contents: _Contents, rings: FloatArray) -> IntArray:
    """Rows in which the rings of no stage wait for so many; rings as above."""
    number = contents.parts.shape[1]
    # The i-th to be done waits for i of them.
    turns = np.sort(rings[contents.parts], axis=1) > np.arange(1.0, number + 1)
    rows = np.flatnonzero(turns.all(axis=1))
    stages = contents.parts[rows]
    least = np.maximum(np.ceil(domain.nics / rings - ROUNDING), 1.0)[stages]
    held = np.take_along_axis(contents.held[rows], stages, axis=1)
    most = held * domain.ranks // domain.rings
    is_fast = (most >= least).all(axis=1)
    for at in range(number):
        waits = np.minimum(1.0, least / np.maximum(most[:, at : at + 1], 1))
        waits[:, at] = 1.0
        is_fast &= waits.sum(axis=1) < rings[stages[:, at]] + ROUNDING
    return rows[is_fast]


@lru_cache(maxsize=16)
def _contents(domain: Domain, parts: int) -> _Contents:
    """Those with groups of so many stages in parts.

    Of stages that follow each other: others are two contents that cost no more.
    """
    stages = domain.stages
    found = [(np.zeros((0, stages), np.int64), np.zeros((0, parts), np.int64))]
    for length in range(max(parts, 1), min(parts + domain.most_whole, stages) + 1):
        for whole in combinations(range(length), length - parts):
            least = [domain.whole if at in whole else 1 for at in range(length)]
            in_parts = [at for at in range(length) if at not in whole]
            numbers = _summing_up(least, domain.most)
            numbers = numbers[(numbers[:, in_parts] < domain.whole).all(axis=1)]
            for first in range(stages if length < stages else 1):
                run = (first + np.arange(length)) % stages
                held = np.zeros((len(numbers), stages), dtype=np.int64)
                held[:, run] = numbers
                found.append((held, np.tile(run[in_parts], (len(held), 1))))
    held, of_parts = map(np.concatenate, zip(*found, strict=True))
    return _Contents(held, of_parts, _cost(domain, held))


def _cost(domain: Domain, held: IntArray) -> FloatArray:
    """``f`` of contents, (M, P) to (M,); hops that no lane waits for cost nothing."""
    on, times = np.roll(held, -1, axis=1), np.array(domain.times)
    found = np.zeros(len(held))
    for sent in (np.maximum(held - on, 0), np.maximum(on - held, 0)):
        sent = sent * (times > 0)
        hop_s = np.maximum(sent.sum(axis=1) * domain.sent_s, domain.message_s)
        more = np.maximum(hop_s[:, None] - domain.inner_s, 0.0)
        found += (sent * more) @ times / 2
    return found


def _are_too_many(domain: Domain, parts: int) -> bool:
    """Whether contents with groups of up to so many stages in parts are too many."""
    total, stages = 0, domain.stages
    for count in range(parts + 1):
        for whole in range(min(domain.most_whole, stages - count) + 1):
            ways = stages * comb(count + whole, whole)
            room = domain.most - whole * (domain.whole - 1)
            total += ways * comb(room, count + whole)
    return total > domain.contents


def _summing_up(least: list[int], most: int) -> IntArray:
    """All rows of numbers from these on with no more than ``most`` in all."""
    rows = np.zeros((1, 0), dtype=np.int64)
    for at, first in enumerate(least):
        left = most - rows.sum(axis=1) - sum(least[at:]) + 1
        times = np.maximum(left, 0)
        start = np.repeat(np.cumsum(times) - times, times)
        new = np.arange(int(times.sum())) - start + first
        rows = np.column_stack((np.repeat(rows, times, axis=0), new))
    return rows
