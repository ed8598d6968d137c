"""Sets of whole nodes that no component of transfers leaves, and ways to cut them.

A node of a node-contiguous launch holds consecutive ranks, of several components; each
of these has ranks on other nodes. Nodes that are joined so make a *closed set*. Along
the ranks of a role sets repeat, so most are alike, and all are cut in the same ways. A
cut leaves each piece the partners that it needs, and may end amid what was a node; the
two runs then take a node each. By hand: ranks 0 to 3 have pairs in 4 to 7. Two nodes of
four are a closed set; cut into {0, 1, 4, 5} and the rest it takes four nodes.
Shapes: S alike sets, P places in a set.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from placer.solve.bounds.rack_ranks import Need
from placer.solve.count.engine import Limits, solve
from placer.solve.count.model import Program, Term
from placer.solve.problem.colocation import join

if TYPE_CHECKING:
    from placer.solve.problem.params import Params
    from placer.solve.run.budget import Budget

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]


class Way(NamedTuple):
    """One way to cut a set.

    Attributes
    ----------
    nodes : tuple of int
        Of each piece.
    piece : ndarray, shape (P,)
        The piece of each place.
    """

    nodes: tuple[int, ...]
    piece: IntArray


@dataclass(frozen=True, eq=False)
class ClosedSets:
    """Closed sets that are alike.

    Attributes
    ----------
    ranks : ndarray, shape (S, P)
        In ascending order.
    follows : ndarray of bool, shape (P,)
        Whether a place is the next rank after the place before.
    needs : list of Need
        In places.
    block : int
        Ranks of a node.
    """

    ranks: IntArray
    follows: BoolArray
    needs: list[Need]
    block: int

    @property
    def nodes(self) -> int:
        """Nodes of a set that is whole."""
        begins = np.flatnonzero(~self.follows)
        lengths = np.diff(begins, append=len(self.follows))
        return int((-(-lengths // self.block)).sum())

    def ways(self, most_pieces: int, params: Params, budget: Budget) -> list[Way]:
        """Ways to cut a set into so many pieces at the most; no two have equal pieces.

        The largest piece of a way is cut once more, which makes another way.
        """
        whole = np.zeros(self.ranks.shape[1], dtype=np.int64)
        last = [Way((self.nodes,), whole)]
        found = {way.nodes: way for way in last}
        for pieces in range(1, most_pieces):
            before, last = last, []
            for way in before:
                for cut in self._cut_again(way, pieces, params, budget):
                    if found.setdefault(tuple(sorted(cut.nodes)), cut) is cut:
                        last.append(cut)
        return list(found.values())

    def _cut_again(
        self, way: Way, number: int, params: Params, budget: Budget
    ) -> Iterator[Way]:
        """The largest piece in two, of which none is smaller in the one or the other.

        The second of them becomes the piece ``number``.
        """
        largest = int(np.argmax(way.nodes))
        places = np.flatnonzero(way.piece == largest)
        most = way.nodes[largest]
        while most:
            halves = self._cut(places.tolist(), most, params, budget)
            if halves is None:
                return
            nodes = [*way.nodes, halves.nodes[1]]
            nodes[largest] = most = halves.nodes[0]
            piece = way.piece.copy()
            piece[places[halves.piece > 0]] = number
            yield Way(tuple(nodes), piece)
            most -= 1

    def _cut(
        self, places: list[int], most: int, params: Params, budget: Budget
    ) -> Way | None:
        """The smallest second piece beside a first one of at most so many nodes."""
        program = Program()
        sides = [self._piece(program, places, p) for p in (1, 2 * self.nodes)]
        for place in places:
            program.row([Term(held[place]) for held, _ in sides], 1, 1)
        for held, begins in sides:
            program.row(map(Term, held.values()), least=1)
            program.row(map(Term, begins.values()), most=most)
        counts = solve(program, Limits(params.cut_work, budget.seconds_left)).counts
        if counts is None:
            return None
        first, second = (sum(counts[c] for c in b.values()) for _, b in sides)
        return Way((first, second), np.array([counts[sides[1][0][p]] for p in places]))

    def _piece(
        self, program: Program, places: list[int], price: int
    ) -> tuple[dict[int, int], dict[int, int]]:
        """Columns of a piece: which places it holds, and at which a node begins."""
        held = {place: program.column(1) for place in places}
        begins = {place: program.column(1, price) for place in places}
        for place in places:
            # A node that holds it begins not long before, and every run with one.
            near = [Term(begins[place])]
            for before in range(place - 1, place - self.block, -1):
                if not self.follows[before + 1] or before not in held:
                    break
                near.append(Term(begins[before]))
            program.row([*near, Term(held[place], -1)], 0)
            joined = self.follows[place] and place - 1 in held
            held_before = [Term(held[place - 1])] if joined else []
            program.row([near[0], *held_before, Term(held[place], -1)], 0)
        for need in self.needs:
            _meet(program, need, held)
        return held, begins


def _meet(program: Program, need: Need, held: dict[int, int]) -> None:
    """A piece has none of a component, all of it, or enough that others have enough."""
    whole, part = program.column(1), program.column(1)
    program.row([Term(whole), Term(part)], most=1)
    for places, least in ((need.ranks, need.back), (need.partners, need.needs)):
        terms = [Term(held[place]) for place in places.tolist() if place in held]
        ends = Term(whole, -len(places))
        program.row([*terms, ends, Term(part, -least)], least=0)
        program.row([*terms, ends, Term(part, least - len(places))], most=0)


def closed_sets(needs: Sequence[Need], ranks: int, block: int) -> list[ClosedSets]:
    """Closed sets of so many ranks on nodes of ``block``, alike ones together.

    Nodes without needs are sets of their own.
    """
    node = np.arange(ranks) // block
    edges = [
        np.stack([np.repeat(of[0], len(of)), of], axis=1)
        for of in (node[np.concatenate(need[:2])] for need in needs)
    ]
    nodes = int(node[-1]) + 1
    label = join(np.arange(nodes), np.concatenate([np.empty((0, 2), int), *edges]))
    set_of_rank = np.unique(label, return_inverse=True)[1].ravel()[node]
    needs_of_set: defaultdict[int, list[Need]] = defaultdict(list)
    for need in needs:
        needs_of_set[int(set_of_rank[need.ranks[0]])].append(need)
    order = np.argsort(set_of_rank, kind="stable")
    parts = np.split(order, np.cumsum(np.bincount(set_of_rank))[:-1])
    alike: defaultdict[tuple[object, ...], list[ClosedSets]] = defaultdict(list)
    for number, part in enumerate(parts):
        own = sorted(
            (_in_places(need, part) for need in needs_of_set[number]),
            key=lambda need: (need.ranks.tolist(), need.partners.tolist()),
        )
        follows = np.diff(part, prepend=-2) == 1
        shape = [(n.ranks.tobytes(), n.partners.tobytes(), *n[2:]) for n in own]
        one = ClosedSets(part[None], follows, own, block)
        alike[follows.tobytes(), *shape].append(one)
    return [
        replace(of[0], ranks=np.concatenate([one.ranks for one in of]))
        for of in alike.values()
    ]


def _in_places(need: Need, part: IntArray) -> Need:
    """A need of ranks as one of their places in a set."""
    ranks, partners = (np.searchsorted(part, np.sort(of)) for of in need[:2])
    return Need(ranks, partners, need.needs, need.back)
