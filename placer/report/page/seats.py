"""The machine of a report as a tree of domains, and the GPU of every rank in it.

Shapes: N nodes, R ranks of a side, L levels: the nodes, then each tier around them.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from placer.base.arrays import IntArray
from placer.draw.machine_view import short_names
from placer.placement.launcher_orders import natural_key

if TYPE_CHECKING:
    from placer.placement.plan import Plan
    from placer.report.moves import Matching
    from placer.report.page.side import Side

Path = tuple[str, ...]

NOWHERE = -1


def encoded(values: npt.ArrayLike) -> str:
    """Whole numbers as base64 of 32 bits each, little end first."""
    return b64encode(np.asarray(values, dtype="<i4").tobytes()).decode()


@dataclass(frozen=True, eq=False)
class Shown:
    """The part of the machine that a report draws."""

    # Length L: names of the tiers, the node first, without the whole machine.
    levels: list[str]
    # Names of the domains of each level, nodes by domain and name.
    names: list[list[str]]
    # Length L: index in the next level of each domain; the last level has none.
    parents: list[IntArray]
    gpus: IntArray  # (N,): GPUs of each node
    left_out: int  # nodes not drawn: no rank is near them

    def seats(self, plan: Plan) -> IntArray:
        """GPU of each rank of a plan, counted over all nodes; shape (R,)."""
        at = {name: i for i, name in enumerate(self.names[0])}
        first = np.concatenate(([0], np.cumsum(self.gpus)))
        node = np.array([at[name] for name in plan.nodes], dtype=np.int64)
        seats: IntArray = first[node[plan.node_of_rank]] + plan.gpu_of_rank
        return seats

    def domain_of_node(self, level: int) -> IntArray:
        """Domain of each node at a level; shape (N,)."""
        inside = np.arange(len(self.names[0]))
        for parent in self.parents[:level]:
            inside = parent[inside]
        return inside

    def to_dict(self) -> dict[str, Any]:
        """What the page's scripts read, whole numbers as `encoded`.

        Hosts keep their names; where those of a level are shortened, ``full`` has them.
        """
        short = [
            short_names(names, level)
            for level, names in zip(self.levels[1:], self.names[1:], strict=True)
        ]
        short = [self.names[0], *short]
        return {
            "levels": self.levels,
            "names": short,
            "full": [
                names if names != shown else None
                for names, shown in zip(self.names, short, strict=True)
            ],
            "parents": [encoded(row) for row in self.parents],
            "gpus": encoded(self.gpus),
        }


def shown(sides: Sequence[Side]) -> Shown:
    """The nodes that any side uses, and the free ones beside them in their domains."""
    levels = _levels([side.plan for side in sides])
    places, left_out = _places(sides, levels)
    nodes = sorted(places, key=lambda node: _order(places[node], node))
    names, parents = _tree(nodes, places, len(levels))
    return Shown(levels, names, parents, _gpus(sides, nodes), left_out)


def partners(matching: Matching, new_size: int) -> str:
    """New rank of the work of each old rank, `NOWHERE` for none; empty if the same."""
    old_size = int(matching.old_rank.max()) + 1 if len(matching.old_rank) else 0
    if matching.old is not None:
        old_size = matching.old.world_size
    found = np.full(old_size, NOWHERE)
    found[matching.old_rank] = matching.new_rank
    if old_size == new_size and (found == np.arange(old_size)).all():
        return ""
    return encoded(found)


def _levels(plans: Sequence[Plan]) -> list[str]:
    """The node and the tiers around it that all plans name, innermost first."""
    tiers = plans[0].outer_tiers
    around = [t for t in tiers[1:] if all(t in plan.domains for plan in plans)]
    return [tiers[0] if tiers else "node", *around]


def _places(
    sides: Sequence[Side], levels: Sequence[str]
) -> tuple[dict[str, Path], int]:
    """Domains of every node to show, outermost first, and the nodes left out."""
    places: dict[str, Path] = {}
    for side in sides:
        plan = side.plan
        rows = [plan.domains[tier] for tier in reversed(levels[1:])]
        places |= dict(
            zip(plan.nodes, zip(*rows, strict=True), strict=True)
            if rows
            else ((node, ()) for node in plan.nodes)
        )
    used = set(places.values())
    left_out = 0
    for node, path in _free_places(sides, levels):
        if node in places:
            continue
        if path in used:
            places[node] = path
        else:
            left_out += 1
    return places, left_out


def _free_places(
    sides: Sequence[Side], levels: Sequence[str]
) -> list[tuple[str, Path]]:
    """Every node of the newest machine that is known, with its domains."""
    machines = [side.inputs.machine for side in sides if side.inputs is not None]
    if not machines:
        return []
    machine = machines[-1]
    known = [tier.name for tier in machine.tiers]
    if not all(tier in known for tier in levels[1:]):
        return []
    rows = [known.index(tier) for tier in reversed(levels[1:])]
    names = [
        [machine.domain_names[t][d] for d in machine.domain_of_node[t].tolist()]
        for t in rows
    ]
    paths = zip(*names, strict=True) if names else iter([()] * machine.num_nodes)
    return list(zip(machine.node_names, paths, strict=True))


def _order(path: Path, node: str) -> list[Any]:
    return [natural_key(name) for name in (*path, node)]


def _gpus(sides: Sequence[Side], nodes: Sequence[str]) -> IntArray:
    """GPUs of each node: those of the machine, or as many as ranks need; shape (N,)."""
    most: dict[str, int] = {}
    for side in sides:
        if side.inputs is not None:
            machine = side.inputs.machine
            for node, index in zip(
                machine.node_of_gpu.tolist(), machine.index_of_gpu.tolist(), strict=True
            ):
                name = machine.node_names[node]
                most[name] = max(most.get(name, 0), index + 1)
        for name, index in zip(
            side.plan.host_of_rank, side.plan.gpu_of_rank.tolist(), strict=True
        ):
            most[name] = max(most.get(name, 0), index + 1)
    return np.array([most[node] for node in nodes], dtype=np.int64)


def _tree(
    nodes: Sequence[str], places: Mapping[str, Path], num_levels: int
) -> tuple[list[list[str]], list[IntArray]]:
    """Names of the domains of each level, and their parents."""
    names = [list(nodes)]
    parents: list[IntArray] = []
    inside = np.arange(len(nodes))
    paths = [places[node] for node in nodes]
    for level in range(1, num_levels):
        cut = [path[: num_levels - level] for path in paths]
        seen = {path: i for i, path in enumerate(dict.fromkeys(cut))}
        names.append([path[-1] for path in seen])
        of_node = np.array([seen[path] for path in cut])
        parent = np.empty(int(inside.max()) + 1, dtype=np.int64)
        parent[inside] = of_node
        parents.append(parent)
        inside = of_node
    return names, parents
