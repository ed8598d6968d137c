"""The step of a job that has only communicators of its own, from its groups' homes.

``step = what all placements share + sum over kinds of what their slowest exposes``. A
hop takes what a message takes at the tier of its two ranks: the hops of a relay add up,
of a ``send_recv`` the slowest counts. Any other collective takes at least what the best
network imaginable needs for a group that leaves its domain of a tier. Waiting for
shared links and slow nodes are left out, so the model says at most what a placement
takes, and exactly that where they do not matter.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from placer.cost.custom import group_time
from placer.solve.bounds.ideal import IdealNetwork
from placer.solve.exact.terms import in_units, unit_of

if TYPE_CHECKING:
    from fractions import Fraction

    from ortools.sat.python import cp_model

    from placer.cost.step import StepModel
    from placer.job.model import Group
    from placer.solve.exact.homes import Homes, Literal
    from placer.solve.problem.colocation import Parts

IntArray = npt.NDArray[np.int64]


def minimise_groups(
    homes: Homes,
    model: StepModel,
    parts: Parts,
    capacity_of_node: IntArray,
    start: IntArray,
) -> float:
    """Make the step time the model's objective; returns its unit, s.

    Parameters
    ----------
    homes : Homes
        Of all tiers.
    model : StepModel
        Of a job without a transformer.
    parts : Parts
    capacity_of_node : ndarray, shape (N,)
        Ranks each node may hold.
    start : ndarray, shape (R,)
        A placement.
    """
    known = model.step(start)
    unit = unit_of([], known.step_time_s)
    longest = in_units(known.step_time_s + model.compute_s, unit) + 1
    same = known.step_time_s - sum(known.exposed_custom_s.values())
    exposed = []
    for group in model.job.groups:
        slowest = homes.model.new_int_var(0, longest, "")
        clock = _Clock(homes, model, group, unit)
        for ranks in group.ranks:
            if len(ranks) > 1:
                clock.time(ranks, slowest, parts, capacity_of_node)
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

    homes: Homes
    model: StepModel
    group: Group
    unit: Fraction

    def time(
        self,
        ranks: tuple[int, ...],
        slowest: cp_model.IntVar,
        parts: Parts,
        capacity_of_node: IntArray,
    ) -> None:
        """Make ``slowest`` at least what one communicator takes."""
        units = [rank // self.homes.block for rank in ranks]
        if self.group.collective in ("send_recv", "relay"):
            self._time_messages(units, slowest)
        else:
            least = self._least_by_tier(ranks, parts, capacity_of_node)
            self._time_collective(units, slowest, least)

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

    def _time_collective(
        self, units: list[int], slowest: cp_model.IntVar, least: list[int]
    ) -> None:
        leaves = [
            self._any([self.homes.differ(t, *pair) for pair in pairwise(units)])
            for t in self._tiers
        ]
        self.homes.model.add(slowest >= _rising(least, leaves))

    def _least_by_tier(
        self, ranks: tuple[int, ...], parts: Parts, capacity_of_node: IntArray
    ) -> list[int]:
        """Least time of a group that leaves its domain of the tier below each tier."""
        alone = replace(self.group, ranks=(ranks,))
        seconds = [
            group_time(
                _Leaving(self.model.fabric, parts.label, capacity_of_node, tiers=t),
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


@dataclass(frozen=True, eq=False)
class _Leaving(IdealNetwork):
    """The best network for groups that leave their domains of the first tiers."""

    tiers: int = 0

    def _fewest_domains(self, members: IntArray) -> IntArray:
        fewest = super()._fewest_domains(members)
        fewest[: self.tiers + 1] = np.maximum(fewest[: self.tiers + 1], 2)
        return fewest
