"""Pack parts of several sizes into the tree: an exact program on counts, by CP-SAT.

Parts with the same make-up (size, and the same parts of inner tiers inside) are equal,
so the model only counts how many of each kind every domain holds.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from ortools.sat.python import cp_model

from placer.solve.count.engine import cp_sat
from placer.solve.tree.capacity import parent_of_domain

if TYPE_CHECKING:
    from placer.solve.problem.colocation import Parts
    from placer.topology.model import Topology

IntArray = npt.NDArray[np.int64]
# Work after which the search for a packing is given up, in CP-SAT's deterministic
# seconds.
WORK_LIMIT = 30.0


@dataclass(frozen=True, order=True)
class Kind:
    """A sort of part: its ranks, and how many parts of each inner kind it has."""

    size: int
    inside: tuple[tuple[Kind, int], ...] = ()

    def count(self, kind: Kind) -> int:
        """Parts of ``kind`` inside."""
        return dict(self.inside).get(kind, 0)


# How many parts of a kind each domain of a tier holds.
Held = dict[tuple[int, Kind], cp_model.IntVar]


def packs(topology: Topology, parts: Parts, capacity_of_node: IntArray) -> bool:
    """Whether a packing exists; False also when none is found within the work limit."""
    return pack(topology, parts, capacity_of_node) is not None


def pack(
    topology: Topology, parts: Parts, capacity_of_node: IntArray
) -> IntArray | None:
    """Node of every rank with every part in one domain of its tier, or None."""
    kinds = _kinds(parts)
    counts = _solve(topology, kinds, capacity_of_node)
    return None if counts is None else _deal(topology, parts, kinds, counts)


def _kinds(parts: Parts) -> list[list[Kind]]:
    """Kind of every part of each tier."""
    kinds = [[Kind(int(size)) for size in parts.sizes(0)]]
    for t in range(1, len(parts.label)):
        below = kinds[-1]
        kinds.append(
            [
                Kind(
                    sum(below[child].size for child in inside),
                    tuple(sorted(Counter(below[child] for child in inside).items())),
                )
                for inside in _children(parts, t)
            ]
        )
    return kinds


def _children(parts: Parts, tier: int) -> list[list[int]]:
    """Parts of the tier below inside each part of ``tier``."""
    _, first = np.unique(parts.label[tier - 1], return_index=True)
    inside: list[list[int]] = [[] for _ in range(int(parts.label[tier].max()) + 1)]
    for child, rank in enumerate(first):
        inside[int(parts.label[tier][rank])].append(child)
    return inside


Counts = list[dict[tuple[int, Kind], int]]


def _solve(
    topology: Topology, kinds: list[list[Kind]], capacity: IntArray
) -> Counts | None:
    """How many parts of each kind every domain of each tier holds."""
    model = cp_model.CpModel()
    held = []
    for t in range(len(topology.tiers)):
        number = Counter(kinds[t])
        domains = range(int(topology.domain_of_node[t].max()) + 1)
        held.append(
            {
                (domain, kind): model.new_int_var(0, count, "")
                for domain in domains
                for kind, count in number.items()
            }
        )
        for kind, count in number.items():
            model.add(sum(held[t][domain, kind] for domain in domains) == count)
    for node, room in enumerate(capacity):
        ranks = sum(kind.size * held[0][node, kind] for kind in sorted(set(kinds[0])))
        model.add(ranks <= int(room))
    for t in range(1, len(topology.tiers)):
        _balance(model, parent_of_domain(topology, t), held[t - 1], held[t])
    solver = cp_sat(WORK_LIMIT)
    if solver.solve(model) not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return None
    return [
        {key: solver.value(variable) for key, variable in tier.items()} for tier in held
    ]


def _balance(
    model: cp_model.CpModel, parent: IntArray, below: Held, held: Held
) -> None:
    """The parts inside a domain's parts are the parts inside its children.

    ``held`` has the domains of a tier, ``below`` those of the tier below; ``parent``
    gives the domain that holds each of these.
    """
    inner, outer = ({kind for _, kind in tier} for tier in (below, held))
    for domain in range(int(parent.max()) + 1):
        children = np.flatnonzero(parent == domain).tolist()
        for kind in sorted(inner):
            wanted = sum(
                whole.count(kind) * held[domain, whole] for whole in sorted(outer)
            )
            model.add(sum(below[child, kind] for child in children) == wanted)


def _deal(
    topology: Topology, parts: Parts, kinds: list[list[Kind]], counts: Counts
) -> IntArray:
    """Counts dealt out from the outermost tier in: which part goes where."""
    last = len(topology.tiers) - 1
    home = [0] * len(kinds[last])
    for t in range(last, 0, -1):
        parent = parent_of_domain(topology, t)
        room = dict(counts[t - 1])
        below = [0] * len(kinds[t - 1])
        for part, inside in enumerate(_children(parts, t)):
            for child in inside:
                kind = kinds[t - 1][child]
                domain = next(
                    int(d)
                    for d in np.flatnonzero(parent == home[part])
                    if room[int(d), kind]
                )
                room[domain, kind] -= 1
                below[child] = domain
        home = below
    node_of_rank: IntArray = np.array(home, dtype=np.int64)[parts.label[0]]
    return node_of_rank
