"""Which ranks moved between two plans, one by one and folded for people.

Which rank of one plan does the work of which rank of another.

Shapes: R ranks compared, V groups compared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
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


@dataclass(frozen=True)
class Move:
    """One rank's old and new GPU, as ``host:gpu``.

    ``new_rank`` differs from ``rank`` only when the two plans number ranks differently.
    """

    rank: int
    new_rank: int
    old: str
    new: str

    def to_dict(self) -> dict[str, Any]:
        """The move as plain data."""
        return asdict(self)


@dataclass(frozen=True)
class Fold:
    """Ranks of one coordinate of an axis that went from one domain to another."""

    # The coordinate, or the instance of a role, such as ``rollout 1``; None when the
    # plans do not record their axes.
    index: int | str | None
    # old and new: names of the domains.
    old: str
    new: str
    # nodes and ranks: nodes that the ranks were on, and how many ranks.
    nodes: int
    ranks: int

    def to_dict(self, index: str = "index") -> dict[str, Any]:
        """The fold as plain data, its coordinate under the key ``index``."""
        data = asdict(self)
        return {index: data.pop("index"), **data}


def moves(old: Plan, new: Plan, matching: Matching) -> tuple[Move, ...]:
    """Every rank on another GPU than before, ascending by old rank."""
    old_rank, new_rank = moved_ranks(old, new, matching)
    return tuple(
        Move(rank, other, _gpu(old, rank), _gpu(new, other))
        for rank, other in zip(old_rank.tolist(), new_rank.tolist(), strict=True)
    )


def folds(old: Plan, new: Plan, matching: Matching) -> Mapping[str, tuple[Fold, ...]]:
    """The moves by coordinate, old and new domain, for every axis; ``dp`` comes first.

    Without axes everything is under ``dp``, with None for the coordinate. Coordinates
    ascend. Of workloads whose ranks have the same roles, ``role`` has the instances.
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
        found[axis] = _folds(index, old_home, new_home, old_node.tolist())
    if old.role_of_rank and old.role_of_rank == new.role_of_rank:
        instances = [
            f"{old.role_of_rank[rank]} {old.instance_of_rank[rank]}"
            for rank in old_rank.tolist()
        ]
        found["role"] = _folds(instances, old_home, new_home, old_node.tolist())
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
    index: Sequence[int | str | None], old: list[str], new: list[str], node: list[int]
) -> tuple[Fold, ...]:
    nodes: dict[tuple[int | str | None, str, str], list[int]] = {}
    for key, here in zip(zip(index, old, new, strict=True), node, strict=True):
        nodes.setdefault(key, []).append(here)
    rows = [
        Fold(*key, nodes=len(set(members)), ranks=len(members))
        for key, members in nodes.items()
    ]
    return tuple(sorted(rows, key=lambda row: natural_key(str(row.index))))


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
