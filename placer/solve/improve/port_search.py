"""Local search on the busiest port and uplink, for traffic of the user's own.

Rounds aim at a target a little below the best, and what is annealed is the excess: by
how much ports and uplinks exceed it, in sum. From every other start the first rounds
anneal a sum over all of the power ``p`` of how busy they are, ``p`` growing from round
to round. Half of the units that are tried have a part in what is too busy. Where racks
or blocks differ, what domains hold changes places first, as it is. See docs/method.md,
"The busiest port".
"""

from __future__ import annotations

from itertools import cycle
from math import inf
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from placer.arrays import BoolArray, FloatArray, IntArray
from placer.solve.improve.anneal import anneal
from placer.solve.improve.compiled import loops
from placer.solve.improve.messages import messages_of
from placer.solve.improve.port_loads import ROUNDING, Added, PortLoads
from placer.solve.improve.port_moves import (
    NOBODY,
    PortMoves,
    exchange_clusters,
    move_busy,
    swap_busy,
)
from placer.solve.improve.port_tables import UNCLAIMED, Pricing
from placer.solve.improve.region import flow_region
from placer.solve.tree.base import paced

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from placer.solve.improve.port_moves import Changes
    from placer.solve.improve.region import MoveRegion
    from placer.solve.problem.compiled import Problem
    from placer.solve.problem.params import Params
    from placer.solve.run.budget import Budget
    from placer.solve.run.incumbent import Incumbent, MoveCounts

EVENED = "evened"
# Work of a step: its calls, and what an entry adds; in microseconds, roughly.
STEP_WORK, ENTRY_WORK = 500.0, 0.07
# Entries of a step at most, so its arrays stay in the cache; changes proposed.
ENTRIES, FEWEST, SHARE = 100_000, 256, 0.25
# Every so many steps clusters are tried.
CLUSTERS = 2
DIGITS = 9


def briefly_evened(problem: Problem, incumbent: Incumbent, budget: Budget) -> None:
    """Do so with the work of a short generation: all starts have a walk soon."""
    params = problem.params
    if incumbent.is_worth_searching and not problem.job.roles:
        least, _ = params.generation_work
        work = least * params.even_work
        evened(problem.with_params(even_work=work), incumbent, budget)


def evened(problem: Problem, incumbent: Incumbent, budget: Budget) -> None:
    """Anneal the elite pool on the busiest ports and uplinks."""
    if problem.goal.name != "time" or incumbent.gpu_of_rank is None:
        return
    messages = messages_of(problem.job)
    region = flow_region(problem, paced(problem.machine)) if messages else None
    if messages is None or region is None or region.units == 1:
        return
    params, compiled = problem.params, loops(budget)
    rng = np.random.default_rng(problem.seed)

    def walked(own: MoveRegion, at: IntArray, home: IntArray, plan: _Plan) -> IntArray:
        """Home of each unit in the best placement found; ``at`` is its own unit."""
        between = messages.between(own.label)
        if not between.ends.size:
            return home[at]
        loads = PortLoads(problem.model.fabric, own, between, compiled)
        state = PortState(loads, own, home, rng, params)
        for best in _rounds(state, budget, incumbent.moves, params, plan):
            incumbent.offer(_named(incumbent.method), region.gpu_of_rank(best[at]))
            if incumbent.ends():
                break
        return state.best[at]

    work, units = params.even_work, np.arange(region.units)
    homes = region.homes(incumbent.elite[: params.even_starts])
    for begun, aimed in zip(homes, cycle((1.0, params.even_aimed)), strict=False):
        home = begun
        if region.tier + 2 < len(problem.machine.tiers):
            filled, held = np.unique(begun, return_inverse=True)
            share = len(filled) / region.units
            brief = _Plan(1.0, work * share, is_brief=True)
            home = walked(region.of_contents(held), held, filled, brief)
        walked(region, units, home, _Plan(aimed, work, is_brief=False))
        if incumbent.ends():
            return


class _Plan(NamedTuple):
    """What is done from one placement.

    Attributes
    ----------
    aimed : float
        Share of the work that aims at targets; what is left goes before it to sums of
        powers.
    work : float, us
    is_brief : bool
        Whether a round without gain is the last.
    """

    aimed: float
    work: float
    is_brief: bool


