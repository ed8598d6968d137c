"""Which groups changed their lowest common domain between two plans.

Shapes: T levels, N nodes of a plan, V groups.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from placer.base.arrays import IntArray
from placer.base.errors import InputError
from placer.placement.plan import Plan
from placer.report.moves import Matching, home_tier


@dataclass(frozen=True)
class DomainChange:
    """Groups of one axis that went from one lowest common domain to another."""

    # old_tier, old, new_tier and new: tiers and names of the two domains; the whole
    # machine is named by its tier.
    old_tier: str
    old: str
    new_tier: str
    new: str
    groups: int

    def to_dict(self) -> dict[str, Any]:
        """The change as plain data."""
        return asdict(self)


@dataclass(frozen=True)
class AxisChange:
    """What happened to the groups of one axis."""

    axis: str
    groups: int  # groups that both plans have
    # Groups whose lowest common domain is another one, of whichever tier.
    changed_domain: int
    # entered and left: groups whose lowest common tier is now further in, or further
    # out.
    entered: int
    left: int
    # How many of them went from one lowest common tier to another, or to another domain
    # of the same tier.
    tiers: Mapping[tuple[str, str], int]
    # The same by domain, from the tier on that moves are folded by: a group inside one
    # node counts as in the rack of that node.
    domains: tuple[DomainChange, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The change as plain data."""
        return {
            "groups": self.groups,
            "changed_domain": self.changed_domain,
            "entered": self.entered,
            "left": self.left,
            "tiers": [
                {"old": old, "new": new, "groups": count}
                for (old, new), count in self.tiers.items()
            ],
            "domains": [change.to_dict() for change in self.domains],
        }


def axis_changes(old: Plan, new: Plan, matching: Matching) -> tuple[AxisChange, ...]:
    """What happened to the groups of every axis, by tiers of known domains."""
    tiers = [plan.outer_tiers for plan in (old, new)]
    if not matching.axes or not all(tiers):
        return ()
    if tiers[0] != tiers[1]:
        raise InputError(
            "the plans cannot be compared: tiers "
            f"{', '.join(tiers[0])} against {', '.join(tiers[1])}"
        )
    ends = (tiers[0][0], tiers[0][-1])
    known = {*ends, *(old.domains.keys() & new.domains.keys())}
    levels = [tier for tier in tiers[0] if tier in known]
    domains = _domains(old, new, levels)
    return tuple(
        _axis_change(axis, old, new, matching, levels, domains)
        for axis in matching.axes
    )


def _axis_change(
    axis: str,
    old: Plan,
    new: Plan,
    matching: Matching,
    levels: list[str],
    domains: tuple[IntArray, IntArray],
) -> AxisChange:
    old_groups, new_groups = matching.groups(axis)
    old_tier, old_domain = _lowest(domains[0], old.node_of_rank[old_groups])
    new_tier, new_domain = _lowest(domains[1], new.node_of_rank[new_groups])
    moved = (old_tier != new_tier) | (old_domain != new_domain)
    pairs = np.bincount(
        (old_tier * len(levels) + new_tier)[moved], minlength=len(levels) ** 2
    ).reshape(len(levels), -1)
    return AxisChange(
        axis=axis,
        groups=len(old_tier),
        changed_domain=int(moved.sum()),
        entered=int((new_tier < old_tier).sum()),
        left=int((new_tier > old_tier).sum()),
        tiers={
            (levels[a], levels[b]): int(pairs[a, b])
            for a, b in np.argwhere(pairs).tolist()
        },
        domains=_domain_changes(
            (old, new), (old_groups, new_groups), (old_tier, new_tier), levels, domains
        ),
    )


def _domain_changes(
    plans: tuple[Plan, Plan],
    groups: tuple[IntArray, IntArray],
    tiers: tuple[IntArray, IntArray],
    levels: list[str],
    domains: tuple[IntArray, IntArray],
) -> tuple[DomainChange, ...]:
    """Groups by old and new domain, from the home tier on, where these differ."""
    home = home_tier(*plans)
    lowest = levels.index(home) if home in levels else 0
    keys: list[IntArray] = []
    nodes: list[IntArray] = []
    for plan, members, tier, of_node in zip(plans, groups, tiers, domains, strict=True):
        first = plan.node_of_rank[members[:, 0]]
        level = np.maximum(tier, lowest)
        keys += [level, of_node[level, first]]
        nodes.append(first)
    rows, at, counts = np.unique(
        np.stack(keys), axis=1, return_index=True, return_counts=True
    )
    return tuple(
        DomainChange(
            levels[row[0]],
            _name(plans[0], levels, row[0], nodes[0][group]),
            levels[row[2]],
            _name(plans[1], levels, row[2], nodes[1][group]),
            count,
        )
        for row, group, count in zip(
            rows.T.tolist(), at.tolist(), counts.tolist(), strict=True
        )
        if row[:2] != row[2:]
    )


def _name(plan: Plan, levels: list[str], level: int, node: int) -> str:
    """Name of the domain at a level that holds one of the plan's nodes."""
    if level == len(levels) - 1:
        return levels[level]
    return plan.nodes[node] if level == 0 else plan.domains[levels[level]][node]


def _domains(old: Plan, new: Plan, levels: list[str]) -> tuple[IntArray, IntArray]:
    """Domain of each node of both plans at each level, numbered alike; each (T, N).

    A domain is known by its name and the names of all that enclose it.
    """
    split = len(old.nodes)
    names = [""] * (split + len(new.nodes))
    rows = np.zeros((len(levels), len(names)), dtype=np.int64)
    for level in range(len(levels) - 2, -1, -1):
        tier = levels[level]
        own = (
            [*old.domains[tier], *new.domains[tier]]
            if level
            else [*old.nodes, *new.nodes]
        )
        names = [f"{outer}/{name}" for outer, name in zip(names, own, strict=True)]
        rows[level] = np.unique(names, return_inverse=True)[1]
    return rows[:, :split], rows[:, split:]


def _lowest(domains: IntArray, nodes: IntArray) -> tuple[IntArray, IntArray]:
    """Lowest common level of each group and its domain there; ``nodes`` is (V, any)."""
    inside = domains[:, nodes]
    level = (inside == inside[:, :, :1]).all(axis=2).argmax(axis=0)
    return level, domains[level, nodes[:, 0]]
