"""Why a unit is where it is: what its exchanges with others of its shape would cost.

Exchanges are looked at in the order of what they do to the weighted distances of the
job's edges, one of each different sum before the second of any; the legal ones are
priced exactly. The work is limited, so a large job's are not all tried.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np

from placer.base.arrays import FloatArray, IntArray
from placer.base.rounding import EXACT
from placer.base.units import counted
from placer.cost.fabric import Fabric
from placer.job.edges import AxisEdges, hop_edges
from placer.job.model import Job
from placer.placement.placement import Placement
from placer.placement.robust import crowded_domains, exceeded_budgets, misplaced_pins
from placer.placement.rules import seats_of_placement
from placer.solve.problem.compiled import Objective
from placer.solve.problem.rules import violated
from placer.topology.model import Topology


@dataclass(frozen=True, eq=False)
class Peers:
    """Units of one kind, and the one that is asked about."""

    # What one is: ``rank``, a tier, ``tp group``, ``stage``, ``replica``; where two are
    # the same, ``rack = replica``.
    name: str
    members: IntArray  # (U, k): ranks of each, ascending; no rank is in two
    own: int

    @property
    def ranks(self) -> IntArray:
        """Ranks of the unit that is asked about; shape (k,)."""
        row: IntArray = self.members[self.own]
        return row

    @cached_property
    def others(self) -> IntArray:
        """Units that it can exchange places with; shape (U-1,)."""
        return np.delete(np.arange(len(self.members)), self.own)

    def exchanged(self, gpu_of_rank: IntArray, other: int) -> IntArray:
        """GPU of every rank after the exchange with a unit, rank by rank; (R,)."""
        found = gpu_of_rank.copy()
        found[self.ranks] = gpu_of_rank[self.members[other]]
        found[self.members[other]] = gpu_of_rank[self.ranks]
        return found


def units_with(
    topology: Topology,
    job: Job,
    gpu_of_rank: IntArray,
    ranks: IntArray,
    more: Mapping[str, IntArray] = MappingProxyType({}),
) -> list[Peers]:
    """Kinds of units of which one holds all of ``ranks``, smallest units first.

    A single rank, what a domain below the cluster holds, the groups of tensor and
    expert parallelism, a pipeline stage of a replica, a replica, and the kinds in
    ``more`` (name -> ranks of each unit, shape (U, k)). Domains that hold
    another number of ranks are left out, and kinds without a second unit of the shape.
    """
    found: list[Peers] = []
    usual = _kinds(topology, job, gpu_of_rank, ranks)
    for name, rows in dict((*usual, *more.items())).items():
        members = rows[np.argsort(rows[:, 0])]
        own = np.flatnonzero((members == ranks[0]).any(axis=1))
        if not own.size or len(members) < 2:
            continue
        units = Peers(name, members, int(own[0]))
        same = [i for i, k in enumerate(found) if np.array_equal(k.members, members)]
        if same:
            kind = found[same[0]]
            found[same[0]] = replace(kind, name=f"{kind.name} = {name}")
        elif np.isin(ranks, units.ranks).all():
            found.append(units)
    return sorted(found, key=lambda kind: kind.members.shape[1])


def _kinds(
    topology: Topology, job: Job, gpu_of_rank: IntArray, ranks: IntArray
) -> Iterator[tuple[str, IntArray]]:
    axes = job.parallelism
    at = axes.coordinates
    yield "rank", np.arange(job.world_size)[:, None]
    machine = topology.by_island
    for t, tier in enumerate(machine.tiers[:-1]):
        domain = machine.domain_of_gpu[t][gpu_of_rank]
        held = np.bincount(domain)
        alike = np.flatnonzero(held[domain] == held[domain[ranks[0]]])
        by_domain = alike[np.argsort(domain[alike], kind="stable")]
        yield tier.name, by_domain.reshape(-1, held[domain[ranks[0]]])
    for axis in ("tp", "ep"):
        if axes.size(axis) > 1:
            yield f"{axis} group", axes.ranks_of_group[axis]
    stage = np.argsort(at["dp"] * axes.pp + at["pp"], kind="stable")
    yield "stage", stage.reshape(axes.dp * axes.pp, -1)
    yield "replica", np.argsort(at["dp"], kind="stable").reshape(axes.dp, -1)


# Ranks of all placements that are priced; one of 8,192 takes about 4 ms.
MOST_RANKS = 3_000_000
FEWEST_TRIED = 8  # of each kind, however large the job
_LOOKED_AT = 4  # times as many as are priced, while rules are broken
_PRICED_ILLEGAL = 0.25  # of the share: what a rule costs is worth a few prices


def exchanges(
    topology: Topology,
    job: Job,
    goal: Objective,
    gpu_of_rank: IntArray,
    ranks: IntArray,
    share: float = 1.0,
    more: Mapping[str, IntArray] = MappingProxyType({}),
) -> list[dict[str, Any]]:
    """The exchanges of every kind of unit that holds ``ranks``, as plain data.

    Of each kind: ``unit`` and its ``ranks``; ``others`` it could change places with, of
    which ``tried`` were looked at; ``same`` legal ones cost as much as now; ``best`` is
    the cheapest legal one, ``next`` the cheapest legal one that costs more;
    ``breaks`` counts the rules that illegal ones break, ``best_illegal`` is the
    cheapest of those priced. An exchange has the ranks ``with`` which, the objective's
    ``value`` and its ``change``. Rules that the placement breaks already do not count.

    ``gpu_of_rank``: shape (R,). ``ranks`` ((any,)): asked about; they stay together.
    ``share``: of the work limit. ``more`` ((U, k)): kinds of units beside the usual
    ones.
    """
    kinds = units_with(topology, job, gpu_of_rank, ranks, more)
    tries = int(MOST_RANKS * share / job.world_size / max(len(kinds), 1))
    tries = max(tries, FEWEST_TRIED)
    trial = _Trial(topology, job, goal, gpu_of_rank)
    return [trial.of_kind(units, tries) for units in kinds]


def broken_rules(topology: Topology, job: Job, gpu_of_rank: IntArray) -> list[str]:
    """Names of the job's rules that a placement breaks: ``tp=rack``, ``at most ...``.

    Spares and hosts to avoid are left out: an exchange uses the same hosts.
    """
    broken = list(violated(topology.by_island, job, gpu_of_rank))
    rules = job.rules
    if rules.pin or rules.at_most or rules.budgets:
        seats, _ = seats_of_placement(Placement(gpu_of_rank), topology)
        broken += [
            f"pin {pin}"
            for pin in rules.pin
            if any(misplaced_pins(seats, topology, [pin]))
        ]
        broken += [
            f"at most {counted(most, 'replica')} a {tier}"
            for tier, most in rules.at_most.items()
            if any(crowded_domains(seats, topology, job, {tier: most}))
        ]
        broken += exceeded_budgets(seats, topology, job)
    return broken


class _Trial:
    """Prices the exchanges of one placement."""

    def __init__(
        self, topology: Topology, job: Job, goal: Objective, gpu_of_rank: IntArray
    ) -> None:
        self._topology, self._job, self._goal = topology, job, goal
        self._gpu_of_rank = gpu_of_rank
        self._now = goal.value(gpu_of_rank)
        self._broken_now = broken_rules(topology, job, gpu_of_rank)
        self._edges = hop_edges(replace(job, weights=dict(goal.weights)))

    def of_kind(self, units: Peers, tries: int) -> dict[str, Any]:
        """What the exchanges of one kind of unit cost, ``tries`` legal ones priced."""
        legal: list[dict[str, Any]] = []
        illegal: list[dict[str, Any]] = []
        breaks: Counter[str] = Counter()
        tried = 0
        for other in self._in_order(units).tolist()[: tries * _LOOKED_AT]:
            if len(legal) == tries:
                break
            tried += 1
            placed = units.exchanged(self._gpu_of_rank, other)
            broken = [
                rule
                for rule in broken_rules(self._topology, self._job, placed)
                if rule not in self._broken_now
            ]
            breaks.update(broken)
            if not broken:
                legal.append(self._priced(units, other, placed))
            elif len(illegal) < tries * _PRICED_ILLEGAL:
                found = self._priced(units, other, placed)
                illegal.append(found | {"breaks": broken})
        slack = EXACT * abs(self._now)
        worse = [found for found in legal if found["change"] > slack]
        return {
            "unit": units.name,
            "ranks": units.ranks.tolist(),
            "others": len(units.others),
            "tried": tried,
            "legal": len(legal),
            "same": sum(abs(found["change"]) <= slack for found in legal),
            "best": _cheapest(legal),
            "next": _cheapest(worse),
            "breaks": dict(breaks),
            "best_illegal": _cheapest(illegal),
        }

    def _in_order(self, units: Peers) -> IntArray:
        """The other units, one of each change of distances before the second of any."""
        change = exchange_changes(
            self._topology, self._edges, self._gpu_of_rank, units
        )[units.others]
        _, kind = np.unique(np.round(change, 6), return_inverse=True)
        by_kind = np.argsort(kind, kind="stable")
        starts = np.searchsorted(kind[by_kind], kind[by_kind])
        turn = np.empty_like(by_kind)
        turn[by_kind] = np.arange(len(by_kind)) - starts
        order: IntArray = units.others[np.lexsort((kind, turn))]
        return order

    def _priced(self, units: Peers, other: int, placed: IntArray) -> dict[str, Any]:
        value = self._goal.value(placed)
        return {
            "with": units.members[other].tolist(),
            "value": value,
            "change": value - self._now,
        }


def _cheapest(found: list[dict[str, Any]]) -> dict[str, Any] | None:
    """The first of the cheapest; None when there is none."""
    return min(found, key=lambda entry: entry["value"], default=None)


def exchange_changes(
    topology: Topology,
    axes: Sequence[AxisEdges],
    gpu_of_rank: IntArray,
    units: Peers,
) -> FloatArray:
    """Change of the sum by the exchange with each unit, 0 for the own; shape (U,).

    Of an edge that the own unit is no end of, only exchanges with the units at its ends
    change the distance.
    """
    fabric = Fabric.of(topology)
    distance = np.array([tier.distance for tier in fabric.topology.tiers])
    count, size = units.members.shape
    # Unit and position in it of every rank, -1 and 0 outside all units.
    unit = np.full(len(gpu_of_rank), -1)
    position = np.zeros_like(unit)
    unit[units.members] = np.arange(count)[:, None]
    position[units.members] = np.arange(size)

    def seat(ranks: IntArray, other: IntArray) -> IntArray:
        """GPU of each rank once the own unit has changed places with another."""
        there = units.members[other, position[ranks]]
        here = units.ranks[position[ranks]]
        moved = np.where(unit[ranks] == units.own, there, ranks)
        return gpu_of_rank[np.where(unit[ranks] == other, here, moved)]

    change = np.zeros(count)
    for axis in axes:
        ends = unit[axis.edges]
        own = (ends == units.own).any(axis=1)
        one, two = ~own & (ends[:, 0] >= 0), ~own & (ends[:, 1] >= 0)
        two &= ends[:, 0] != ends[:, 1]
        other = np.concatenate(
            (np.tile(np.arange(count), own.sum()), ends[one, 0], ends[two, 1])
        )
        edges = (np.repeat(axis.edges[own], count, axis=0), axis.edges[one])
        first, second = np.concatenate((*edges, axis.edges[two])).T
        before = fabric.tier_between(gpu_of_rank[first], gpu_of_rank[second])
        after = fabric.tier_between(seat(first, other), seat(second, other))
        longer = distance[after] - distance[before]
        change += axis.weight * np.bincount(other, longer, count)
    change[units.own] = 0.0
    return change
