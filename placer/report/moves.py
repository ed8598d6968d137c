"""Which ranks moved between two plans, one by one and folded for people."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from placer.base.arrays import IntArray
from placer.placement.launcher_orders import natural_key

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from placer.placement.plan import Plan
    from placer.report.matching import Matching

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
