"""Where the groups of an axis belong, and how many leave it in each placement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from placer.placement.parts import fullest, home_level, room_wanted

if TYPE_CHECKING:
    from placer.placement.plan import Plan

# Axes whose groups a placement can hold together; gradients always travel.
_HELD = ("tp", "cp", "ep", "etp", "pp")
_NOUN = {"pp": "pipeline", "ep": "expert group"}

Crossings = Mapping[str, Mapping[str, int]]


@dataclass(frozen=True)
class Home:
    """Where the groups of an axis belong, and how many of each side leave it."""

    # axis and tier: the tier is the innermost one that can hold a group.
    axis: str
    tier: str
    level: int  # index of the tier among those from the node to the whole machine
    groups: tuple[int, ...]  # groups of the axis, by side
    # Groups whose lowest common domain is of an outer tier, by side.
    leaving: tuple[int, ...]

    @property
    def noun(self) -> str:
        """What one of its groups is called."""
        return _NOUN.get(self.axis, f"{self.axis} group")


def homes_of(plans: Sequence[Plan], crossings: Sequence[Crossings]) -> list[Home]:
    """Where the groups of each axis belong; gradient groups only if alone.

    ``plans``: those that are known of the placements, the last one among them.
    ``crossings``: of each placement, as a score has them; where one says nothing there
    are none.
    """
    if not all(crossings) or not plans[-1].outer_tiers:
        return []
    found = [_home(axis, plans, crossings) for axis in crossings[-1]]
    told = [home for home in found if min(home.groups) > 0]
    return [home for home in told if home.axis in _HELD] or told[:1]


def _home(
    axis: str, plans: Sequence[Plan], crossings: Sequence[Mapping[str, Any]]
) -> Home:
    plan = plans[-1]
    tiers, around = list(plan.topology["tiers"]), plan.outer_tiers
    counts = [
        [found.get(axis, {}).get(tier, 0) for tier in tiers] for found in crossings
    ]
    inner = len(tiers) - len(around)
    held = [[sum(row[: inner + 1]), *row[inner + 1 :]] for row in counts]
    rooms = zip(*(fullest(one, around) for one in plans), strict=True)
    room = [max(sizes) for sizes in rooms]
    level = home_level(
        room_wanted(plan, axis),
        room,
        held,
        plan.topology.get("scale_up", 0) - 1 - inner,
        any(map(is_optimal, plans)),
    )
    return Home(
        axis,
        around[level],
        level,
        tuple(sum(row) for row in held),
        tuple(sum(row[level + 1 :]) for row in held),
    )


def is_optimal(plan: Plan) -> bool:
    """Whether no placement is better under the model."""
    return plan.bound.get("status") == "optimal"
