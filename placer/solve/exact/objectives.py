"""What an exact model minimises: hop cost, or the step of a job of groups alone.

*Hop cost.* An edge pays the distance increment of each tier that it leaves:
``J = sum over edges of weight (d_0 + sum over tiers t it leaves of (d_{t+1} - d_t))``.

*Groups.* ``step = what all placements share + sum over kinds of what their slowest
exposes``. A hop takes what a message takes at the tier of its two ranks: the hops of a
relay add up, of a ``send_recv`` the slowest counts. Any other collective takes at least
what the best network imaginable needs for a group that leaves its domain of a tier.
Waiting for shared links and slow nodes are left out, so the model says at most what a
placement takes, and exactly that where they do not matter.

Coefficients are whole numbers of a unit, rounded down, so bounds hold for the real
numbers that they stand for.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from math import floor, gcd, lcm
from typing import TYPE_CHECKING

import numpy as np

from placer.base.arrays import IntArray
from placer.cost.custom import group_time
from placer.solve.bounds.network.best import Leaving

if TYPE_CHECKING:
    from ortools.sat.python import cp_model

    from placer.cost.hop_cost import HopCost
    from placer.cost.step import StepModel
    from placer.job.traffic import Group
    from placer.solve.exact.assignment import Assignment, Literal
    from placer.solve.problem.compiled import Problem

Edges = dict[tuple[int, int], float]

# Largest coefficient, in units, and largest denominator of numbers taken as written.
MOST_UNITS = 10**9
MOST_DENOMINATOR = 10**6
# Units of the whole objective where numbers have no common unit.
PRECISION = 10**12


def hop_tiers(hops: HopCost) -> list[int]:
    """Tiers beyond which the distance is another."""
    changes: list[int] = np.flatnonzero(np.diff(hops.distance)).tolist()
    return changes


def minimise_hops(
    homes: Assignment, hops: HopCost, cut_per_tier: Sequence[float], incumbent: float
) -> float:
    """Make the hop cost the model's objective; returns its unit.

    Parameters
    ----------
    cut_per_tier : sequence of float
        Least weight of edges between domains of each tier: the search does not see
        that argument by itself.
    incumbent : float
        A known hop cost.
    """
    edges = _edges(homes, hops)
    tiers = hop_tiers(hops)
    rises = np.diff(hops.distance)
    prices = {
        (weight, t): weight * float(rises[t])
        for weight in set(edges.values())
        for t in tiers
    }
    inside = float(hops.distance[0]) * sum(a.weight * len(a.edges) for a in hops.axes)
    unit = unit_of([*prices.values(), inside], incumbent)
    for t in tiers:
        _require_cut(homes, edges, t, cut_per_tier[t])
    homes.model.minimize(
        in_units(inside, unit)
        + sum(
            in_units(prices[weight, t], unit) * homes.differ(t, one, other)
            for t in tiers
            for (one, other), weight in edges.items()
        )
    )
    return float(unit)


def _edges(homes: Assignment, hops: HopCost) -> Edges:
    """Weight of the edges between every two units."""
    found: Edges = defaultdict(float)
    for axis in hops.axes:
        for one, other in np.sort(axis.edges // homes.block, axis=1).tolist():
            if one != other:
                found[one, other] += axis.weight
    return found


def _require_cut(homes: Assignment, edges: Edges, tier: int, least: float) -> None:
    """At least so much weight leaves the domains of a tier."""
    unit = unit_of([*edges.values(), least], max(least, 1.0))
    cut = sum(
        -in_units(-weight, unit) * homes.differ(tier, one, other)
        for (one, other), weight in edges.items()
    )
    if least > 0 and not isinstance(cut, int):
        homes.model.add(cut >= in_units(least, unit))


def minimise_groups(homes: Assignment, problem: Problem, start: IntArray) -> float:
    """Make the step time the model's objective; returns its unit, s.

    Parameters
    ----------
    homes : Assignment
        In all tiers.
    problem : Problem
        Of a job without a transformer.
    start : ndarray, shape (R,)
        A placement.
    """
    model = problem.model
    known = model.step(start)
    unit = unit_of([], known.step_time_s)
    longest = in_units(known.step_time_s + model.compute_s, unit) + 1
    # The slowest GPUs may be left out.
    alike = replace(known, slowness=np.ones_like(known.slowness))
    same = alike.step_time_s - sum(known.exposed_custom_s.values())
    exposed = []
    for group in model.job.groups:
        slowest = homes.model.new_int_var(0, longest, "")
        network = Leaving(model.fabric, problem.colocation.label, problem.capacity)
        clock = _Clock(homes, network, model, group, unit)
        for ranks in group.ranks:
            if len(ranks) > 1:
                clock.time(ranks, slowest)
        if group.overlap:
            seen = homes.model.new_int_var(0, longest, "")
            homes.model.add(seen >= slowest - in_units(model.compute_s, unit) - 1)
            exposed.append(seen)
        else:
            exposed.append(slowest)
    homes.model.minimize(sum(exposed) + in_units(same, unit))
    return float(unit)


@dataclass(frozen=True, eq=False)
class _Clock:
    """Times the communicators of one kind, in units."""

    homes: Assignment
    network: Leaving
    model: StepModel
    group: Group
    unit: Fraction

    def time(self, ranks: tuple[int, ...], slowest: cp_model.IntVar) -> None:
        """Make ``slowest`` at least what one communicator takes."""
        units = [rank // self.homes.block for rank in ranks]
        if self.group.collective in ("send_recv", "relay"):
            self._time_messages(units, slowest)
        else:
            leaves = [
                self._any([self.homes.differ(t, *pair) for pair in pairwise(units)])
                for t in self._tiers
            ]
            least = self._least_by_tier(ranks)
            self.homes.model.add(slowest >= _rising(least, leaves))

    def _time_messages(self, units: list[int], slowest: cp_model.IntVar) -> None:
        fabric = self.model.fabric
        seconds = self.group.size_bytes / fabric.bandwidth + fabric.latency
        prices = [in_units(float(s), self.unit) for s in seconds * self.group.per_step]
        hops = [
            _rising(prices, [self.homes.differ(t, *hop) for t in self._tiers])
            for hop in pairwise(units)
        ]
        if self.group.collective == "relay":
            self.homes.model.add(slowest >= sum(hops))
        else:
            for hop in hops:
                self.homes.model.add(slowest >= hop)

    def _least_by_tier(self, ranks: tuple[int, ...]) -> list[int]:
        """Least time of a group that leaves its domain of the tier below each tier."""
        alone = replace(self.group, ranks=(ranks,))
        seconds = [
            group_time(
                replace(self.network, tiers=t),
                alone,
                self.model.job.collectives,
            ).seconds
            for t in range(len(self.model.topology.tiers))
        ]
        # To leave a domain is to leave those inside it.
        rising = np.maximum.accumulate(seconds)
        return [in_units(float(s), self.unit) for s in rising]

    def _any(self, literals: list[Literal]) -> Literal:
        """A literal that is true where one of ``literals`` is."""
        known = [one for one in literals if isinstance(one, int)]
        unknown = [one for one in literals if not isinstance(one, int)]
        if any(known) or not unknown:
            return int(any(known))
        found = self.homes.model.new_bool_var("")
        for one in unknown:
            self.homes.model.add_implication(one, found)
        return found

    @property
    def _tiers(self) -> range:
        return range(len(self.model.topology.tiers) - 1)


def _rising(prices: list[int], leaves: list[Literal]) -> cp_model.LinearExprT:
    """The price of the innermost tier, and what every tier left adds."""
    added = [
        (price - below) * left
        for (below, price), left in zip(pairwise(prices), leaves, strict=True)
    ]
    return prices[0] + sum(added)


def unit_of(numbers: Sequence[float], total: float) -> Fraction:
    """The unit in which to count: a common divisor, else a tiny share of ``total``.

    Numbers are read as decimals. Rounding each of a few hundred terms down to the share
    lowers their sum by less than what counts as equal.
    """
    exact = [Fraction(str(number)) for number in numbers if number]
    scale = lcm(*(number.denominator for number in exact))
    if scale <= MOST_DENOMINATOR and exact:
        unit = Fraction(gcd(*(int(number * scale) for number in exact)), scale)
        if max(map(abs, exact)) / unit <= MOST_UNITS:
            return unit
    return Fraction(total) / PRECISION


def in_units(number: float, unit: Fraction) -> int:
    """``number`` in units, rounded down."""
    return floor(Fraction(str(number)) / unit)
