"""Local search on the busiest port and uplink, for traffic of the user's own.

The step waits for the busiest of all ports and uplinks, and a change seldom touches
that one. So what is annealed is a sum over all of them of the power ``p`` of how busy
they are, relative to the busiest one at the start; ``p`` grows from round to round, and
the sum comes ever closer to the maximum, as the p-norm does. Half of the units that are
tried have a part in what is busiest.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from placer.solve.improve.anneal import anneal
from placer.solve.improve.messages import messages_of
from placer.solve.improve.port_loads import PortLoads
from placer.solve.improve.region import flow_region
from placer.solve.tree.base import paced

if TYPE_CHECKING:
    from collections.abc import Callable

    from placer.solve.improve.port_loads import Added
    from placer.solve.improve.region import MoveRegion
    from placer.solve.problem.compiled import Problem
    from placer.solve.problem.params import Params
    from placer.solve.run.budget import Budget
    from placer.solve.run.incumbent import Incumbent

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

EVENED = "evened"
# Work of a step: its calls, and what an entry adds; in microseconds, roughly.
STEP_WORK, ENTRY_WORK = 500.0, 0.07
# Entries of a step at most, so its arrays stay in the cache; changes proposed.
ENTRIES, FEWEST, SHARE = 100_000, 64, 0.25
# Shares of the changes that begin with a busy unit, that go anywhere, and that take
# free room where there is some.
BUSY, FAR, INTO_ROOM = 0.5, 0.1, 0.5
# Steps between two looks at who is where, and what is busy.
LOOK = 16
NOBODY = 1 << 40


def evened(problem: Problem, incumbent: Incumbent, budget: Budget) -> None:
    """Anneal the elite pool on the busiest ports and uplinks."""
    if problem.goal.name != "time" or incumbent.gpu_of_rank is None:
        return
    messages = messages_of(problem.job)
    region = flow_region(problem, paced(problem.machine)) if messages else None
    if messages is None or region is None or region.units == 1:
        return
    between = messages.between(region.label)
    loads = PortLoads(problem.model.fabric, region, between)
    params = problem.params
    if not len(loads.flows):
        return
    rng = np.random.default_rng(problem.seed)
    for home in region.homes(incumbent.elite[: params.even_starts]):
        for power, heat in zip(params.even_powers, params.even_heat, strict=True):
            state = PortState(loads, region, home, rng, params)
            state.cool(power, heat, params.even_work / len(params.even_powers))
            anneal(state, budget, incumbent.moves)
            home = state.best
            incumbent.offer(_named(incumbent.method), region.gpu_of_rank(home))
            if incumbent.ends():
                return


def _named(method: str) -> str:
    """What a placement found here is called, from what it began with."""
    return method if method.startswith(EVENED) else f"{EVENED}, from {method}"


class _Changes(NamedTuple):
    """Proposed changes, one a row: ``unit`` goes from ``old`` to ``new``.

    ``partner`` goes the other way; it is the unit itself when nobody does.
    """

    unit: IntArray
    partner: IntArray
    old: IntArray
    new: IntArray

    @property
    def move(self) -> IntArray:
        """Number of the move that proposed each."""
        return np.asarray(self.unit == self.partner, dtype=np.int64)

    @property
    def copy(self) -> IntArray:
        """There is one copy."""
        return np.zeros(len(self.unit), dtype=np.int64)

    def only(self, chosen: BoolArray) -> _Changes:
        """The chosen rows."""
        return _Changes(*(column[chosen] for column in self))


def swap_busy() -> None:
    """Name of the move in which two units change places."""


def move_busy() -> None:
    """Name of the move of one unit into free room."""


class PortState:
    """A placement under annealing.

    Parameters
    ----------
    loads : PortLoads
    region : MoveRegion
    home : ndarray, shape (U,)
        Domain of each unit at the start.
    rng : Generator
    params : Params

    Attributes
    ----------
    best : ndarray, shape (U,)
        The best home met.
    """

    moves: tuple[Callable[[], None], ...] = (swap_busy, move_busy)

    def __init__(
        self,
        loads: PortLoads,
        region: MoveRegion,
        home: IntArray,
        rng: np.random.Generator,
        params: Params,
    ) -> None:
        self.home, self.best, self._rng, self._params = home.copy(), home, rng, params
        self._loads, self._room = loads, region.capacity // region.size
        self._enclosure = region.enclosure
        # Both that move, at both ends of a flow, before and after.
        entries = 8 * len(loads.flows) // region.units + 1
        most = max(FEWEST, int(region.units * SHARE))
        self._proposed = max(1, min(most, ENTRIES // entries))
        self._step_work = STEP_WORK + ENTRY_WORK * entries * self._proposed
        self._busy = loads.of(home)
        self._best_s = self._seconds()
        self._scale, self._power = np.maximum(self._busiest(), 1e-300), 1.0
        things = len(home) + loads.messages.ends.shape[1] + len(self._room)
        self._claim = np.full(things, NOBODY)
        self._added: Added | None = None
        self.hot = self.cold = np.ones(1)
        self._steps = self._quench = self._step = 0

    def cool(self, power: float, heat: float, work: float) -> None:
        """Begin a round: with some power, and hot in proportion to what changes add."""
        self._power = power
        self._steps, self._step = int(work / self._step_work), 0
        self._quench = self._steps - int(self._steps * self._params.anneal_quenched)
        size = np.abs(self.delta(self.propose()))
        size = size[size > 0]
        typical = float(size.mean()) if len(size) else 1.0
        self.hot = np.array([heat * typical])
        self.cold = self.hot * self._params.even_end

    @property
    def progress(self) -> float:
        """Share of the way from hot to cold, inf beyond."""
        return self._step / self._quench if self._step < self._quench else inf

    @property
    def is_done(self) -> bool:
        """Whether all steps are made."""
        if self._step >= self._steps:
            self._note_best()
        return self._step >= self._steps

    def draw(self, count: int) -> FloatArray:
        """Random numbers above 0, up to 1."""
        return 1.0 - self._rng.random(count)

    def propose(self) -> _Changes:
        """Units go to a neighbour's domain, into free room or for one that is there."""
        if self._step % LOOK == 0:
            self._look()
        rng, count, loads = self._rng, self._proposed, self._loads
        unit = rng.integers(0, len(self.home), count)
        busy = np.searchsorted(self._busy_until, rng.random(int(count * BUSY)))
        unit[: len(busy)] = np.minimum(busy, len(self.home) - 1)
        nth = (rng.random(count) * loads.degree[unit]).astype(np.int64)
        at = np.minimum(loads.first[unit] + nth, len(loads.flows) - 1)
        ends = loads.messages.ends[:, loads.flows[at]]
        new = self.home[np.where(ends[0] == unit, ends[1], ends[0])]
        far = rng.random(count) < FAR
        new = np.where(far, rng.integers(0, len(self._room), count), new)
        held = self._count[new]
        at = self._first[new] + (rng.random(count) * held).astype(np.int64)
        partner = self._inside[np.minimum(at, len(self.home) - 1)]
        has_room = self._free[new] > 0
        alone = has_room & ((rng.random(count) < INTO_ROOM) | (held == 0))
        partner = np.where(alone, unit, partner)
        old = self.home[unit]
        allowed = (old != new) & (self._enclosure[old] == self._enclosure[new])
        allowed &= alone | ((held > 0) & (self.home[partner] == new))
        return _Changes(unit, partner, old, new).only(allowed)

    def delta(self, changes: _Changes) -> FloatArray:
        """What each change, by itself, adds to the sum of powers."""
        added = self._loads.added(self.home, changes.unit, changes.partner, changes.new)
        self._added = added
        scale = self._scale[self._loads.kind[added.load]]
        before = self._busy[added.load]
        after = np.maximum(before + added.seconds, 0.0)
        share = scale / self._scale.sum()
        more = share * (
            (after / scale) ** self._power - (before / scale) ** self._power
        )
        return np.bincount(added.change, more, len(changes.unit)).astype(np.float64)

    def apply(self, changes: _Changes, accepted: BoolArray) -> None:
        """Make accepted changes, of those that interfere the first."""
        self._step += 1
        made = accepted.copy()
        made[accepted] = self._independent(changes.only(accepted))
        unit, partner, old, new = changes.only(made)
        self.home[unit] = new
        swapped = partner != unit
        self.home[partner[swapped]] = old[swapped]
        self._free[new[~swapped]] -= 1
        self._free[old[~swapped]] += 1
        if self._added is not None:
            own = made[self._added.change]
            np.add.at(self._busy, self._added.load[own], self._added.seconds[own])

    def _independent(self, changes: _Changes) -> BoolArray:
        """Changes that share no unit, flow or room with an earlier one."""
        unit, partner, old, new = changes
        change, flows = self._loads.touched(unit, partner)
        numbers = np.arange(len(unit))
        alone = np.flatnonzero(unit == partner)
        # Units, flows and rooms, numbered through.
        units, rooms = len(self.home), len(self._claim) - len(self._room)
        things = (unit, partner, units + flows, rooms + old[alone], rooms + new[alone])
        who = np.concatenate((numbers, numbers, change, alone, alone))
        thing = np.concatenate(things)
        np.minimum.at(self._claim, thing, who)
        late = self._claim[thing] < who
        self._claim[thing] = NOBODY
        found: BoolArray = np.bincount(who, late, len(unit)) == 0
        return found

    def _look(self) -> None:
        """Note who is where, what is busy, and the best placement."""
        self._busy = self._loads.of(self.home)
        self._note_best()
        self._inside = np.argsort(self.home, kind="stable")
        self._count = np.bincount(self.home, minlength=len(self._room))
        self._first = np.cumsum(self._count) - self._count
        self._free = self._room - self._count
        share = self._busy / self._scale[self._loads.kind]
        heat = self._loads.on_way(share ** (self._power / 2), self.home)
        self._busy_until = np.cumsum(heat) / max(float(heat.sum()), 1e-300)

    def _busiest(self) -> FloatArray:
        """Seconds of the busiest port or uplink of each kind."""
        found = np.zeros(int(self._loads.kind.max()) + 1)
        np.maximum.at(found, self._loads.kind, self._busy)
        return found

    def _seconds(self) -> float:
        """Seconds of all kinds, one after the other."""
        return float(self._busiest().sum())

    def _note_best(self) -> None:
        seconds = self._seconds()
        if seconds < self._best_s:
            self._best_s, self.best = seconds, self.home.copy()
