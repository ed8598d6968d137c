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
needs that a domain meets in part or wholly, by class; it maximises the ranks. The
counts of every placement solve it, so

    ranks of the job  <=  sum over the domains of the most that each can hold

or there is no placement. By hand: rank 0 needs rank 6, 1 needs 7, and so on to 5 and
11, and these them; two racks of three nodes of two. A rack has as many of the first six
as of the others, so it holds two and two, on a node each, and the third node nothing:
four ranks a rack, and not all twelve, though there are twelve GPUs.
Shapes: R ranks, D domains, L labels.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from placer.solve.count.engine import Limits, solve
from placer.solve.count.model import Program, Term

if TYPE_CHECKING:
    from placer.solve.bounds.ideal import IdealNetwork
    from placer.solve.bounds.run_sorts import Kind
    from placer.solve.problem.params import Params

IntArray = npt.NDArray[np.int64]
Room = tuple[int, ...]  # ranks that each node of a domain may hold, most first

# What is left of a sum that whole numbers make.
ROUNDING = 1e-6


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


class Sort(NamedTuple):
    """Runs with the same classes, in any order.

    Attributes
    ----------
    length, first, times : int
        Ranks of each, the first rank of one, and how many there may be.
    has, meets : ndarray, shape (K,)
        Its ranks with needs of each class, and its partners of these.
    """

    length: int
    first: int
    times: int
    has: IntArray
    meets: IntArray


@dataclass(frozen=True, eq=False)
class Classes:
    """Alike needs, and the runs that they tell apart.

    Attributes
    ----------
    needs : list of list of Need
        By class.
    label : ndarray, shape (R,)
        Which ranks are of the same classes.
    count : ndarray, shape (2, L, K)
        How often a rank of each label has needs of a class, and meets them.
    """

    needs: list[list[Need]]
    label: IntArray
    count: IntArray

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
        count = np.zeros((2, ranks, len(found)), dtype=np.int64)
        for number, of_class in enumerate(found):
            for need in of_class:
                count[0, need.ranks, number] += 1
                count[1, need.partners, number] += 1
        rows, label = np.unique(
            np.hstack([count[0], count[1]]), axis=0, return_inverse=True
        )
        return cls(found, label.ravel(), np.stack(np.hsplit(rows, 2)))

    def sorts(self, longest: int) -> Iterator[Sort]:
        """All sorts of runs of so many ranks at the most."""
        for length in range(1, min(longest, len(self.label)) + 1):
            windows = np.lib.stride_tricks.sliding_window_view(self.label, length)
            runs, *found = np.unique(
                np.sort(windows, axis=1), axis=0, return_index=True, return_counts=True
            )
            first, times = (of.tolist() for of in found)
            has, meets = self.count[:, runs].sum(axis=2)
            yield from map(Sort, repeat(length), first, times, has, meets)


@dataclass(frozen=True, eq=False)
class RackRanks:
    """The most ranks of domains.

    Attributes
    ----------
    rooms : Counter of Room
        How many domains have such nodes.
    params : Params
    """

    rooms: Counter[Room]
    params: Params

    @classmethod
    def of(cls, network: IdealNetwork, params: Params) -> RackRanks | None:
        """The domains of a launch by nodes; None for any other."""
        rooms = rooms_of(network)
        return cls(Counter(filter(None, rooms)), params) if rooms else None

    def may_hold(self, kinds: Sequence[Kind]) -> bool:
        """Whether the domains may hold all ranks; False is certain."""
        if not kinds:
            return True
        ranks = len(kinds[0].ranks)
        longest = max(room[0] for room in self.rooms)
        needs = needs_of(kinds)
        for blocks in self.params.rack_blocks:
            block, columns = max(blocks * longest, 1), self.params.rack_columns
            classes = Classes.of(needs, ranks, block, columns)
            sorts = list(classes.sorts(longest)) if classes else []
            if classes is None or len(sorts) > columns:
                break
            single = _ranks_of_single(sorts)
            if self._most(classes, sorts, [one.length for one in sorts]) < ranks:
                return False
            # Such runs would be in every domain. They may count for nothing there, and
            # their ranks once, which says more where these are few.
            if single < self.rooms.total() * longest:
                worth = [one.length if one.times > 1 else 0 for one in sorts]
                if self._most(classes, sorts, worth) + single < ranks:
                    return False
        return True

    def _most(
        self, classes: Classes, sorts: Sequence[Sort], worth: Sequence[int]
    ) -> int:
        """Most ranks of all domains, by how many a run of each sort counts for."""
        return sum(
            domains * self._most_of(room, classes, sorts, worth)
            for room, domains in self.rooms.items()
        )

    def _most_of(
        self,
        room: Room,
        classes: Classes,
        sorts: Sequence[Sort],
        worth: Sequence[int],
    ) -> int:
        """Most ranks of a domain with such nodes."""
        program = Program()
        runs = [
            program.column(min(sort.times, len(room)), -ranks)
            for sort, ranks in zip(sorts, worth, strict=True)
        ]
        # A run of more ranks than some nodes hold is on another one.
        for size in {0, *room}:
            longer = [
                Term(run)
                for run, sort in zip(runs, sorts, strict=True)
                if sort.length > size
            ]
            program.row(longer, most=sum(one > size for one in room))
        has, meets = np.stack([sort[3:] for sort in sorts], axis=1)
        for number, of_class in enumerate(classes.needs):
            sums = (
                [Term(runs[s], int(of[s])) for s in np.flatnonzero(of)]
                for of in (has[:, number], meets[:, number])
            )
            _meet(program, of_class[0], len(of_class), *sums)
        answer = solve(program, Limits(self.params.rack_nodes, engine="highs"))
        if not np.isfinite(answer.bound):
            return sum(room)
        return min(int(np.floor(-answer.bound + ROUNDING)), sum(room))


def _ranks_of_single(sorts: Sequence[Sort]) -> int:
    """Ranks in runs of which there is one of its sort, as where roles meet."""
    single = (range(s.first, s.first + s.length) for s in sorts if s.times == 1)
    return len(set().union(*single))


def _meet(
    program: Program, need: Need, alike: int, has: list[Term], meets: list[Term]
) -> None:
    """So many alike needs, each met wholly, in part or not at all.

    ``has`` and ``meets`` add up to the ranks of all that have the needs, and to the
    partners.
    """
    ranks, partners, needs, back = need.sizes
    whole, part = program.column(alike), program.column(alike)
    program.row([Term(whole), Term(part)], most=alike)

    def lie(terms: list[Term], of_whole: int, of_part: int, **limit: float) -> None:
        program.row([*terms, Term(whole, -of_whole), Term(part, -of_part)], **limit)

    least = back or 1
    lie(has, ranks, least, least=0)
    lie(has, ranks, ranks - least, most=0)
    if back:
        lie(meets, partners, needs, least=0)
        lie(meets, partners, partners - needs, most=0)
    else:
        lie(meets, needs, needs, least=0)
        lie(meets, needs, 0, most=alike * (partners - needs))