def _rounds(
    state: PortState, budget: Budget, counts: MoveCounts, params: Params, plan: _Plan
) -> Iterator[IntArray]:
    """Home of each unit in ever better placements."""
    powers = zip(params.even_doublings, params.even_heat, strict=True)
    aimed = plan.work * plan.aimed
    summed = (plan.work - aimed) / len(params.even_doublings)
    for doublings, heat in powers if summed else ():
        before = state.best
        state.sum_up(doublings, heat, summed)
        anneal(state, budget, counts)
        if state.best is not before:
            yield state.best
    least, most = params.even_cut
    cut, left = most, aimed
    for heat in cycle(params.even_aimed_heat):
        if left <= 0 or budget.is_over():
            return
        before = state.best
        state.aim(cut, heat, min(left, plan.work * params.even_round))
        anneal(state, budget, counts)
        left -= state.work
        cut = min(2 * cut, most) if state.is_reached else max(cut / 2, least)
        if state.best is not before:
            yield state.best
        elif plan.is_brief:
            return


def _named(method: str) -> str:
    """What a placement found here is called, from what it began with."""
    return method if method.startswith(EVENED) else f"{EVENED}, from {method}"


class PortState:
    """A placement under annealing.

    Parameters
    ----------
    home : ndarray, shape (U,)
        Domain of each unit at the start.

    Attributes
    ----------
    best : ndarray, shape (U,)
        The best home met.
    """

    moves: tuple[Callable[[], None], ...] = (
        swap_busy,
        move_busy,
        exchange_clusters,
    )

    def __init__(
        self,
        loads: PortLoads,
        region: MoveRegion,
        home: IntArray,
        rng: np.random.Generator,
        params: Params,
    ) -> None:
        self.home, self.best, self._rng, self._params = home.copy(), home, rng, params
        self._loads, room = loads, region.capacity // region.size
        self._domains = len(room)
        self._moves = PortMoves(loads, room, region.enclosure, rng)
        # Both that move, at both ends of a flow, before and after.
        entries = 8 * len(loads.flows) // region.units + 1
        most = max(FEWEST, int(region.units * SHARE))
        self._proposed = max(1, min(most, ENTRIES // entries))
        self._step_work = STEP_WORK + ENTRY_WORK * entries * self._proposed
        self._busy = loads.of(home)
        self._least_s = self._scale = self._busiest(self._busy)
        self._target, self._doublings = np.zeros(len(self._scale)), 0
        self._limit = self._target[loads.kind]
        self._least = inf, inf
        things = len(home) + loads.messages.ends.shape[1] + self._domains
        self._claim = np.full(things, UNCLAIMED)
        self._added: Added | None = None
        self.hot = self.cold = np.ones(1)
        self._steps = self._step = 0

    def sum_up(self, doublings: int, heat: float, work: float) -> None:
        """Begin a round on a sum of powers, hot in proportion to what changes add."""
        self._begin(1.0, doublings, work)
        size = np.abs(self.delta(self.propose()))
        size = size[size > 0]
        self.hot = heat * np.array([size.mean() if len(size) else 1.0])
        self.cold = self.hot * self._params.even_end[0]

    def aim(self, cut: float, heat: float, work: float) -> None:
        """Begin a round on what exceeds a target: so much below the best."""
        self._begin(cut, 0, work)
        self.hot = np.array([heat])
        self.cold = self.hot * self._params.even_end[1]

    def _begin(self, cut: float, doublings: int, work: float) -> None:
        self.home = self.best.copy()
        self._busy = self._loads.of(self.home)
        self._scale = np.maximum(self._least_s, 1e-300)
        self._target, self._doublings = self._scale * (1 - cut), doublings
        self._limit = self._target[self._loads.kind] * (1 + ROUNDING)
        self._least = self._busyness()
        self._steps, self._step = max(1, int(work / self._step_work)), 0

    @property
    def work(self) -> float:
        """Work of the round so far, us."""
        return self._step * self._step_work

    @property
    def is_reached(self) -> bool:
        """Whether nothing is busier than the target."""
        return not (self._busy > self._limit).any()

    @property
    def progress(self) -> float:
        """Share of the way from hot to cold."""
        return self._step / self._steps

    @property
    def is_done(self) -> bool:
        """Whether all steps are made, or nothing is left to gain."""
        done = self._step > 0 and (self._step >= self._steps or self.is_reached)
        if done:
            self._note_best()
        return done

    def draw(self, count: int) -> FloatArray:
        """Random numbers above 0, up to 1."""
        return 1.0 - self._rng.random(count)

    def propose(self) -> Changes:
        """Single units, or clusters now and then."""
        self._look()
        moves, count = self._moves, self._proposed
        if moves.cluster > 1 and self._step % CLUSTERS == CLUSTERS - 1:
            return moves.clusters(max(1, count // moves.cluster))
        return moves.singles(count)

    def delta(self, changes: Changes) -> FloatArray:
        """What each change, by itself, adds to the sum."""
        loads = self._loads
        if loads.loops is not None:
            delta, *entries = loads.loops.priced(
                loads.tables, self.home, changes.units, changes.new, self._pricing
            )
            self._added = Added(*entries)
            return np.asarray(delta)
        added = self._loads.added(self.home, changes.units, changes.new)
        self._added = added
        kind = self._loads.kind[added.load]
        before = self._busy[added.load]
        more = self._cost(before + added.seconds, kind) - self._cost(before, kind)
        return np.bincount(added.change, more, len(changes.units)).astype(np.float64)

    def _cost(self, busy: FloatArray, kind: IntArray) -> FloatArray:
        """Power of the excess of each load, relative to the best; kinds in turn."""
        over = np.maximum(busy - self._target[kind], 0.0) / self._scale[kind]
        for _ in range(self._doublings):
            over *= over
        return np.asarray((self._scale / self._scale.sum())[kind] * over)

    @property
    def _pricing(self) -> Pricing:
        """The same for compiled loops."""
        scale, target = self._scale, self._target
        share, kind = scale / scale.sum(), self._loads.kind
        return Pricing(self._busy, kind, target, scale, share, self._doublings)

    def apply(self, changes: Changes, accepted: BoolArray) -> None:
        """Make accepted changes, of those that interfere the first."""
        self._step += 1
        free, added, loads = self._moves.seats.free, self._added, self._loads
        if loads.loops is not None and added is not None:
            seats = self.home, free, self._busy
            columns = changes.units, changes.old, changes.new
            loads.loops.applied(
                loads.tables, *columns, accepted, self._claim, *seats, *added
            )
            return
        made = accepted.copy()
        made[accepted] = self._independent(changes.only(accepted))
        _, unit, old, new = changes.only(made).movers
        self.home[unit] = new
        np.add.at(free, old, 1)
        np.subtract.at(free, new, 1)
        if added is not None:
            own = made[added.change]
            np.add.at(self._busy, added.load[own], added.seconds[own])

    def _independent(self, changes: Changes) -> BoolArray:
        """Changes that share no unit, flow or room with an earlier one."""
        change, unit, _, _ = changes.movers
        touching, flows = self._loads.touched(changes.units)
        # Room is left, or taken, where fewer come back.
        number = changes.units.shape[1] // 2
        going, coming = changes.units[:, :number], changes.units[:, number:]
        short = (going == NOBODY).sum(axis=1) != (coming == NOBODY).sum(axis=1)
        rooms = np.flatnonzero(short)
        # Units, flows and rooms, numbered through.
        units = len(self.home)
        first = len(self._claim) - self._domains
        things = (
            unit,
            units + flows,
            first + changes.old[rooms, 0],
            first + changes.new[rooms, 0],
        )
        who = np.concatenate((change, touching, rooms, rooms))
        thing = np.concatenate(things)
        np.minimum.at(self._claim, thing, who)
        late = self._claim[thing] < who
        self._claim[thing] = UNCLAIMED
        found: BoolArray = np.bincount(who, late, len(changes.units)) == 0
        return found

    def _look(self) -> None:
        """Note who is where, what is busy, and the best placement."""
        self._note_best()
        heat = self._loads.on_way(self._excess ** (2.0**self._doublings / 2), self.home)
        self._moves.look(self.home, heat)

    def _busiest(self, busy: FloatArray) -> FloatArray:
        """Seconds of the busiest port or uplink of each kind."""
        found = np.zeros(int(self._loads.kind.max()) + 1)
        np.maximum.at(found, self._loads.kind, busy)
        return found

    @property
    def _excess(self) -> FloatArray:
        """By how much each port and uplink exceeds its target; shape (L,)."""
        over = np.maximum(self._busy - self._limit, 0.0)
        return np.asarray(over / self._scale[self._loads.kind])

    def _busyness(self) -> tuple[float, float]:
        """Seconds of all kinds, one after the other; then the sum.

        Many may have to become less busy before the busiest is.
        """
        seconds = float(self._busiest(self._busy).sum() / self._scale.sum())
        total = float(self._cost(self._busy, self._loads.kind).sum())
        return round(seconds, DIGITS), round(total, DIGITS)

    def _note_best(self) -> None:
        busyness = self._busyness()
        if busyness < self._least:
            self._least, self.best = busyness, self.home.copy()
            self._least_s = self._busiest(self._busy)
