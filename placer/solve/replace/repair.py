"""Placements that differ from the one before by few moves.

A struck leaf that has room seats its lost ranks itself. Another must let atoms go. For
every set of atoms that may leave, each piece of it (atoms with edges between them) has
a cheapest leaf with room to go to. Pieces of different leaves hardly touch, so what the
sets cost adds up: the cheapest choice of a set a leaf, for every number of moves, is a
knapsack. Each choice is then carried out piece by piece, with the room that is left by
then, and pieces are settled once more beside each other.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from placer.solve.replace.leaf import leaves_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from placer.solve.replace.ground import Ground
    from placer.solve.replace.leaf import Leaf
    from placer.solve.replace.seating import Seating

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

# Sets of a leaf that are weighed for each number of moves, by their least loss.
SETS_WEIGHED = 12


class Exit(NamedTuple):
    """A set of atoms that leaves a leaf.

    Attributes
    ----------
    moves : int
        Ranks that have a seat and leave it.
    cost : float
        What it costs when every piece goes to its cheapest leaf.
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
    ground : Ground
    seating : Seating
    limit : float
        Groups whose division costs more stay whole.
    """

    def __init__(self, ground: Ground, seating: Seating, limit: float) -> None:
        self._ground, self._seating = ground, seating
        self._least: dict[bytes, float] = {}
        row = ground.topology.domain_of_node[ground.tier]
        # A node of each leaf tells the domains around it.
        self._around = ground.topology.domain_of_node[
            :, np.unique(row, return_index=True)[1]
        ]
        self._count = ground.before.domain.max(axis=1) + 1
        self._part_size = [np.bincount(label) for label in ground.parts]
        leaves = leaves_of(ground, ground.tied(limit, ground.residents, cells=True))
        # What the rules and the nodes tie together, at the least.
        self._forced = ground.tied(inf, ground.residents, cells=True)
        self._room = seating.room.copy()
        self._short: list[tuple[Leaf, int]] = []
        for leaf in leaves:
            lacking = int(leaf.lost_cells.sum()) - self._room_in(leaf.number)
            if lacking > 0:
                self._short.append((leaf, lacking))
            if leaf.number < len(self._room):
                self._room[leaf.number] = max(0, -lacking)

    def _room_in(self, leaf: int) -> int:
        return int(self._room[leaf]) if leaf < len(self._room) else 0

    def choices(self, over: Callable[[], bool]) -> list[list[Exit]]:
        """Choices of an exit a leaf, of ever more moves at ever less cost."""
        exits = []
        for leaf, lacking in self._short:
            if over():
                return []
            exits.append(self._exits(leaf, lacking))
        return choices(exits)

    def placement(self, chosen: list[Exit]) -> IntArray | None:
        """GPU of every rank when the chosen sets leave; None if they find no seats."""
        home = self._settled(chosen)
        return None if home is None else self._seating.seated(home)

    def _exits(self, leaf: Leaf, lacking: int) -> list[Exit]:
        """The cheapest exit for every number of moves."""
        rise = self._ground.rise
        listed = np.array([*leaf.grown(rise, lacking), *leaf.closed()])
        sets = np.unique(np.concatenate((leaf.few(), listed)), axis=0)
        sets = sets[sets @ leaf.cells >= lacking]
        moves, losses = sets @ leaf.kept, leaf.losses(sets, rise)
        best: dict[int, Exit] = {}
        for row in _promising(moves, losses).tolist():
            pieces = tuple(
                np.sort(np.concatenate([leaf.atoms[a] for a in piece]))
                for piece in leaf.pieces(sets[row])
            )
            cost = sum(self._known_cost(piece) for piece in pieces)
            known = best.get(int(moves[row]))
            if known is None or cost < known.cost:
                best[int(moves[row])] = Exit(int(moves[row]), cost, pieces)
        bare = self._bare(leaf, lacking)
        if bare is not None and (0 not in best or bare.cost < best[0].cost):
            best[0] = bare
        return [best[key] for key in sorted(best)]

    def _bare(self, leaf: Leaf, lacking: int) -> Exit | None:
        """Lost ranks alone, though that divides atoms; None where rules forbid it."""
        is_lost = self._ground.before.is_lost
        pieces, cells = [], 0
        for ranks in leaf.atoms:
            own = ranks[is_lost[ranks]]
            if len(own) and cells < lacking:
                pieces.append(own)
                cells += self._cells(own)
        gone = np.concatenate(pieces)
        tied = np.isin(self._forced[np.concatenate(leaf.atoms)], self._forced[gone])
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
        """What the piece pays in its cheapest leaf; a high price if it must divide."""
        price = self._prices(piece, self._ground.before.domain)
        fits = self._room >= self._cells(piece)
        fits &= self._allowed(piece)
        if fits.any():
            return float(price[fits].min())
        return float(price.max()) + self._ground.rise * float(
            self._ground.edges_of(piece).weight.sum()
        )

    def _cells(self, piece: IntArray) -> int:
        return len(np.unique(self._ground.cell[piece]))

    def _prices(self, piece: IntArray, domain: IntArray) -> FloatArray:
        """Change of cost when a piece goes to each leaf; shape (leaves,)."""
        ground = self._ground
        distance = ground.hops.distance
        source, target, weight = ground.edges_of(piece)
        outer = ~np.isin(target, piece)
        source, target, weight = source[outer], target[outer], weight[outer]
        leaves = self._around.shape[1]
        price = np.full(leaves, distance[ground.tier] * weight.sum())
        for t in range(ground.tier, len(distance) - 1):
            most = max(int(self._count[t]), leaves)
            pull = np.bincount(domain[t][target], weight, most)
            apart = weight.sum() - pull[self._around[t]]
            price += (distance[t + 1] - distance[t]) * apart
        before = (domain[:-1][:, source] != domain[:-1][:, target]).sum(axis=0)
        return price - float(weight @ distance[before])

    def _allowed(self, piece: IntArray) -> BoolArray:
        """Leaves that the requirements allow a piece; shape (leaves,)."""
        ground = self._ground
        allowed = np.ones(self._around.shape[1], dtype=bool)
        for t in range(ground.tier + 1, len(ground.parts) - 1):
            touched = np.unique(ground.parts[t][piece])
            if self._part_size[t][touched].sum() != len(piece):
                allowed &= self._around[t] == ground.before.domain[t][piece[0]]
        return allowed

    def _settled(self, chosen: list[Exit]) -> IntArray | None:
        """Leaf of every rank when the chosen sets have left, None if one cannot."""
        state = _State(self._ground.before.domain.copy(), self._room.copy())
        for (leaf, lacking), one in zip(self._short, chosen, strict=True):
            if leaf.number < len(state.room):
                gone = sum(self._cells(piece) for piece in one.pieces)
                state.room[leaf.number] += gone - lacking
        queue = sorted(
            (piece for one in chosen for piece in one.pieces), key=len, reverse=True
        )
        placed = []
        while queue:
            piece = queue.pop(0)
            if self._put(state, piece):
                placed.append(piece)
            else:
                halves = self._divided(piece)
                if halves is None:
                    return None
                queue = sorted([*queue, *halves], key=len, reverse=True)
        for piece in placed:
            self._take(state, piece)
            self._put(state, piece)
        return np.array(state.domain[self._ground.tier])

    def _put(self, state: _State, piece: IntArray) -> bool:
        """Put a piece into its cheapest leaf with room, the fullest of equal ones."""
        cells = self._cells(piece)
        fits = (state.room >= cells) & self._allowed(piece)
        own = int(self._ground.home[piece[0]])
        if own < len(fits):
            fits[own] = False
        leaves = np.flatnonzero(fits)
        if not leaves.size:
            return False
        price = self._prices(piece, state.domain)[leaves]
        order = np.lexsort((leaves, state.room[leaves], np.round(price, 6)))
        leaf = int(leaves[order[0]])
        state.room[leaf] -= cells
        state.domain[:, piece] = self._around[:, leaf][:, None]
        return True

    def _take(self, state: _State, piece: IntArray) -> None:
        """Take a piece out of its leaf again."""
        leaf = int(state.domain[self._ground.tier][piece[0]])
        state.room[leaf] += self._cells(piece)

    def _divided(self, piece: IntArray) -> list[IntArray] | None:
        """The piece in two, where that cuts the least along its order of ranks."""
        cells = np.unique(self._ground.cell[piece])
        if len(cells) < 2:
            return None
        source, target, weight = self._ground.edges_of(piece)
        inner = np.isin(target, piece) & (source < target)
        first = np.searchsorted(piece, source[inner])
        second = np.searchsorted(piece, target[inner])
        change = np.zeros(len(piece) + 1)
        np.add.at(change, first + 1, weight[inner])
        np.add.at(change, second + 1, -weight[inner])
        cut = np.cumsum(change)[1:-1]
        is_border = np.diff(self._ground.cell[piece]) != 0
        middle = np.abs(np.arange(1, len(piece)) - len(piece) / 2)
        order = np.lexsort((middle, cut))
        at = int(order[is_border[order]][0]) + 1
        return [piece[:at], piece[at:]]


@dataclass
class _State:
    """Domains of ranks and room of leaves while pieces are put somewhere."""

    domain: IntArray
    room: IntArray


def _promising(moves: IntArray, losses: FloatArray) -> IntArray:
    """Rows with the least losses, a few for every number of moves."""
    order = np.lexsort((losses, moves))
    position = np.arange(len(order)) - np.searchsorted(moves[order], moves[order])
    return order[position < SETS_WEIGHED]


def choices(exits: list[list[Exit]]) -> list[list[Exit]]:
    """A choice of one exit a leaf for every number of moves worth making.

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
