"""Ways to cut closed sets of nodes (`closed_sets`) into pieces.

Alike sets are all cut in the same ways. A cut leaves each piece the partners that it
needs, and may end amid what was a node; the two runs then take a node each. By hand:
ranks 0 to 3 have pairs in 4 to 7. Two nodes of four are a closed set; cut into {0, 1,
4, 5} and the rest it takes four nodes. Shapes: P places in a set.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from placer.arrays import IntArray
from placer.solve.count.engine import Limits, solve
from placer.solve.count.model import Program, Term

if TYPE_CHECKING:
    from placer.solve.construct.transfers.closed_sets import ClosedSets
    from placer.solve.problem.needs import Need
    from placer.solve.problem.params import Params
    from placer.solve.run.budget import Budget


class Way(NamedTuple):
    """One way to cut a set.

    Attributes
    ----------
    nodes : tuple of int
        Of each piece.
    piece : ndarray, shape (P,)
        The piece of each place; -1 for those left over.
    over : int
        Nodes of these.
    """

    nodes: tuple[int, ...]
    piece: IntArray
    over: int = 0


class Ways:
    """Ways to cut a set; no two have equal pieces.

    The largest piece of a way is cut once more, which makes another way.

    Parameters
    ----------
    sets : ClosedSets
    params : Params
    """

    def __init__(self, sets: ClosedSets, params: Params) -> None:
        whole = Way((sets.nodes,), np.zeros(sets.ranks.shape[1], dtype=np.int64))
        self._sets, self._params = sets, params
        self._last, self._pieces = [whole, *_trimmed(sets)], 1
        self._found = {_sizes(way): way for way in self._last}

    def up_to(self, most_pieces: int, budget: Budget) -> list[Way]:
        """Those of so many pieces at the most."""
        for pieces in range(self._pieces, most_pieces):
            before, self._last, self._pieces = self._last, [], pieces + 1
            for way in before:
                for cut in _cut_again(self._sets, way, pieces, self._params, budget):
                    if self._found.setdefault(_sizes(cut), cut) is cut:
                        self._last.append(cut)
        return list(self._found.values())


def _sizes(way: Way) -> tuple[int, ...]:
    """What tells ways apart."""
    return way.over, *sorted(way.nodes)


def _trimmed(sets: ClosedSets) -> Iterator[Way]:
    """The set without nodes that nobody needs, as many as can be left over."""
    node = np.cumsum(~sets.follows) * len(sets.follows)
    begins = np.flatnonzero(~sets.follows)
    node += (np.arange(len(node)) - begins[np.cumsum(~sets.follows) - 1]) // sets.block
    node = np.unique(node, return_inverse=True)[1].ravel()
    program, over = Program(), []
    for number in range(int(node.max()) + 1):
        own = np.flatnonzero(node == number)
        asks = (
            np.isin(own, np.concatenate(n[: 1 + (n.back > 0)])).any()
            for n in sets.needs
        )
        over.append(program.column(int(not any(asks)), -1))
    for need in sets.needs:
        held = np.bincount(node[need.partners], minlength=len(over)).tolist()
        terms = [Term(over[n], ranks) for n, ranks in enumerate(held) if ranks]
        program.row(terms, most=len(need.partners) - need.needs)
    counts = solve(program, Limits(1000, engine="highs")).counts
    if counts is not None and any(counts):
        left = sum(counts)
        yield Way((sets.nodes - left,), -np.array(counts)[node], left)


def _cut_again(
    sets: ClosedSets, way: Way, number: int, params: Params, budget: Budget
) -> Iterator[Way]:
    """The largest piece in two, of which none is smaller in the one or the other.

    The second of them becomes the piece ``number``.
    """
    largest = int(np.argmax(way.nodes))
    places = np.flatnonzero(way.piece == largest)
    most = way.nodes[largest]
    while most:
        halves = _cut(sets, places.tolist(), most, params, budget)
        if halves is None:
            return
        nodes = [*way.nodes, halves.nodes[1]]
        nodes[largest] = most = halves.nodes[0]
        piece = way.piece.copy()
        piece[places[halves.piece > 0]] = number
        yield Way(tuple(nodes), piece, way.over)
        most -= 1


def _cut(
    sets: ClosedSets, places: list[int], most: int, params: Params, budget: Budget
) -> Way | None:
    """The smallest second piece beside a first one of at most so many nodes."""
    program = Program()
    sides = [piece_of(sets, program, places, p) for p in (1, 2 * sets.nodes)]
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


def piece_of(
    sets: ClosedSets, program: Program, places: list[int], price: int
) -> tuple[dict[int, int], dict[int, int]]:
    """Columns of a piece: which places it holds, and at which a node begins."""
    held, begins = _runs_of(sets, program, places, price)
    for need in sets.needs:
        _meet(program, need, held)
    return held, begins


def _runs_of(
    sets: ClosedSets, program: Program, places: list[int], price: int
) -> tuple[dict[int, int], dict[int, int]]:
    """The same of ranks without needs."""
    held = {place: program.column(1) for place in places}
    begins = {place: program.column(1, price) for place in places}
    for place in places:
        # A node that holds it begins not long before, and every run with one.
        near = [Term(begins[place])]
        for before in range(place - 1, place - sets.block, -1):
            if not sets.follows[before + 1] or before not in held:
                break
            near.append(Term(begins[before]))
        program.row([*near, Term(held[place], -1)], 0)
        joined = sets.follows[place] and place - 1 in held
        held_before = [Term(held[place - 1])] if joined else []
        program.row([near[0], *held_before, Term(held[place], -1)], 0)
    return held, begins


def _meet(program: Program, need: Need, held: dict[int, int]) -> None:
    """A piece has none of a component, all of it, or enough that others have enough.

    Where partners have no needs, any number of them that leaves enough is near none.
    """
    whole, part = program.column(1), program.column(1)
    program.row([Term(whole), Term(part)], most=1)
    ranks, partners, needs, back = need.sizes

    def lie(places: IntArray, of_whole: int, of_part: int, **limit: float) -> None:
        terms = [Term(held[place]) for place in places.tolist() if place in held]
        ends = [Term(whole, -of_whole), Term(part, -of_part)]
        program.row([*terms, *ends], **limit)

    lie(need.ranks, ranks, back or 1, least=0)
    lie(need.ranks, ranks, ranks - (back or 1), most=0)
    if back:
        lie(need.partners, partners, needs, least=0)
        lie(need.partners, partners, partners - needs, most=0)
    else:
        lie(need.partners, needs, needs, least=0)
        lie(need.partners, needs, 0, most=partners - needs)
