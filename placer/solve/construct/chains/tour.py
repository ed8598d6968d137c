"""A short closed tour of bundles of lanes, each of which may be turned round.

The step from one bundle to the next costs the distances between their leaves, place by
place. The tour is improved by reversals of a stretch (2-opt; Croes 1958, Operations
Research 6(6)) and by moving up to three bundles elsewhere (Or-opt; Or 1976, thesis,
Northwestern University). In either the bundles of the stretch may be turned round as
well. Only near bundles are tried as new neighbours, and only bundles whose neighbours
have changed are looked at again (neighbour lists and don't look bits; Bentley 1992,
ORSA Journal on Computing 4(4)). Then two stretches are exchanged at random and the
search is repeated there, kept unless worse (iterated local search with the double
bridge; Martin, Otto and Felten 1991, Complex Systems 5).

A look costs a few dozen single numbers, so this is plain Python: the calls alone would
cost more in numpy, and calls of its own as much as the rest.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from placer.arrays import IntArray

if TYPE_CHECKING:
    from placer.solve.construct.chains.distances import Distances
    from placer.solve.problem.params import Params
    from placer.solve.run.budget import Budget

# Gains of less are rounding.
WORTHWHILE = 1e-9
# Bundles looked at between two looks at the clock.
LOOKS = 64
# Bundles that move together at most.
LONGEST = 3


class _Change(NamedTuple):
    """A change of the tour.

    Attributes
    ----------
    delta : float
        What it adds to the length.
    ends : tuple of int
        Bundles ``a b c d`` of a tour ``a [b .. c] d``: the stretch is reversed. Six
        bundles ``p s e q u v`` of a tour ``p [s .. e] [q .. u] v``: the first stretch
        goes behind the second.
    is_reversed : bool
        Whether the stretch that moves is reversed.
    is_turned : bool
        Whether the bundles of the first stretch are turned round.
    """

    delta: float
    ends: tuple[int, ...]
    is_reversed: bool
    is_turned: bool


NOTHING = _Change(-WORTHWHILE, (), False, False)


class Tour:
    """A closed tour of bundles of lanes under local search.

    Parameters
    ----------
    rows : ndarray, shape (bundles, places)
        Leaf domain of each place, bundles in their first order.
    """

    def __init__(self, rows: IntArray, distances: Distances, params: Params) -> None:
        self._rows, self.params = rows, params
        size = len(rows)
        # Distance of two bundles: both turned alike, and one of them turned.
        alike = distances.of_all(rows, rows)
        turned = distances.of_all(rows, rows[:, ::-1])
        self._apart = (
            [memoryview(row) for row in alike],
            [memoryview(row) for row in turned],
        )
        nearest = np.minimum(alike, turned)
        np.fill_diagonal(nearest, np.inf)
        near = np.argsort(nearest, axis=1, kind="stable")
        near = near[:, : min(params.tour_neighbours, size - 1)]
        apart = np.take_along_axis(nearest, near, axis=1)
        self._near = [
            list(zip(*row, strict=True))
            for row in zip(near.tolist(), apart.tolist(), strict=True)
        ]
        self._tour, self._place = list(range(size)), list(range(size))
        self._side = [0] * size
        # Stretches reversed since the last kick, by place, and whether turned round.
        self._reversed: list[tuple[int, int, bool]] = []

    @property
    def rows(self) -> IntArray:
        """Leaf of each place, bundles in tour order; shape (bundles, places)."""
        rows = self._rows[self._tour]
        is_turned = np.array(self._side, dtype=bool)[self._tour]
        return np.where(is_turned[:, None], rows[:, ::-1], rows)

    @property
    def length(self) -> float:
        """Distance of the whole tour, all places together."""
        return sum(map(self._step, self._tour, self._tour[1:] + self._tour[:1]))

    def improve(self, seed: int, budget: Budget) -> None:
        """Shorten the tour by local search from several starts near the best.

        The end of the budget ends the search with the best so far.
        """
        size, params = len(self._tour), self.params
        if size < 2 or budget.is_over():
            return
        self._descend(self._tour, budget)
        longest = min(params.tour_window, size - 2) // 2
        if longest < 2:
            return
        kicks = min(params.tour_kicks * size, params.all_tour_kicks)
        rng = np.random.default_rng(seed)
        starts = rng.integers(size, size=kicks).tolist()
        lengths = rng.integers(1, longest + 1, size=(kicks, 2)).tolist()
        for start, (first, second) in zip(starts, lengths, strict=True):
            self._reversed.clear()
            kick = self._exchange_of(start, first, second)
            self._apply(kick)
            change = kick.delta + self._descend(kick.ends, budget)
            if change > 0:
                for stretch in reversed(self._reversed):
                    self._reverse(*stretch)
                if budget.is_over():
                    return

    def _exchange_of(self, start: int, first: int, second: int) -> _Change:
        """Exchange two stretches that follow each other, of so many bundles."""
        places = (-1, 0, first - 1, first, first + second - 1, first + second)
        size = len(self._tour)
        ends = tuple(self._tour[(start + place) % size] for place in places)
        return _Change(self._moved(ends), ends, False, False)

    def _descend(self, bundles: Iterable[int], budget: Budget) -> float:
        """Apply improving changes until none is left; what that adds to the length."""
        todo = deque(bundles)
        waiting = set(todo)
        total, looks = 0.0, 0
        while todo:
            looks += 1
            if looks % LOOKS == 0 and budget.is_over():
                break
            bundle = todo.popleft()
            waiting.discard(bundle)
            best = min(self._changes(bundle), default=NOTHING)
            if best < NOTHING:
                self._apply(best)
                total += best.delta
                for end in best.ends:
                    if end not in waiting:
                        waiting.add(end)
                        todo.append(end)
        return total

    def _changes(self, bundle: int) -> Iterator[_Change]:
        """Changes beside a bundle that shorten the tour."""
        size = len(self._tour)
        yield from self._turns(bundle)
        for ahead in (1, -1):
            if size > 3:
                yield from self._reversals(bundle, ahead)
            if size > LONGEST + 2:
                yield from self._moves(bundle, ahead)

    def _turns(self, one: int) -> Iterator[_Change]:
        """Turn a bundle round where it is."""
        before, after = self._beside(one, -1), self._beside(one, 1)
        side, apart = self._side, self._apart
        delta = 0.0
        for other in (before, after):
            turned = side[one] ^ side[other]
            delta += apart[1 - turned][one][other] - apart[turned][one][other]
        if delta < -WORTHWHILE:
            yield _Change(delta, (before, one, one, after), True, True)

    def _reversals(self, a: int, ahead: int) -> Iterator[_Change]:
        """Join a bundle to a near one: reverse what lies between, turned or not."""
        tour, place, side, apart = self._tour, self._place, self._side, self._apart
        size, side_a = len(tour), side[a]
        b = tour[(place[a] + ahead) % size]
        side_b = side[b]
        now = apart[side_a ^ side_b][a][b]
        for c, least in self._near[a]:
            if least >= now:
                return
            d = tour[(place[c] + ahead) % size]
            if c == b or d == a:
                continue
            side_c, side_d = side[c], side[d]
            gone = now + apart[side_c ^ side_d][c][d]
            for turns in (0, 1):
                delta = apart[side_a ^ side_c ^ turns][a][c] - gone
                delta += apart[side_b ^ side_d ^ turns][b][d]
                if delta < -WORTHWHILE:
                    yield _Change(delta, (a, b, c, d), True, bool(turns))

    def _moves(self, s: int, ahead: int) -> Iterator[_Change]:
        """Take a few bundles from one on out, and put them beside a near one."""
        tour, place, side, apart = self._tour, self._place, self._side, self._apart
        size, here, side_s = len(tour), place[s], side[s]
        p = tour[(here - ahead) % size]
        side_p = side[p]
        from_s = apart[side_p ^ side_s][p][s]
        e = s
        for length in range(1, LONGEST + 1):
            q = tour[(here + ahead * length) % size]
            side_e, side_q = side[e], side[q]
            gone = from_s + apart[side_e ^ side_q][e][q]
            gone -= apart[side_p ^ side_q][p][q]
            for c, least in self._near[s]:
                if least >= gone:
                    break
                if (place[c] - here) * ahead % size < length:
                    continue
                for beyond in (ahead, -ahead):
                    x = tour[(place[c] + beyond) % size]
                    if (place[x] - here) * ahead % size < length:
                        continue
                    side_c, side_x = side[c], side[x]
                    added = -apart[side_c ^ side_x][c][x] - gone
                    for turns in (0, 1):
                        delta = apart[side_s ^ side_c ^ turns][s][c] + added
                        delta += apart[side_e ^ side_x ^ turns][e][x]
                        if delta < -WORTHWHILE:
                            u, v = (c, x) if beyond == ahead else (x, c)
                            ends = (p, s, e, q, u, v)
                            is_reversed = beyond != ahead
                            yield _Change(delta, ends, is_reversed, bool(turns))
            e = q

    def _moved(self, ends: tuple[int, ...]) -> float:
        """What moving the first stretch behind the second adds to the length."""
        p, s, e, q, u, v = ends
        step = self._step
        gone = step(p, s) + step(e, q) + step(u, v)
        return step(p, q) + step(u, s) + step(e, v) - gone

    def _apply(self, change: _Change) -> None:
        turns = change.is_turned
        if len(change.ends) == 4:
            a, b, c, _ = change.ends
            self._flip(a, b, c, turns)
            return
        p, s, e, q, u, _ = change.ends
        self._flip(p, s, u, turns)
        self._flip(p, u, q, turns)
        if not change.is_reversed:
            self._flip(u, e, s, False)

    def _flip(self, before: int, first: int, last: int, turns: bool) -> None:
        """Reverse the stretch from the bundle beside ``before`` on."""
        if self._beside(before, 1) != first:
            first, last = last, first
        self._reverse(self._place[first], self._place[last], turns)

    def _reverse(self, first: int, last: int, turns: bool) -> None:
        """Reverse the places from one on to another, or all others: the same tour."""
        tour, place, size = self._tour, self._place, len(self._tour)
        if 2 * ((last - first) % size + 1) > size:
            first, last = (last + 1) % size, (first - 1) % size
        self._reversed.append((first, last, turns))
        if first <= last:
            stretch = tour[first : last + 1]
        else:
            stretch = tour[first:] + tour[: last + 1]
        stretch.reverse()
        for at, bundle in enumerate(stretch, first - size * (first > last)):
            tour[at] = bundle
            place[bundle] = at % size
        if turns:
            for bundle in stretch:
                self._side[bundle] ^= 1

    def _beside(self, bundle: int, ahead: int) -> int:
        return self._tour[(self._place[bundle] + ahead) % len(self._tour)]

    def _step(self, first: int, second: int) -> float:
        """Distance of two bundles as they are turned now."""
        turned = self._side[first] ^ self._side[second]
        return self._apart[turned][first][second]
