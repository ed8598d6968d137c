"""The policy of placer: the best placement of what is left, or a repair as good."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

import placer
from benchmarks.fault_policies import RACK_OF_TRAY, Cluster, any_trays, moved
from benchmarks.fault_replay import (
    GPUS,
    RACKS,
    REPLICA,
    TRAYS,
    BoolArray,
    IntArray,
    Seats,
    Trace,
    states,
)
from placer.base.hostlist import compress

if TYPE_CHECKING:
    from placer.placement.plan import Plan

WITHIN = 0.002  # of the step: for less than that ranks stay where they are
SEEDS = 0, 1
GOOD = 0.0055  # further above its bound, the next seed is tried
SEARCH_S = 120.0  # by the clock: work ends a search before, except on a busy machine
Left = tuple[int, ...]  # trays that racks have left, most first
Searches = Callable[[Sequence[Left], int], Iterable["Best"]]


@dataclass(frozen=True, eq=False)
class Best:
    """The best placement known where racks have so many trays left.

    Attributes
    ----------
    plan : Plan
        On the first trays of each rack, the fullest rack first.
    bound_s : float
        What any placement takes at least, s.
    """

    plan: Plan
    bound_s: float

    @property
    def step_s(self) -> float:
        """Its step time, s."""
        return float(self.plan.score["step_time_s"])

    @property
    def replicas(self) -> int:
        """Of the job."""
        return len(self.plan.node_of_rank) // (REPLICA * GPUS)


def left(up: BoolArray) -> Left:
    """What racks have left; machines that agree in it are the same machine."""
    counts = np.bincount(RACK_OF_TRAY[up], minlength=RACKS)
    return tuple(sorted(counts.tolist(), reverse=True))


def all_left(trace: Trace, maps: Iterable[IntArray]) -> list[Left]:
    """Everything that racks have left on any map, each once."""
    found = (left(up) for one in maps for up in states(trace, one))
    return list(dict.fromkeys(found))


def best(cluster: Cluster, state: Left, count: int) -> Best:
    """The best placement of ``count`` replicas; where one seed does badly, of two."""
    taken = np.arange(TRAYS) < np.array(state)[:, None]
    names = np.array(cluster.machine.node_names)
    found: list[Plan] = []
    for seed in SEEDS:
        plan = placer.place(
            cluster.machine,
            cluster.model(count).job,
            exclude=names[~taken.ravel()].tolist(),
            seed=seed,
            effort="quick",
            time_limit=SEARCH_S,
            workers=1,
        ).plan
        found.append(replace(plan, baselines={}, advice={}))
        if plan.bound["gap"] <= GOOD:
            break
    bound_s = max(float(plan.bound["lower_bound"]) for plan in found)
    return min((Best(plan, bound_s) for plan in found), key=lambda one: one.step_s)


def best_of_all(
    states: Iterable[Left], search: Searches, known: Mapping[Left, Best] | None = None
) -> dict[Left, Best]:
    """A placement for everything that racks may have left, hardly slower than the best.

    A machine with more trays left in each rack is never slower, and holds the same
    plans. So one search on the richest of all says what no other can beat, and few on
    what states have in common serve all that are as fast to `WITHIN`. The others are
    searched again on what they have in common with more trays to spare.

    Parameters
    ----------
    search : callable
        `best` for each of some states, and replicas of all.
    known : mapping, optional
        Placements of an earlier call.
    """
    found: dict[Left, Best] = {}
    searched = known or {}
    by_count: dict[int, list[Left]] = {}
    for state in states:
        by_count.setdefault(sum(state) // REPLICA, []).append(state)
    for count, group in by_count.items():
        own = {left: one for left, one in searched.items() if one.replicas == count}
        found |= _best_of_group(np.array(group), count, search, own)
    return found


def _best_of_group(
    group: IntArray, count: int, search: Searches, known: Mapping[Left, Best]
) -> dict[Left, Best]:
    """The same for states that hold equally many replicas; shape (states, racks)."""
    richest = _left(group.max(axis=0))
    (ideal,) = search([richest], count)
    searched = {**known, richest: ideal}
    found: dict[Left, Best] = {}
    waiting, least = group, REPLICA * count
    while True:
        shapes, values = np.array(list(searched)), list(searched.values())
        is_done = np.zeros(len(waiting), dtype=bool)
        for index, state in enumerate(waiting):
            fits = np.flatnonzero((shapes <= state).all(axis=1))
            if len(fits):
                plan = min((values[i] for i in fits), key=lambda one: one.step_s).plan
                here = Best(plan, ideal.bound_s)
                enough = ideal.step_s * (1 + WITHIN)
                is_done[index] = here.step_s <= enough or state.sum() < least
                found[_left(state)] = here
        waiting = waiting[~is_done]
        if not len(waiting):
            return found
        wanted = [one for one in _common(waiting, least) if one not in searched]
        searched |= zip(wanted, search(wanted, count), strict=True)
        least += 1


def _common(states: IntArray, least: int) -> Iterator[Left]:
    """Shapes of at least so many trays, one of which every state holds."""
    rest = states[np.argsort(states.sum(axis=1), kind="stable")]
    while len(rest):
        shape = rest[0]
        for state in rest[1:]:
            both = np.minimum(shape, state)
            if both.sum() >= least:
                shape = both
        yield _left(shape)
        rest = rest[(rest < shape).any(axis=1)]


def _left(state: IntArray) -> Left:
    return tuple(state.tolist())


class Placer:
    """What `placer.replace` answers where that is as fast, else a new placement.

    With ``repairs`` every repair is asked of `placer.replace`. Without, only the plain
    ones are made, an idle tray of the same rack for each that failed, by its rule and
    without asking: hundreds of calls on every map take longer than all else.
    """

    def __init__(
        self, cluster: Cluster, known: Mapping[Left, Best], *, repairs: bool = False
    ) -> None:
        self.name = "placer, every repair by replace" if repairs else "placer"
        self._cluster, self._known, self._repairs = cluster, known, repairs
        self._names = np.array(cluster.machine.node_names)
        self._tray = {name: i for i, name in enumerate(self._names.tolist())}
        self._plan: Plan | None = None
        self._up = np.ones(RACKS * TRAYS, dtype=bool)

    def most(self, up: BoolArray) -> int:
        """As many as there are trays for: one more gains more than it costs."""
        return any_trays(up)

    def seats(self, before: Seats | None, up: BoolArray) -> Seats:
        """The repair of the fewest moves, unless a new placement is faster."""
        target = self._known[left(up)]
        old, count = before, self.most(up)
        enough = target.step_s * (1 + WITHIN)
        plan = None
        if old is not None and count <= len(old.trays) and old.step_s <= enough:
            plan = self._repaired(up)
        if plan is None or plan.score["step_time_s"] > enough:
            plan = self._laid(target.plan, up)
        self._plan, self._up = plan, up
        trays = self._trays(plan)
        again = plan.previous.get("moved")
        if again is None:
            kept = np.arange(len(trays))
            kept[len(old.trays) if old else 0 :] = -1
            again = moved(old, kept, trays)
        return Seats(trays, plan.score["step_time_s"], target.bound_s, again)

    def _repaired(self, up: BoolArray) -> Plan | None:
        """The plan after a failure with as few moves as cost hardly anything."""
        assert self._plan is not None
        if not self._repairs:
            return self._swapped(up)
        return placer.replace(
            self._plan,
            failed=self._names[self._up & ~up].tolist(),
            added=self._names[~self._up & up].tolist(),
            shrink=True,
            within=WITHIN,
            time_limit=0,
        ).plan

    def _swapped(self, up: BoolArray) -> Plan | None:
        """What replacing does where each tray has an idle one in its rack: the fewest.

        None where one has not.
        """
        assert self._plan is not None
        idle = up.copy()
        used = np.array([self._tray[name] for name in self._plan.nodes])
        idle[used] = False
        trays = used.copy()
        for entry in np.flatnonzero(~up[used]):
            spare = np.flatnonzero(idle & (RACK_OF_TRAY[used[entry]] == RACK_OF_TRAY))
            if not len(spare):
                return None
            trays[entry] = spare[0]
            idle[spare[0]] = False
        if self.most(up) < len(used) // REPLICA:
            return None
        plan = self._named(self._plan, trays, up)
        return replace(plan, previous={"moved": GPUS * int((trays != used).sum())})

    def _laid(self, plan: Plan, up: BoolArray) -> Plan:
        """The plan of a machine with as many trays left in its racks, on this one."""
        counts = np.bincount(RACK_OF_TRAY[up], minlength=RACKS)
        by_count = np.argsort(-counts, kind="stable")
        place = np.zeros(RACKS * TRAYS, dtype=np.int64)
        for position, rack in enumerate(by_count):
            here = np.flatnonzero(up & (rack == RACK_OF_TRAY))
            place[position * TRAYS : position * TRAYS + len(here)] = here
        used = np.array([self._tray[name] for name in plan.nodes])
        return replace(self._named(plan, place[used], up), previous={})

    def _named(self, plan: Plan, trays: IntArray, up: BoolArray) -> Plan:
        """The plan on other trays; what is down is excluded from its allocation."""
        nodes = tuple(self._names[trays].tolist())
        racks = self._cluster.machine.domain_names[1]
        domains = {"rack": tuple(racks[rack] for rack in RACK_OF_TRAY[trays])}
        inputs = {**plan.inputs, "exclude": compress(self._names[~up].tolist())}
        return replace(plan, nodes=nodes, domains=domains, inputs=inputs)

    def _trays(self, plan: Plan) -> IntArray:
        node = np.array([self._tray[name] for name in plan.nodes])[plan.node_of_rank]
        trays: IntArray = node.reshape(-1, REPLICA, GPUS)[:, :, 0]
        return trays
