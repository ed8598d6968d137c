"""Placements that differ from the one before by few moves.

An affected base domain that has room seats its lost ranks itself. Another must let move
groups go. For every set of groups that may leave, each piece of it (groups with edges
between them) has a cheapest base domain with room to go to. Pieces of different base
domains hardly touch, so what the sets cost adds up: the cheapest choice of a set for
each, for every number of moves, is a knapsack. Each choice is then carried out piece by
piece, with the room that is left by then, and pieces are settled once more beside each
other.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import partial
from math import inf
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from placer.base.arrays import BoolArray, FloatArray, IntArray
from placer.solve.replace.base_domain import base_domains

if TYPE_CHECKING:
    from placer.solve.replace.base_domain import BaseDomain
    from placer.solve.replace.seating import Seating
    from placer.solve.replace.state import RepairState
    from placer.solve.run.budget import Budget

# Sets of ranks that may leave a domain: grown one by one, by segment at most, and
# weighed for each number of moves.
GROWN_EXITS, SEGMENT_EXITS, WEIGHED_EXITS = 64, 512, 12


class Exit(NamedTuple):
    """A set of groups that leaves a base domain.

    Attributes
    ----------
    moves : int
        Ranks that have a seat and leave it.
    cost : float
        What it costs when every piece goes to its cheapest base domain.
    pieces : tuple of ndarray
        Ranks of each piece.
    """

    moves: int
    cost: float
    pieces: tuple[IntArray, ...]


class Repairs:
    """Repairs of one placement.

    Parameters
    ----------
    limit : float
        Groups whose division costs more stay whole.
    parts : collection of str
        Of groups of these axes, what a base domain has stays together.
    """

    def __init__(
        self,
        state: RepairState,
        seating: Seating,
        limit: float,
        parts: Collection[str] = (),
    ) -> None:
        self._state, self._seating = state, seating
        self._least: dict[bytes, float] = {}
        row = state.topology.domain_of_node[state.tier]
        # A node of each base domain tells the domains around it.
        self._around = state.topology.domain_of_node[
            :, np.unique(row, return_index=True)[1]
        ]
        self._count = state.before.domain.max(axis=1) + 1
        self._set_size = [np.bincount(label) for label in state.sets]
        tied = partial(state.tied, ranks=state.residents, cells=True, parts=parts)
        bases = base_domains(state, tied(limit))
        # What the rules and the nodes tie together, at the least.
        self._forced = tied(inf)
        self._room = seating.room.copy()
        self._short: list[tuple[BaseDomain, int]] = []
        for base in bases:
            lacking = int(base.lost_cells.sum()) - self._room_in(base.number)
            if lacking > 0:
                self._short.append((base, lacking))
            if base.number < len(self._room):
                self._room[base.number] = max(0, -lacking)

    def _room_in(self, base: int) -> int:
        return int(self._room[base]) if base < len(self._room) else 0

    def choices(self, budget: Budget) -> list[list[Exit]]:
        """Choices of an exit a base domain, of ever more moves at ever less cost."""
        exits = []
        for base, lacking in self._short:
            if budget.is_over():
                return []
            exits.append(self._exits(base, lacking))
        return choices(exits)

    def placement(self, chosen: list[Exit]) -> IntArray | None:
        """GPU of every rank when the chosen sets leave; None if they find no seats."""
        home = self._settled(chosen)
        return None if home is None else self._seating.seated(home)

    def _exits(self, base: BaseDomain, lacking: int) -> list[Exit]:
        """The cheapest exit for every number of moves."""
        rise = self._state.rise
        grown = base.grown(rise, lacking, GROWN_EXITS)
        listed = np.array([*grown, *base.closed(SEGMENT_EXITS)])
        sets = np.unique(np.concatenate((base.few(), listed)), axis=0)
        sets = sets[sets @ base.cells >= lacking]
        moves, losses = sets @ base.kept, base.losses(sets, rise)
        best: dict[int, Exit] = {}
        for row in _promising(moves, losses, WEIGHED_EXITS).tolist():
            pieces = tuple(
                np.sort(np.concatenate([base.groups[a] for a in piece]))
                for piece in base.pieces(sets[row])
            )
            cost = sum(self._known_cost(piece) for piece in pieces)
            known = best.get(int(moves[row]))
            if known is None or cost < known.cost:
                best[int(moves[row])] = Exit(int(moves[row]), cost, pieces)
        bare = self._bare(base, lacking)
        if bare is not None and (0 not in best or bare.cost < best[0].cost):
            best[0] = bare
        return [best[key] for key in sorted(best)]

    def _bare(self, base: BaseDomain, lacking: int) -> Exit | None:
        """Lost ranks alone, though that divides groups; None where rules forbid it."""
        is_lost = self._state.before.is_lost
        pieces, cells = [], 0
        for ranks in base.groups:
            own = ranks[is_lost[ranks]]
            if len(own) and cells < lacking:
                pieces.append(own)
                cells += self._cells(own)
        gone = np.concatenate(pieces)
        tied = np.isin(self._forced[np.concatenate(base.groups)], self._forced[gone])
        if np.count_nonzero(tied) != len(gone) or cells < lacking:
            return None
        cost = sum(self._known_cost(piece) for piece in pieces)
        return Exit(0, cost, tuple(pieces))

    def _known_cost(self, piece: IntArray) -> float:
        key = piece.tobytes()
        if key not in self._least:
            self._least[key] = self._least_cost(piece)
        return self._least[key]

    def _least_cost(self, piece: IntArray) -> float:
        """What the piece pays where it is cheapest; a high price if it must divide."""
        price = self._prices(piece, self._state.before.domain)
        fits = self._room >= self._cells(piece)
        fits &= self._allowed(piece)
        if fits.any():
            return float(price[fits].min())
        return float(price.max()) + self._state.rise * float(
            self._state.edges_of(piece).weight.sum()
        )

    def _cells(self, piece: IntArray) -> int:
        return len(np.unique(self._state.cell[piece]))

    def _prices(self, piece: IntArray, domain: IntArray) -> FloatArray:
        """Change of cost when a piece goes to each base domain; shape (D,)."""
        state = self._state
        distance = state.hops.distance
        source, target, weight = state.edges_of(piece)
        outer = ~np.isin(target, piece)
        source, target, weight = source[outer], target[outer], weight[outer]
        bases = self._around.shape[1]
        price = np.full(bases, distance[state.tier] * weight.sum())
        for t in range(state.tier, len(distance) - 1):
            most = max(int(self._count[t]), bases)
            pull = np.bincount(domain[t][target], weight, most)
            apart = weight.sum() - pull[self._around[t]]
            price += (distance[t + 1] - distance[t]) * apart
        before = (domain[:-1][:, source] != domain[:-1][:, target]).sum(axis=0)
        return price - float(weight @ distance[before])

    def _allowed(self, piece: IntArray) -> BoolArray:
        """Base domains that the requirements allow a piece; shape (D,)."""
        state = self._state
        allowed = np.ones(self._around.shape[1], dtype=bool)
        for t in range(state.tier + 1, len(state.sets) - 1):
            touched = np.unique(state.sets[t][piece])
            if self._set_size[t][touched].sum() != len(piece):
                allowed &= self._around[t] == state.before.domain[t][piece[0]]
        return allowed

    def _settled(self, chosen: list[Exit]) -> IntArray | None:
        """Base domain of every rank once the sets have left; None if one cannot."""
        filling = _Filling(self._state.before.domain.copy(), self._room.copy())
        for (base, lacking), one in zip(self._short, chosen, strict=True):
            if base.number < len(filling.room):
                gone = sum(self._cells(piece) for piece in one.pieces)
                filling.room[base.number] += gone - lacking
        queue = sorted(
            (piece for one in chosen for piece in one.pieces), key=len, reverse=True
        )
        placed = []
        while queue:
            piece = queue.pop(0)
            if self._put(filling, piece):
                placed.append(piece)
            else:
                halves = self._divided(piece)
                if halves is None:
                    return None
                queue = sorted([*queue, *halves], key=len, reverse=True)
        for piece in placed:
            self._take(filling, piece)
            self._put(filling, piece)
        return np.array(filling.domain[self._state.tier])

    def _put(self, filling: _Filling, piece: IntArray) -> bool:
        """Put a piece where it is cheapest and fits, in the fullest of equal ones."""
        cells = self._cells(piece)
        fits = (filling.room >= cells) & self._allowed(piece)
        own = int(self._state.home[piece[0]])
        if own < len(fits):
            fits[own] = False
        bases = np.flatnonzero(fits)
        if not bases.size:
            return False
        price = self._prices(piece, filling.domain)[bases]
        order = np.lexsort((bases, filling.room[bases], np.round(price, 6)))
        base = int(bases[order[0]])
        filling.room[base] -= cells
        filling.domain[:, piece] = self._around[:, base][:, None]
        return True

    def _take(self, filling: _Filling, piece: IntArray) -> None:
        """Take a piece out of its base domain again."""
        base = int(filling.domain[self._state.tier][piece[0]])
        filling.room[base] += self._cells(piece)

    def _divided(self, piece: IntArray) -> list[IntArray] | None:
        """The piece in two, where that cuts the least along its order of ranks."""
        cells = np.unique(self._state.cell[piece])
        if len(cells) < 2:
            return None
        source, target, weight = self._state.edges_of(piece)
        inner = np.isin(target, piece) & (source < target)
        first = np.searchsorted(piece, source[inner])
        second = np.searchsorted(piece, target[inner])
        change = np.zeros(len(piece) + 1)
        np.add.at(change, first + 1, weight[inner])
        np.add.at(change, second + 1, -weight[inner])
        cut = np.cumsum(change)[1:-1]
        is_border = np.diff(self._state.cell[piece]) != 0
        middle = np.abs(np.arange(1, len(piece)) - len(piece) / 2)
        order = np.lexsort((middle, cut))
        at = int(order[is_border[order]][0]) + 1
        return [piece[:at], piece[at:]]


@dataclass
class _Filling:
    """Domains of ranks and room of base domains while pieces are put somewhere."""

    domain: IntArray
    room: IntArray


def _promising(moves: IntArray, losses: FloatArray, most: int) -> IntArray:
    """Rows with the least losses, ``most`` for every number of moves."""
    order = np.lexsort((losses, moves))
    position = np.arange(len(order)) - np.searchsorted(moves[order], moves[order])
    return order[position < most]


def choices(exits: list[list[Exit]]) -> list[list[Exit]]:
    """A choice of one exit a base domain for every number of moves worth making.

    The fewest moves come first; each choice is cheaper than those before.
    """
    table: dict[int, tuple[float, list[Exit]]] = {0: (0.0, [])}
    for options in exits:
        grown: dict[int, tuple[float, list[Exit]]] = {}
        for moves, (cost, chosen) in table.items():
            for one in options:
                total = moves + one.moves
                if cost + one.cost < grown.get(total, (inf, []))[0]:
                    grown[total] = cost + one.cost, [*chosen, one]
        table = _cheaper_and_cheaper(grown)
    return [chosen for _, chosen in table.values()]


def _cheaper_and_cheaper(
    table: dict[int, tuple[float, list[Exit]]],
) -> dict[int, tuple[float, list[Exit]]]:
    """Entries with more moves only where they cost less."""
    kept, least = {}, inf
    for moves in sorted(table):
        if table[moves][0] < least:
            kept[moves], least = table[moves], table[moves][0]
    return kept
