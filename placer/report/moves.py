"""What moved between two plans: ranks, one by one and folded for people, and groups.

Which rank of one plan does the work of which rank of another.

Shapes: R ranks compared, V groups compared, T levels, N nodes of a plan.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from placer.base.arrays import IntArray
from placer.base.errors import InputError
from placer.job.axes import Parallelism, unlike_sizes
from placer.placement.launcher_orders import natural_key
from placer.placement.plan import Plan
from placer.placement.previous import ranks_of_replicas

# The axes beside dp whose coordinates moves are folded by, most telling first.
_OTHER_AXES = ("pp", "ep", "cp", "tp")

Facts = dict[str, Any]


def moves(old: Plan, new: Plan, matching: Matching) -> list[Facts]:
    """Every ``rank`` on another GPU than before, with both as ``host:gpu``; ascending.

    ``new_rank`` is another number only where the two plans number ranks differently.
    """
    old_rank, new_rank = moved_ranks(old, new, matching)
    return [
        {
            "rank": rank,
            "new_rank": other,
            "old": _gpu(old, rank),
            "new": _gpu(new, other),
        }
        for rank, other in zip(old_rank.tolist(), new_rank.tolist(), strict=True)
    ]


def folds(old: Plan, new: Plan, matching: Matching) -> dict[str, list[Facts]]:
    """The moves by coordinate, old and new domain, for every axis; ``dp`` comes first.

    Each says how many ``ranks`` they are, and on how many ``nodes`` they were.
    Coordinates ascend, under ``replica`` for dp and ``index`` for others. Without axes
    everything is under ``dp``, with None for the coordinate. Of workloads whose ranks
    have the same roles, ``role`` has the instances, such as ``rollout 1``.
    """
    old_rank, new_rank = moved_ranks(old, new, matching)
    tier = home_tier(old, new)
    old_node = old.node_of_rank[old_rank]
    old_home = _homes(old, tier, old_node)
    new_home = _homes(new, tier, new.node_of_rank[new_rank])
    others = [axis for axis in _OTHER_AXES if axis in matching.axes]
    found = {}
    for axis in ("dp", *others):
        index: list[int | None] = [None] * len(old_rank)
        if matching.old is not None:
            index = matching.work[0][axis][old_rank].tolist()
        name = "replica" if axis == "dp" else "index"
        found[axis] = _folds(name, index, old_home, new_home, old_node.tolist())
    if old.role_of_rank and old.role_of_rank == new.role_of_rank:
        instances = [
            f"{old.role_of_rank[rank]} {old.instance_of_rank[rank]}"
            for rank in old_rank.tolist()
        ]
        found["role"] = _folds(
            "index", instances, old_home, new_home, old_node.tolist()
        )
    return found


def home_tier(old: Plan, new: Plan) -> str:
    """The tier by which moves are folded: the lowest with domains in both plans."""
    for tier in old.topology.get("tiers", old.domains):
        if tier in old.domains and tier in new.domains:
            return str(tier)
    return "node"


def moved_ranks(old: Plan, new: Plan, matching: Matching) -> tuple[IntArray, IntArray]:
    """Old and new ranks whose GPU is another one; each shape (any,)."""
    index = {name: i for i, name in enumerate(old.nodes)}
    same_node = np.array([index.get(name, -1) for name in new.nodes], dtype=np.int64)
    old_rank, new_rank = matching.old_rank, matching.new_rank
    moved = old.node_of_rank[old_rank] != same_node[new.node_of_rank[new_rank]]
    moved |= old.gpu_of_rank[old_rank] != new.gpu_of_rank[new_rank]
    return old_rank[moved], new_rank[moved]


def _folds(
    name: str,
    index: Sequence[int | str | None],
    old: list[str],
    new: list[str],
    node: list[int],
) -> list[Facts]:
    nodes: dict[tuple[int | str | None, str, str], list[int]] = {}
    for key, here in zip(zip(index, old, new, strict=True), node, strict=True):
        nodes.setdefault(key, []).append(here)
    ordered = sorted(nodes.items(), key=lambda item: natural_key(str(item[0][0])))
    return [
        {name: own, "old": before, "new": after}
        | {"nodes": len(set(members)), "ranks": len(members)}
        for (own, before, after), members in ordered
    ]


def _homes(plan: Plan, tier: str, nodes: IntArray) -> list[str]:
    names = plan.domains.get(tier, plan.nodes)
    return [names[node] for node in nodes.tolist()]


def _gpu(plan: Plan, rank: int) -> str:
    return f"{plan.nodes[plan.node_of_rank[rank]]}:{plan.gpu_of_rank[rank]}"


Coordinates = Mapping[str, IntArray]

_DENSE = ("tp", "cp", "pp", "dp")
_EXPERT = ("etp", "ep", "pp", "edp")


@dataclass(frozen=True, eq=False)
class Matching:
    """Ranks of two plans with the same coordinates."""

    # old and new: axes of the two plans; None when a plan does not record them.
    old: Parallelism | None
    new: Parallelism | None
    # Coordinates of every old and every new rank, by axis, in one numbering of the
    # replicas; empty without axes.
    work: tuple[Coordinates, Coordinates]
    # old_rank and new_rank, (R,): ranks that do the same work, ascending by old rank.
    old_rank: IntArray
    new_rank: IntArray

    @property
    def axes(self) -> tuple[str, ...]:
        """Axes with groups of two or more ranks in either plan."""
        if self.old is None or self.new is None:
            return ()
        expert = ("ep", "etp", "edp") if self.old.ep > 1 else ()
        return tuple(
            axis
            for axis in ("tp", "cp", "pp", "dp", *expert)
            if max(self.old.size(axis), self.new.size(axis)) > 1
        )

    def groups(self, axis: str) -> tuple[IntArray, IntArray]:
        """Old and new ranks of the groups of ``axis`` that both plans have.

        Two arrays of shape (V, members); row for row the groups do the same work.

        Raises `ValueError` if a plan does not record its axes.
        """
        if self.old is None or self.new is None:
            raise ValueError("the plans do not record their axes")
        fixed = [a for a in (_DENSE if axis in _DENSE else _EXPERT) if a != axis]
        rows = [p.ranks_of_group[axis] for p in (self.old, self.new)]
        firsts = [members[:, 0] for members in rows]
        _, at_old, at_new = _common(self.work, fixed, *firsts)
        return rows[0][at_old], rows[1][at_new]


def match(old: Plan, new: Plan) -> Matching:
    """How the ranks of two plans correspond.

    Ranks correspond by their coordinates, so the plans may differ in data parallel size
    and in the order of their axes; plans without axes correspond rank by rank. Where
    one plan was made by giving up replicas of the other's size, its replicas are those
    that were kept.
    """
    before, after = old.axes, new.axes
    if before is None or after is None:
        if old.world_size != new.world_size:
            raise InputError(
                f"the plans cannot be compared: {old.world_size} ranks against "
                f"{new.world_size}, and a plan does not record its axes"
            )
        every = np.arange(old.world_size)
        return Matching(None, None, ({}, {}), every, every)
    if unlike := unlike_sizes(before, after):
        raise InputError(f"the plans cannot be compared: {', '.join(unlike)}")
    work = _work(old, before, after), _work(new, after, before)
    _, old_rank, new_rank = _common(
        work, _DENSE, np.arange(old.world_size), np.arange(new.world_size)
    )
    by_rank = np.argsort(old_rank)
    return Matching(before, after, work, old_rank[by_rank], new_rank[by_rank])


def _work(plan: Plan, own: Parallelism, other: Parallelism) -> Coordinates:
    """Coordinates of the plan's ranks: the other's, if it kept replicas of that."""
    given_up = plan.previous.get("given_up")
    if not isinstance(given_up, list | tuple):
        return own.coordinates
    kept = [replica for replica in range(other.dp) if replica not in given_up]
    if len(kept) != own.dp:
        return own.coordinates
    ranks = ranks_of_replicas(other, own, kept)
    return {axis: values[ranks] for axis, values in other.coordinates.items()}


def _common(
    work: tuple[Coordinates, Coordinates],
    axes: Sequence[str],
    old_rank: IntArray,
    new_rank: IntArray,
) -> tuple[IntArray, IntArray, IntArray]:
    """Coordinates (as one key) that both lists of ranks have, and where they stand."""
    radix = [1 + max(int(side[axis].max()) for side in work) for axis in axes]
    keys = [
        reduce(
            lambda key, digit: key * digit[1] + side[digit[0]][ranks],
            zip(axes, radix, strict=True),
            np.zeros(len(ranks), dtype=np.int64),
        )
        for side, ranks in zip(work, (old_rank, new_rank), strict=True)
    ]
    return np.intersect1d(keys[0], keys[1], assume_unique=True, return_indices=True)


def axis_changes(old: Plan, new: Plan, matching: Matching) -> dict[str, Facts]:
    """What happened to the groups of every axis, by tiers of known domains.

    ``groups``: those that both plans have. ``changed_domain``: whose lowest common
    domain is another one, of whichever tier. ``entered`` and ``left``: whose lowest
    common tier is now further in, or further out. ``tiers``: how many went from one
    lowest common tier to another, or to another domain of the same tier. ``domains``:
    the same by domain, from the tier on that moves are folded by: a group inside one
    node counts as in the rack of that node; the whole machine is named by its tier.
    """
    tiers = [plan.outer_tiers for plan in (old, new)]
    if not matching.axes or not all(tiers):
        return {}
    if tiers[0] != tiers[1]:
        raise InputError(
            "the plans cannot be compared: tiers "
            f"{', '.join(tiers[0])} against {', '.join(tiers[1])}"
        )
    ends = (tiers[0][0], tiers[0][-1])
    known = {*ends, *(old.domains.keys() & new.domains.keys())}
    levels = [tier for tier in tiers[0] if tier in known]
    domains = _domains(old, new, levels)
    return {
        axis: _axis_change(axis, old, new, matching, levels, domains)
        for axis in matching.axes
    }


def _axis_change(
    axis: str,
    old: Plan,
    new: Plan,
    matching: Matching,
    levels: list[str],
    domains: tuple[IntArray, IntArray],
) -> Facts:
    old_groups, new_groups = matching.groups(axis)
    old_tier, old_domain = _lowest(domains[0], old.node_of_rank[old_groups])
    new_tier, new_domain = _lowest(domains[1], new.node_of_rank[new_groups])
    moved = (old_tier != new_tier) | (old_domain != new_domain)
    pairs = np.bincount(
        (old_tier * len(levels) + new_tier)[moved], minlength=len(levels) ** 2
    ).reshape(len(levels), -1)
    return {
        "groups": len(old_tier),
        "changed_domain": int(moved.sum()),
        "entered": int((new_tier < old_tier).sum()),
        "left": int((new_tier > old_tier).sum()),
        "tiers": [
            {"old": levels[a], "new": levels[b], "groups": int(pairs[a, b])}
            for a, b in np.argwhere(pairs).tolist()
        ],
        "domains": _domain_changes(
            (old, new), (old_groups, new_groups), (old_tier, new_tier), levels, domains
        ),
    }


def _domain_changes(
    plans: tuple[Plan, Plan],
    groups: tuple[IntArray, IntArray],
    tiers: tuple[IntArray, IntArray],
    levels: list[str],
    domains: tuple[IntArray, IntArray],
) -> list[Facts]:
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
    return [
        {
            "old_tier": levels[row[0]],
            "old": _name(plans[0], levels, row[0], nodes[0][group]),
            "new_tier": levels[row[2]],
            "new": _name(plans[1], levels, row[2], nodes[1][group]),
            "groups": count,
        }
        for row, group, count in zip(
            rows.T.tolist(), at.tolist(), counts.tolist(), strict=True
        )
        if row[:2] != row[2:]
    ]


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
