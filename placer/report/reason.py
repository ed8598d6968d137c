"""Why one placement is slower than another: the groups that cross, and who waits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from placer.base.units import format_seconds, plural
from placer.report.homes import Home, homes_of

if TYPE_CHECKING:
    from placer.placement.plan import Plan


def reason(plan: Plan, before: Mapping[str, Any]) -> str:
    """What the slower placement ``before`` does that ``plan`` does not.

    Of all axes the one is told that is exposed longest beside the plan; empty where
    none is.

    Parameters
    ----------
    plan : Plan
    before : mapping
        ``exposed_s`` and ``crossings`` of the other placement, as in a score.
    """
    mine, theirs = plan.score.get("exposed_s", {}), before["exposed_s"]
    more = {axis: theirs[axis] - mine.get(axis, 0.0) for axis in theirs}
    axis = max(more, key=more.__getitem__, default="")
    if not axis or more[axis] <= 0:
        return ""
    crossings = before["crossings"], plan.score.get("crossings", {})
    for home in homes_of([plan], crossings):
        if home.axis == axis and home.leaving[0] > home.leaving[1]:
            return _crossed(home)
    return f"{axis} waits {format_seconds(more[axis])} a {plan.period} longer"


def _crossed(home: Home) -> str:
    """``1 of 32 tp groups crosses racks, and all wait for it``."""
    count, of = home.leaving[0], home.groups[0]
    nouns, tiers = plural(home.noun, of), plural(home.tier, 2)
    if count == of:
        whole = f"the {home.noun} crosses {tiers}"
        return f"all {of:,} {nouns} cross {tiers}" if of > 1 else whole
    words = ("crosses", "it") if count == 1 else ("cross", "them")
    return (
        f"{count:,} of {of:,} {nouns} {words[0]} {tiers}, and all wait for {words[1]}"
    )
