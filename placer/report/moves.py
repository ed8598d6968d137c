"""Which ranks moved between two plans, one by one and folded for people."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from placer.placement.plan import Plan
    from placer.report.matching import Matching

IntArray = npt.NDArray[np.int64]


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
    """Ranks of one data parallel replica that went from one domain to another.

    Attributes
    ----------
    replica : int or None
        Data parallel coordinate; None when the plans do not record their axes.
    old, new : str
        Names of the domains.
    nodes, ranks : int
        Nodes that the ranks were on, and how many ranks.
    """

    replica: int | None
    old: str
    new: str
    nodes: int
    ranks: int

    def to_dict(self) -> dict[str, Any]:
        """The fold as plain data."""
        return asdict(self)


def moves(old: Plan, new: Plan, matching: Matching) -> tuple[Move, ...]:
    """Every rank on another GPU than before, ascending by old rank."""
    old_rank, new_rank = _moved(old, new, matching)
    return tuple(
        Move(rank, other, _gpu(old, rank), _gpu(new, other))
        for rank, other in zip(old_rank.tolist(), new_rank.tolist(), strict=True)
    )


def folds(old: Plan, new: Plan, matching: Matching) -> tuple[Fold, ...]:
    """The moves by replica, old and new domain; replicas ascend."""
    old_rank, new_rank = _moved(old, new, matching)
    old_node = old.node_of_rank[old_rank].tolist()
    new_node = new.node_of_rank[new_rank].tolist()
    tier = home_tier(old, new)
    old_home = old.domains.get(tier, old.nodes)
    new_home = new.domains.get(tier, new.nodes)
    replicas: list[int | None] = [None] * len(old_node)
    if matching.old is not None:
        replicas = matching.old.coordinates["dp"][old_rank].tolist()
    nodes: dict[tuple[int | None, str, str], list[int]] = {}
    for replica, here, there in zip(replicas, old_node, new_node, strict=True):
        key = (replica, old_home[here], new_home[there])
        nodes.setdefault(key, []).append(here)
    rows = [
        Fold(*key, nodes=len(set(members)), ranks=len(members))
        for key, members in nodes.items()
    ]
    return tuple(sorted(rows, key=lambda row: row.replica or 0))


def home_tier(old: Plan, new: Plan) -> str:
    """The tier by which moves are folded: the lowest with domains in both plans."""
    for tier in old.topology.get("tiers", old.domains):
        if tier in old.domains and tier in new.domains:
            return str(tier)
    return "node"


def _moved(old: Plan, new: Plan, matching: Matching) -> tuple[IntArray, IntArray]:
    """Old and new ranks whose GPU is another one; each shape (any,)."""
    index = {name: i for i, name in enumerate(old.nodes)}
    same_node = np.array([index.get(name, -1) for name in new.nodes], dtype=np.int64)
    old_rank, new_rank = matching.old_rank, matching.new_rank
    moved = old.node_of_rank[old_rank] != same_node[new.node_of_rank[new_rank]]
    moved |= old.gpu_of_rank[old_rank] != new.gpu_of_rank[new_rank]
    return old_rank[moved], new_rank[moved]


def _gpu(plan: Plan, rank: int) -> str:
    return f"{plan.nodes[plan.node_of_rank[rank]]}:{plan.gpu_of_rank[rank]}"
