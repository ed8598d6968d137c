"""Simulated annealing of the parts of expert groups, as the cost model prices them.

A state says how many pieces of each unit lie in each domain, and which units the same
replicas wait for. A change moves pieces of a unit to another domain, into room that is
free or against pieces of another unit, or lets two units change replicas. Many changes
are priced at once, and of those that are accepted the ones that do not interfere are
made. Shapes: U units, D domains, Q parts of a unit, K changes, C sets of replicas,
P stages, A units of a stage.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from placer.arrays import BoolArray, FloatArray, IntArray
from placer.solve.construct.experts.parts_links import Rows
from placer.solve.run.cooling import cooling

if TYPE_CHECKING:
    from placer.solve.construct.experts.parts_links import Links
    from placer.solve.construct.experts.parts_pace import Pace
    from placer.solve.run.budget import Budget

LOOK = 64  # batches between two looks at the clock
ROUNDING = 1e-9
BATCH = 128  # changes priced at once
# Shares of the slowest replica's step: how far below it a replica still counts, and
# what a step may grow by at the beginning and at the end.
NEARLY, HOT, COLD = 0.004, 0.003, 0.00005
# How often two units change places among replicas, and how often a part goes to another
# domain of its own unit, of its own outer domain, or anywhere.
SWAPPED = 0.2
TARGETS = (0.5, 0.75)


class _Changes(NamedTuple):
    """Pieces of ``unit`` go from ``here`` to ``there``, of ``other`` back; shape (K,).

    Attributes
    ----------
    unit, other : ndarray
        The other one is -1 where room is free.
    here, there : ndarray
    pieces, back : ndarray
    """

    unit: IntArray
    other: IntArray
    here: IntArray
    there: IntArray
    pieces: IntArray
    back: IntArray


class Best(NamedTuple):
    """The least step met, with the pieces and the slots that have it."""

    step_s: float
    held: IntArray
    slot: IntArray


class PartsWalk:
    """Units in parts under annealing.

    Parameters
    ----------
    links : Links
    pace : Pace
    slot : ndarray, shape (C, P, A)
        Units that the replicas of each set wait for, stage by stage.
    held : ndarray, shape (U, D)
        Pieces of each unit in each domain.
    rng : Generator
    kept : ndarray, shape (U,), optional
        Whether a unit keeps its parts and its stage, where all others of that do.
    grain : int, optional
        Pieces that move together. Above 1 units that keep their parts keep their
        replicas too.

    Attributes
    ----------
    best : Best
    """

    def __init__(
        self,
        links: Links,
        pace: Pace,
        slot: IntArray,
        held: IntArray,
        rng: np.random.Generator,
        kept: BoolArray | None = None,
        grain: int = 1,
    ) -> None:
        self.links, self.pace, self.rng, self.grain = links, pace, rng, grain
        self.kept = np.zeros(len(held), dtype=bool) if kept is None else kept
        self.moved = np.flatnonzero(~self.kept)
        self.slot, self.held = slot.copy(), held.copy()
        homes = np.arange(len(links.outer_carried))
        self.is_in = (links.outer[:, None] == homes).astype(np.float64)
        self.along = np.argsort(links.outer, kind="stable")
        self.home_count = np.bincount(links.outer)
        self.home_first = np.cumsum(self.home_count) - self.home_count
        self._set_up()
        self.near = NEARLY * self.step_s
        self.best = self._state()

    @property
    def step_s(self) -> float:
        """Step of the slowest replica, s."""
        return float(self.steps.max())

    def _state(self) -> Best:
        return Best(self.step_s, self.held.copy(), self.slot.copy())

    def _set_up(self) -> None:
        """All that follows from where pieces lie."""
        links, held = self.links, self.held
        parts = max(2, int((held > 0).sum(axis=1).max()))
        place = np.argsort(-held, axis=1, kind="stable")[:, :parts]
        pieces = np.take_along_axis(held, place, axis=1)
        self.rows = Rows.of(links, place, pieces)
        self.free = links.room - held.sum(axis=0)
        units, domains = np.nonzero(held)
        order = np.argsort(domains, kind="stable")
        self.count = np.bincount(domains, minlength=held.shape[1])
        self.first = np.cumsum(self.count) - self.count
        self.inside = units[order]
        self.busy = links.leaving(held).sum(axis=0) / links.carried
        in_outer = (held @ self.is_in).astype(np.int64)
        self.in_outer = in_outer
        self.outer_busy = links.leaving(in_outer).sum(axis=0) / links.outer_carried
        self.seconds = self.rows.seconds(
            links, self.busy[place], self.outer_busy[links.outer[place]]
        )
        self.times = self.seconds[self.slot].max(axis=-1)
        self.steps = self.pace.steps(self.times)

    def go(self, rounds: int, budget: Budget) -> None:
        """Batches of changes, colder and colder, from the best that was met."""
        _, held, slot = self.best
        self.held, self.slot = held.copy(), slot.copy()
        self._set_up()
        scale = self.step_s / len(self.slot)
        for share in cooling(HOT, COLD, rounds, budget, LOOK):
            self.near = NEARLY * self.step_s
            heat = scale * share
            energy = self._energy(self.steps[None])[0]
            if self.rng.random() < SWAPPED:
                self._exchange_slots(heat, energy)
            else:
                self._move_pieces(heat, energy)
            if self.step_s < self.best.step_s * (1 - ROUNDING):
                self.best = self._state()

    def seconds_of(self, held: IntArray) -> FloatArray:
        """Time of the all-to-all of each unit that lies so; shape (U,), s."""
        other = PartsWalk(self.links, self.pace, self.slot, held, self.rng)
        return other.seconds

    def _energy(self, steps: FloatArray) -> FloatArray:
        """The slowest step, and a little more for others nearly as slow; (K, C), s."""
        top = steps.max(axis=1, keepdims=True)
        near = np.exp((steps - top) / self.near).sum(axis=1)
        found: FloatArray = top[:, 0] + self.near * np.log(near)
        return found

    def _accepted(self, rise: FloatArray, heat: float) -> IntArray:
        """Changes that Metropolis' rule accepts, in order."""
        limit = -heat * np.log(1 - self.rng.random(len(rise)))
        return np.flatnonzero(rise <= limit)

    def _exchange_slots(self, heat: float, energy: float) -> None:
        cohorts, stages, alike = self.slot.shape
        one = self.rng.integers(self.slot.size, size=BATCH)
        two = self.rng.integers(self.slot.size, size=BATCH)
        each = stages * alike
        flat = self.slot.ravel()
        keep = (one // each != two // each) | (one // alike != two // alike)
        kept = self.kept[flat[one]] | self.kept[flat[two]]
        is_alike = one // alike % stages == two // alike % stages
        keep &= ~kept | (is_alike & (self.grain == 1))
        one, two = one[keep], two[keep]
        trial = np.repeat(self.seconds[flat][None], len(one), axis=0)
        rows = np.arange(len(one))
        trial[rows, one], trial[rows, two] = trial[rows, two], trial[rows, one]
        times = trial.reshape(-1, cohorts, stages, alike).max(axis=-1)
        rise = self._energy(self._steps_after(times)) - energy
        accepted = self._accepted(rise, heat)
        accepted = accepted[np.abs(rise[accepted]) > 1e-12]
        if len(accepted):
            at = accepted[0]
            flat[one[at]], flat[two[at]] = flat[two[at]], flat[one[at]]
            self.slot = flat.reshape(self.slot.shape)
            self.times = self.seconds[self.slot].max(axis=-1)
            self.steps = self.pace.steps(self.times)

    def _move_pieces(self, heat: float, energy: float) -> None:
        if not len(self.moved):
            return
        changes = self._propose()
        if not len(changes.unit):
            return
        rise = self._energy(self._priced(changes)) - energy
        touched: set[int] = set()
        moved = False
        for at in self._accepted(rise, heat).tolist():
            own = {
                int(changes.here[at]),
                int(changes.there[at]),
                -1 - int(changes.unit[at]),
                -1 - int(changes.other[at])
                if changes.other[at] >= 0
                else -1 - int(changes.unit[at]),
            }
            if own & touched:
                continue
            touched |= own
            self._make(changes, at)
            moved = True
        if moved:
            self._set_up()

    def _make(self, changes: _Changes, at: int) -> None:
        unit, other, here, there, pieces, back = (int(row[at]) for row in changes)
        self.held[unit, here] -= pieces
        self.held[unit, there] += pieces
        if other >= 0:
            self.held[other, there] -= back
            self.held[other, here] += back

    def _propose(self) -> _Changes:
        """Changes that leave no domain too full."""
        rng, rows = self.rng, self.rows
        domains = self.held.shape[1]
        # Half of the changes are of units that slow replicas wait for.
        weight = np.exp((self.steps - self.step_s) / self.near)
        slow = np.searchsorted(np.cumsum(weight), rng.random(BATCH) * weight.sum())
        each = self.slot.reshape(len(self.slot), -1)
        of_slow = each[
            slow.clip(max=len(each) - 1), rng.integers(each.shape[1], size=BATCH)
        ]
        some = self.moved[rng.integers(len(self.moved), size=BATCH)]
        unit = np.where((rng.random(BATCH) < 0.5) & ~self.kept[of_slow], of_slow, some)
        parts = (rows.pieces[unit] > 0).sum(axis=1)
        which = (rng.random(BATCH) * parts).astype(np.int64)
        here, had = rows.place[unit, which], rows.pieces[unit, which]
        turn = rng.random(BATCH)
        there = rng.integers(domains, size=BATCH)
        mine = rows.place[unit, (rng.random(BATCH) * parts).astype(np.int64)]
        there = np.where(turn < TARGETS[0], mine, there)
        near = self._beside(here)
        there = np.where((turn >= TARGETS[0]) & (turn < TARGETS[1]), near, there)
        pick = self.first[there] + (rng.random(BATCH) * self.count[there]).astype(
            np.int64
        )
        other = self.inside[pick.clip(max=len(self.inside) - 1)]
        other = np.where(self.count[there] == 0, -1, other)
        free = self.free[there]
        is_free = (free > 0) & ((other < 0) | (rng.random(BATCH) < 0.5))
        other = np.where(is_free, -1, other)
        held = np.where(other >= 0, self.held[other, there], 0)
        grain = self.grain
        most = np.minimum(had, np.where(is_free, free, held)) // grain
        kind = rng.integers(3, size=BATCH)
        some = 1 + (rng.random(BATCH) * most).astype(np.int64)
        pieces = grain * np.where(kind > 0, most, np.minimum(some, most))
        back = np.where(is_free, 0, pieces)
        # All that one has here against all that the other has there.
        fits = (free + held >= had) & (self.free[here] + had >= held)
        whole = (kind == 2) & ~is_free & fits
        pieces, back = np.where(whole, had, pieces), np.where(whole, held, back)
        keep = (here != there) & (pieces > 0) & (other != unit)
        keep &= is_free | ((other >= 0) & ~self.kept[other])
        return _Changes(
            *(row[keep] for row in (unit, other, here, there, pieces, back))
        )

    def _beside(self, here: IntArray) -> IntArray:
        """Some domain of the same outer one as each."""
        home = self.links.outer[here]
        chosen = self.rng.random(len(here)) * self.home_count[home]
        beside: IntArray = self.along[self.home_first[home] + chosen.astype(np.int64)]
        return beside

    def _priced(self, changes: _Changes) -> FloatArray:
        """Steps of all sets of replicas after each change; shape (K, C), s."""
        links, held = self.links, self.held
        unit, other, here, there, pieces, back = changes
        number = np.arange(len(unit))
        busy = np.repeat(self.busy[None], len(unit), axis=0)
        outer_busy = np.repeat(self.outer_busy[None], len(unit), axis=0)
        home, away = links.outer[here], links.outer[there]
        apart = home != away
        is_two = other >= 0
        for who, sign in ((unit, 1), (other, -1)):
            moved = np.where(is_two, back, 0) if sign < 0 else pieces
            for place, outer, change in ((here, home, -sign), (there, away, sign)):
                had = held[who, place]
                more = links.leaving(had + change * moved) - links.leaving(had)
                busy[number, place] += more / links.carried[place]
                had = self.in_outer[who, outer]
                more = links.leaving(had + change * moved) - links.leaving(had)
                outer_busy[number, outer] += apart * more / links.outer_carried[outer]
        is_split = self.rows.pieces[:, 0] < links.size
        active = np.flatnonzero(is_split)
        seconds = np.repeat(self.seconds[None], len(unit), axis=0)
        rows = self.rows.some(active)
        seconds[:, active] = rows.seconds(
            links, busy[:, rows.place], outer_busy[:, links.outer[rows.place]]
        )
        for who, sign in ((unit, 1), (other, -1)):
            moved = pieces if sign > 0 else back
            from_, to = (here, there) if sign > 0 else (there, here)
            place, count = self._changed(who, from_, to, moved)
            new = Rows.of(links, place, count)
            at = number[:, None]
            time = new.seconds(
                links, busy[at, place], outer_busy[at, links.outer[place]]
            )
            some = np.flatnonzero(who >= 0)
            seconds[some, who[some]] = time[some]
        return self._steps_after(seconds[:, self.slot].max(axis=-1))

    def _steps_after(self, times: FloatArray) -> FloatArray:
        """Steps where stages take so long, (K, C, P) s; shape (K, C).

        A change slows or hastens few replicas: the steps of others stay as they are.
        """
        steps = np.repeat(self.steps[None], len(times), axis=0)
        is_new = (times != self.times).any(axis=-1)
        steps[is_new] = self.pace.steps(times[is_new])
        return steps

    def _changed(
        self, who: IntArray, here: IntArray, there: IntArray, moved: IntArray
    ) -> tuple[IntArray, IntArray]:
        """Places and pieces of units with so many pieces moved; shape (K, Q + 1)."""
        place, pieces = self.rows.place[who], self.rows.pieces[who]
        known = (place == there[:, None]) & (pieces > 0)
        pieces = pieces - moved[:, None] * ((place == here[:, None]) & (pieces > 0))
        pieces = pieces + moved[:, None] * known
        more = np.where(known.any(axis=1), 0, moved)
        return (
            np.concatenate((place, there[:, None]), axis=1),
            np.concatenate((pieces, more[:, None]), axis=1),
        )
