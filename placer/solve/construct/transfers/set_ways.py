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
    from placer.solve.bounds.transfers.closed_sets import ClosedSets
    from placer.solve.bounds.transfers.rack_ranks import Need
    from placer.solve.problem.params import Params
    from placer.solve.run.budget import Budget


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


def ways_to_cut(
    sets: ClosedSets, most_pieces: int, params: Params, budget: Budget
) -> list[Way]:
    """Ways to cut a set into so many pieces at the most; no two have equal pieces.

    The largest piece of a way is cut once more, which makes another way.
    """
    whole = np.zeros(sets.ranks.shape[1], dtype=np.int64)
    last = [Way((sets.nodes,), whole)]
    found = {way.nodes: way for way in last}
    for pieces in range(1, most_pieces):
        before, last = last, []
        for way in before:
            for cut in _cut_again(sets, way, pieces, params, budget):
                if found.setdefault(tuple(sorted(cut.nodes)), cut) is cut:
                    last.append(cut)
    return list(found.values())


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
        yield Way(tuple(nodes), piece)
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
    for need in sets.needs:
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
