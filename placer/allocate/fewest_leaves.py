"""Of allocations that nobody can tell apart by their steps, one on the fewest leaves.

A leaf is a domain of the tier in which nodes of a job are counted. A job that touches
fewer shares fewer uplinks with others, and fewer faults reach it. So a step that is
longer by less than what runs differ by is no reason to take one more.

All sets of leaves are asked about where these are few, the ones with the least room to
spare first; of many only the roomiest, of the domains further out that the job has
first. A job gets all free nodes of them: more nodes are never worse.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, combinations, islice
from math import comb

import numpy as np

from placer.allocate.offers import Offers
from placer.allocate.question import Question
from placer.allocate.together import Together, left_beside, moved_to
from placer.base.arrays import BoolArray
from placer.cost import JITTER
from placer.topology.model import Topology

# Sets of leaves of one size that are placed for a job, and that are listed.
PLACED = 6
LISTED = 2_048


def leaves_of(machine: Topology, nodes: BoolArray) -> int:
    """How many leaves some nodes touch; 0 where there are none."""
    tier = leaf_tier(machine)
    return len(np.unique(machine.domain_of_node[tier][nodes])) if tier else 0


def leaf_tier(machine: Topology) -> int:
    """The tier in whose domains nodes of a job are counted; 0 where there is none.

    It is the largest NVLink tier where that holds more than a node, else the first
    above the node; none where that is the whole machine.
    """
    tier = max(machine.scale_up_tier, 1)
    return tier if tier < len(machine.tiers) - 1 else 0


def leaves_first(question: Question, found: Together) -> bool:
    """Whether fewer leaves count more than a useful rest.

    Not where it was said what the rest is for, nor for hops, which runs do not blur.
    """
    is_time = all(offer.solution.objective == "time" for offer in found.offers)
    return is_time and not question.asks_for_rest and leaf_tier(question.machine) > 0


def on_fewest_leaves(offers: Offers, best: Together) -> Together:
    """The allocation, or one on fewer leaves as good as it, job after job."""
    if not leaves_first(offers.question, best):
        return best
    limits = [value * (1 + JITTER) for value in best.values]
    for index in range(len(best.offers)):
        best = _Leaves(offers, best, index, limits).fewest()
    return best


class _Leaves:
    """The leaves of one job of an allocation.

    ``limits``: the most that each job may cost.
    """

    def __init__(
        self, offers: Offers, best: Together, index: int, limits: Sequence[float]
    ) -> None:
        self._offers, self._best = offers, best
        self._index, self._limits = index, limits
        question, machine = offers.question, offers.question.machine
        free, _ = left_beside(question, best.others(index))
        self._free = question.open_to(index, free)
        tier, rows = leaf_tier(machine), machine.domain_of_node
        self._row = rows[tier]
        self._outer = rows[tier + 1, np.unique(self._row, return_index=True)[1]]
        gpus = machine.gpus_of_node
        self._room = np.bincount(self._row, gpus * self._free).astype(np.int64)
        self._need = int(gpus[best.offers[index].nodes].sum())

    def fewest(self) -> Together:
        """The allocation with this job on the fewest leaves: more are never worse."""
        best, nodes = self._best, self._best.offers[self._index].nodes
        most = np.sort(self._room)[::-1].cumsum()
        low = int(np.searchsorted(most, self._need)) + 1
        high = leaves_of(self._offers.question.machine, nodes)
        while low < high and not self._offers.budget.is_over():
            size = (low + high) // 2
            found = self._on(size)
            if found is None:
                low = size + 1
            else:
                best, high = found, size
        return best

    def _on(self, size: int) -> Together | None:
        """An allocation with this job on so many leaves at most; None if none is."""
        for leaves in islice(self._sets(size), PLACED):
            nodes = self._free & np.isin(self._row, leaves)
            _, after = moved_to(
                self._offers, self._best, self._index, nodes, self._limits
            )
            if after is not None:
                return after
        return None

    def _sets(self, size: int) -> Iterable[list[int]]:
        """Sets of so many leaves with room, those with the least to spare first.

        One of those with the same rooms; of too many only the roomiest.
        """
        there = np.flatnonzero(self._room).tolist()
        if comb(len(there), size) > LISTED:
            return self._roomiest(there, size)
        found: dict[tuple[int, ...], list[int]] = {}
        for one in combinations(there, size):
            leaves, room = list(one), int(self._room[list(one)].sum())
            if room >= self._need:
                pairs = sorted(
                    zip(self._outer[leaves], self._room[leaves], strict=True)
                )
                found.setdefault((room, *map(int, chain(*pairs))), leaves)
        return [found[key] for key in sorted(found)]

    def _roomiest(self, there: list[int], size: int) -> Iterator[list[int]]:
        """The roomiest leaves of the domains further out that the job has; of all."""
        nodes = self._best.offers[self._index].nodes
        mine = np.isin(self._outer, self._outer[self._row[nodes]])
        for own in (mine, np.ones_like(mine)):
            order = sorted(there, key=lambda leaf: (not own[leaf], -self._room[leaf]))
            yield order[:size]
