"""The tier in which the groups of an axis belong: those that lie elsewhere are shown.

Levels are the node and the tiers around it, the whole machine last.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import lcm
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from placer.placement.plan import Plan

# Where this share of the groups lies in a tier, that tier can hold them.
_SHOWN = 0.1


def room_wanted(plan: Plan, axis: str) -> int | None:
    """Ranks of a domain that holds a group, and every group in it of axes within.

    A pipeline is no use in a rack if the tensor-parallel groups of its stages do not
    fit beside it. None where the plan does not say, or the axis has no such order.
    """
    axes = plan.axes
    if axes is None or plan.role_of_rank:
        return None
    dense = axes.tp * axes.cp
    experts = axes.ep * axes.etp if axes.divides_experts else 1
    return {
        "tp": axes.tp,
        "cp": dense,
        "etp": axes.etp,
        "ep": experts,
        "pp": lcm(dense, experts) * axes.pp,
        "dp": dense * axes.pp * axes.dp,
    }.get(axis)


def fullest(plan: Plan, tiers: Sequence[str]) -> list[int]:
    """Ranks in the fullest domain of each tier, the last of which is the machine.

    0 where the plan does not name the domains of a tier.
    """
    on_node = Counter(plan.node_of_rank.tolist())
    names = {tiers[0]: plan.nodes, **plan.domains, tiers[-1]: ("",) * len(plan.nodes)}
    found = []
    for tier in tiers:
        inside: Counter[str] = Counter()
        if own := names.get(tier):
            for node, ranks in on_node.items():
                inside[own[node]] += ranks
        found.append(max(inside.values(), default=0))
    return found


def home_level(
    wanted: int | None,
    room: Sequence[int],
    held: Sequence[Sequence[int]],
    scale_up: int,
    is_best: bool,
) -> int:
    """The innermost level that can hold a group.

    It can where a tenth of the groups lie so, on any side; unless a side is proved
    optimal, also where a domain has the room, but not further in than NVLink goes.

    ``wanted``: ranks that a domain must have room for; None if not known. ``room``:
    ranks in the fullest domain of each level. ``held``: by side: groups of which each
    level is the innermost that holds all ranks. ``scale_up``: the outermost level of
    NVLink. ``is_best``: whether a side is proved optimal.
    """
    last = len(room) - 1
    shown = next(
        (
            level
            for level in range(last)
            if any(sum(row[: level + 1]) >= _SHOWN * sum(row) > 0 for row in held)
        ),
        last,
    )
    if is_best or wanted is None:
        return shown
    fits = next((level for level, ranks in enumerate(room) if ranks >= wanted), last)
    return min(shown, max(fits, scale_up))
