"""The most ranks that a scale-up domain can hold, where ranks need others near.

What a domain holds must leave the other domains enough. Where each rank of ``X`` needs
``v`` ranks of ``Y`` in its domain and each of ``Y`` needs ``u`` of ``X``, a domain that
holds ``x`` and ``y`` of them, not all and not none, leaves some to others, who have the
same needs:

    u <= x <= |X| - u,     v <= y <= |Y| - v

Where only ``X`` has needs, a domain without all of ``X`` leaves ``v`` of ``Y`` to the
rest of it: ``y <= |Y| - v``.

A node holds one run of consecutive ranks. Alike needs make a *class*, and runs with as
many ranks of each class count as one *sort*. A program counts runs of each sort, and
needs that a domain meets in part or wholly, by class. Alike ranks have a price, and the
program maximises that of all that a domain holds. The counts of every placement solve
it, so at all prices

    price of all ranks  <=  sum over the domains of the most that each can hold

or there is no placement. A rank that only runs of one of a kind hold, as where roles
meet, may be in one domain alone: it costs a toll, paid back once. The prices are those
of a linear program whose columns are what domains hold (Gilmore and Gomory 1961).

By hand: rank 0 needs rank 6, 1 needs 7, and so on to 5 and 11, and these them; two
racks of three nodes of two. A rack has as many of the first six as of the others, so it
holds two and two, on a node each, and the third node nothing: four ranks a rack at a
price of 1, and not all twelve, though there are twelve GPUs. Rank 0 needs two of 1, 2
and 3, and 4 to 7 nobody; four racks of two nodes of one. A rack may hold two of the
last, all eight together. At 1 for rank 0 and nothing for others they hold none.
Shapes: R ranks, D domains, L labels, K classes, S sorts, Q ranks with tolls.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from placer.arrays import IntArray
from placer.solve.bounds.transfers.rack_prices import RackPrices
from placer.solve.run.budget import ENDLESS

if TYPE_CHECKING:
    from placer.solve.bounds.network.ideal import IdealNetwork
    from placer.solve.bounds.transfers.partners import Kind
    from placer.solve.problem.params import Params
    from placer.solve.run.budget import Budget

Room = tuple[int, ...]  # ranks that each node of a domain may hold, most first


class Need(NamedTuple):
    """Ranks that need partners; where these need them too, both.

    Attributes
    ----------
    ranks, partners : ndarray of int
        Who has the needs, and who meets them.
    needs, back : int
        Partners that a domain with one of the ranks has, and ranks that one with a
        partner has: 0 where partners have no needs.
    """

    ranks: IntArray
    partners: IntArray
    needs: int
    back: int

    @property
    def sizes(self) -> tuple[int, int, int, int]:
        """What alike needs have in common."""
        return len(self.ranks), len(self.partners), self.needs, self.back


def rooms_of(network: IdealNetwork) -> list[Room]:
    """Nodes of each scale-up domain of a launch by nodes; none of any other launch."""
    tier, topology = network.fabric.scale_up_tier, network.fabric.topology
    if not network.in_runs or tier <= topology.node_tier:
        return []
    host_of_node = topology.domain_of_node[topology.node_tier]
    room_of_host = np.bincount(host_of_node, network.capacity_of_node).astype(np.int64)
    first = np.unique(host_of_node, return_index=True)[1]
    domain = topology.domain_of_node[tier][first]
    found: list[list[int]] = [[] for _ in range(int(domain.max()) + 1)]
    for host in np.argsort(-room_of_host, kind="stable"):
        if room_of_host[host] > 0:
            found[int(domain[host])].append(int(room_of_host[host]))
    return list(map(tuple, found))


def needs_of(kinds: Sequence[Kind]) -> list[Need]:
    """The needs of kinds, two that need each other taken together."""
    found, left = [], dict(enumerate(kinds))
    by_ranks = {kind.ranks.tobytes(): number for number, kind in left.items()}
    while left:
        number, kind = next(iter(left.items()))
        del left[number]
        other = by_ranks.get(kind.partners.tobytes())
        back = 0
        if other in left and np.array_equal(left[other].partners, kind.ranks):
            back = left.pop(other).needs
        ranks, partners = np.flatnonzero(kind.ranks), np.flatnonzero(kind.partners)
        found.append(Need(ranks, partners, kind.needs, back))
    return found


@dataclass(frozen=True, eq=False)
class Sorts:
    """Runs with the same labels, in any order, are of one sort.

    Attributes
    ----------
    length, first, times : ndarray, shape (S,)
        Ranks of each, the first rank of one, and how many there may be.
    labels : ndarray, shape (S, L)
        Its ranks of each label.
    """

    length: IntArray
    first: IntArray
    times: IntArray
    labels: IntArray

    @classmethod
    def of(cls, label: IntArray, longest: int, most: int) -> Sorts | None:
        """All sorts of runs up to this long; None if there are more than ``most``."""
        found, count = [], int(label.max()) + 1
        for length in range(1, min(longest, len(label)) + 1):
            windows = np.lib.stride_tricks.sliding_window_view(label, length)
            runs, first, times = np.unique(
                np.sort(windows, axis=1), axis=0, return_index=True, return_counts=True
            )
            most -= len(runs)
            if most < 0:
                return None
            held = (runs[:, :, None] == np.arange(count)).sum(axis=1)
            found.append((np.full(len(runs), length), first, times, held))
        return cls(*(np.concatenate(of) for of in zip(*found, strict=True)))

    @cached_property
    def tolled(self) -> IntArray:
        """Ranks in runs of which there is one of its sort, as where roles meet."""
        single = np.flatnonzero(self.times == 1)
        runs = [self.first[s] + np.arange(self.length[s]) for s in single]
        return np.unique(np.concatenate([np.empty(0, dtype=np.int64), *runs]))

    @cached_property
    def on_toll(self) -> IntArray:
        """Which of these are in the single run of a sort; shape (S, Q)."""
        after = self.tolled - self.first[:, None]
        inside = (after >= 0) & (after < self.length[:, None])
        return np.asarray(inside & (self.times == 1)[:, None], dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Classes:
    """Alike needs, and the ranks that they tell apart.

    Attributes
    ----------
    needs : list of list of Need
        By class.
    label : ndarray, shape (R,)
        Which ranks are of the same classes.
    has, meets : ndarray, shape (L, K)
        How often a rank of each label has needs of a class, and meets them.
    """

    needs: list[list[Need]]
    label: IntArray
    has: IntArray
    meets: IntArray

    @classmethod
    def of(
        cls, needs: Sequence[Need], ranks: int, block: int, most: int
    ) -> Classes | None:
        """Needs told apart by where in blocks of so many ranks theirs are.

        None where that makes more than ``most`` classes.
        """
        alike: defaultdict[tuple[object, ...], list[Need]] = defaultdict(list)
        for need in needs:
            places = (np.sort(part % block).tobytes() for part in need[:2])
            alike[need.sizes, *places].append(need)
        found = list(alike.values())
        if len(found) > most:
            return None
        count = np.zeros((ranks, 2, len(found)), dtype=np.int64)
        for number, of_class in enumerate(found):
            for need in of_class:
                count[need.ranks, 0, number] += 1
                count[need.partners, 1, number] += 1
        rows, label = np.unique(count, axis=0, return_inverse=True)
        return cls(found, label.ravel(), rows[:, 0], rows[:, 1])


@dataclass(frozen=True, eq=False)
class RackRanks:
    """What domains hold of ranks with needs.

    Attributes
    ----------
    rooms : Counter of Room
        How many domains have such nodes.
    """

    rooms: Counter[Room]
    params: Params

    @classmethod
    def of(cls, network: IdealNetwork, params: Params) -> RackRanks | None:
        """The domains of a launch by nodes; None for any other."""
        rooms = rooms_of(network)
        return cls(Counter(filter(None, rooms)), params) if rooms else None

    def may_hold(self, kinds: Sequence[Kind], budget: Budget = ENDLESS) -> bool:
        """Whether the domains may hold all ranks; False is certain.

        They may when the budget ends first.
        """
        if not kinds:
            return True
        ranks = len(kinds[0].ranks)
        longest = max(room[0] for room in self.rooms)
        needs, label = needs_of(kinds), np.empty(0, dtype=np.int64)
        for blocks in self.params.rack_blocks:
            if budget.is_over():
                break
            block, most = max(blocks * longest, 1), self.params.rack_columns
            classes = Classes.of(needs, ranks, block, most)
            if classes is None:
                break
            if np.array_equal(classes.label, label):
                continue  # shorter blocks tell the same ranks apart
            label = classes.label
            sorts = Sorts.of(label, longest, most)
            if sorts is None:
                break
            prices = RackPrices(self.rooms, classes, sorts, self.params, budget)
            if prices.refute():
                return False
        return True
