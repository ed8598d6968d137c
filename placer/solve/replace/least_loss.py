"""What it costs at least when ranks leave a base domain, for every number of them.

Edges between those who leave and those who stay become longer by ``rise`` at least. An
edge that left the base domain before, to ``h``, is as long as the way from the new one
to ``h`` when its other end stays; when that moves too, at most the whole length is
saved, half of which is counted for each end. So a piece that goes to one place saves

    gain(place) = sum over h of weight_h x (d_h - min(d(place, h), (d_h + d_min) / 2))

and pieces that are divided cut at least one of their edges. Who goes to a base domain
without room drives others out of it: those ranks move besides.
"""

from __future__ import annotations

from functools import cached_property
from math import inf
from typing import TYPE_CHECKING

import numpy as np

from placer.base.arrays import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from placer.solve.replace.base_domain import BaseDomain
    from placer.solve.replace.state import RepairState


class LeastLoss:
    """The least loss of a base domain.

    Parameters
    ----------
    room : ndarray, shape (D,)
        Ranks that enter each base domain without driving out others; beyond those of
        the machine there is none.
    bonus : ndarray, shape (any,)
        The most that n ranks save which are driven out.
    """

    def __init__(
        self, state: RepairState, base: BaseDomain, room: IntArray, bonus: FloatArray
    ) -> None:
        self._base, self._rise, self._bonus = base, state.rise, bonus
        self._known: dict[bytes, dict[int, float]] = {}
        index = np.full(len(state.home), -1, dtype=np.int64)
        for i, ranks in enumerate(base.groups):
            index[ranks] = i
        edges = state.edges_of(np.concatenate(base.groups))
        outer = state.home[edges.target] != base.number
        source, target = edges.source[outer], edges.target[outer]
        _, first, column = np.unique(
            state.home[target], return_index=True, return_inverse=True
        )
        # Weight of each group's edges to each base domain, and the domains around that.
        self._weight = np.zeros((len(base.groups), len(first)))
        np.add.at(self._weight, (index[source], column), edges.weight[outer])
        path = state.before.domain[state.tier : -1, target[first]]
        self._length = state.distances(source[first], target[first])
        self._places(state, path, room)

    def _places(self, state: RepairState, path: IntArray, room: IntArray) -> None:
        """Savings at every sort of place, and the room there."""
        distance = state.hops.distance[state.tier :]
        half = (self._length + float(distance.min())) / 2
        saved, space = [np.zeros(len(half))], [inf]
        roomiest = [
            _roomiest(domains, room, self._base.number)
            for domains in state.domains_of_base[: len(path)]
        ]
        # Places share the domains around some base domain from tier `shared` on, that
        # one itself at 0.
        for shared in range(len(path)):
            for place in range(path.shape[1]):
                apart = (path != path[:, place : place + 1]).sum(axis=0)
                apart = np.maximum(apart, shared)
                saved.append(self._length - np.minimum(distance[apart], half))
                number, rooms = int(path[shared, place]), roomiest[shared]
                space.append(float(rooms[number]) if number < len(rooms) else 0.0)
        unique, at = np.unique(np.array(saved), axis=0, return_inverse=True)
        self._saved: FloatArray = unique
        self._space = np.full(len(unique), -inf)
        np.maximum.at(self._space, at.ravel(), np.array(space))

    def up_to(self, sets: BoolArray, most: int, limit: float) -> FloatArray:
        """Least loss when at most n ranks with a seat move; shape (most + 1,).

        ``sets`` are those that may leave, shape (S, A); losses above ``limit`` may be
        given as infinite.
        """
        found = np.full(most + 1, inf)
        moves, losses = sets @ self._base.kept, self._base.losses(sets, self._rise)
        for row in np.lexsort((losses, moves)).tolist():
            moved = int(moves[row])
            # The simple loss is never above the one looked for.
            if moved > most or losses[row] > limit or losses[row] >= found[moved]:
                continue
            for price, loss in self._of_set(sets[row], most - moved).items():
                span = found[moved + price :]
                np.minimum(span, loss, out=span)
        return found

    def _of_set(self, chosen: BoolArray, most: int) -> dict[int, float]:
        """Least loss of a set for every number of ranks driven out."""
        base = self._base
        staying = chosen.astype(float) @ base.inside @ (~chosen).astype(float)
        total = {0: float(staying) * self._rise}
        for piece in base.pieces(chosen):
            options = self._of_piece(piece, most)
            grown: dict[int, float] = {}
            for before, loss in total.items():
                for price, gain in options.items():
                    both = before + price
                    if both <= most:
                        grown[both] = min(grown.get(both, inf), loss - gain)
            total = grown
        return total

    def _of_piece(self, piece: IntArray, most: int) -> dict[int, float]:
        """Largest gain of a piece for every number of ranks that it drives out."""
        key = piece.tobytes()
        if key not in self._known:
            size = int(self._base.size[piece].sum())
            gains = self._saved @ self._weight[piece].sum(axis=0)
            out = np.maximum(size - self._space, 0.0)
            best: dict[int, float] = {}
            for price in np.unique(out).astype(int).tolist():
                own = float(gains[out == price].max())
                extra = float(self._bonus[min(price, len(self._bonus) - 1)])
                best[price] = own + extra
            if len(piece) > 1:
                best[0] = max(best.get(0, -inf), self._gain_divided(piece))
            self._known[key] = best
        return {p: g for p, g in self._known[key].items() if p <= most}

    def _gain_divided(self, piece: IntArray) -> float:
        """The most that a piece gains whose groups part, less what that cuts."""
        inside = self._base.inside[np.ix_(piece, piece)]
        cut = float(inside[inside > 0].min()) * self._rise
        return float(self._alone[piece].sum()) - cut

    @cached_property
    def _alone(self) -> FloatArray:
        """The most that each group can save by itself; shape (A,)."""
        found: FloatArray = (self._weight @ self._saved.T).max(axis=1)
        return found


def _roomiest(domain: IntArray, room: IntArray, left_out: int) -> IntArray:
    """Room of the roomiest base domain of each domain but one; shape (domains,).

    ``domain`` and ``room`` have shape (base domains,).
    """
    found = np.zeros(int(domain.max()) + 1, dtype=np.int64)
    others = np.arange(len(room)) != left_out
    np.maximum.at(found, domain[others], room[others])
    return found
