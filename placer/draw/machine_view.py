"""A machine as nested domains, known from the plans that use it.

Shapes: L levels, N nodes that are shown, R ranks of a plan.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from placer.base.arrays import IntArray
from placer.base.errors import InputError
from placer.placement.launcher_orders import natural_key
from placer.placement.plan import Plan

_LONG, _SHORT = 16, 12  # characters of a name that is shortened, and of one that is not
_PARTS = re.compile(r"[-._/:]|[^-._/:]+")


def short_names(names: Sequence[str], noun: str) -> list[str]:
    """The names, or what differs between them, or numbers where that is long as well.

    Different names stay different.

    ``names``: those of one tier, in the order in which they are numbered. ``noun``: the
    tier.
    """
    different = list(dict.fromkeys(names))
    if max(map(len, different), default=0) <= _LONG:
        return list(names)
    parts = [_PARTS.findall(name) for name in different]
    start = _alike(parts)
    end = _alike([row[start:][::-1] for row in parts])
    middle = ["".join(row[start : len(row) - end]).strip("-._/:") for row in parts]
    is_told = len(set(middle)) == len(different) and all(
        0 < len(text) <= _SHORT for text in middle
    )
    if not is_told:
        middle = [str(number) for number in range(1, len(different) + 1)]
    shown = [f"{noun} {text}" if text.isdecimal() else text for text in middle]
    short = dict(zip(different, shown, strict=True))
    return [short[name] for name in names]


def _alike(rows: Sequence[Sequence[str]]) -> int:
    """How many parts at the start all rows have in common."""
    columns = zip(*rows, strict=False)
    same = [len(set(column)) == 1 for column in columns]
    return same.index(False) if False in same else len(same)


_MOST_NAMED = 4


@dataclass(frozen=True, eq=False)
class MachineView:
    """Domains around nodes, and the ranks of one plan in them."""

    plan: Plan
    # Tiers whose domains are known, the node first, the machine last.
    levels: tuple[str, ...]
    # ``names[l][d]``: name of domain ``d`` of level ``l``; domains in the order of
    # their names, numbers as numbers, inside the domain that encloses them.
    names: tuple[tuple[str, ...], ...]
    # ``parents[l][d]``: domain of level ``l + 1`` that encloses domain ``d``.
    parents: tuple[IntArray, ...]
    node_of_rank: IntArray  # (R,): domain of the first level

    @cached_property
    def domain_of_node(self) -> IntArray:
        """Domain of every node at each level; shape (L, N)."""
        rows = [np.arange(len(self.names[0]))]
        for parent in self.parents:
            rows.append(parent[rows[-1]])
        return np.stack(rows)

    @cached_property
    def domain_of_rank(self) -> IntArray:
        """Domain of every rank at each level; shape (L, R)."""
        return self.domain_of_node[:, self.node_of_rank]

    @cached_property
    def scale_up_level(self) -> int:
        """Index of the outermost level of NVLink; -1 without one."""
        tiers = list(self.plan.topology.get("tiers", ()))
        inside = set(tiers[: self.plan.topology.get("scale_up", 0)])
        found = [i for i, name in enumerate(self.levels) if name in inside]
        return max(found, default=-1)

    @cached_property
    def short(self) -> tuple[list[str], ...]:
        """Names to write on a picture, as `names` has them; hosts keep their own."""
        return (
            list(self.names[0]),
            *(
                short_names(names, level)
                for level, names in zip(self.levels[1:], self.names[1:], strict=True)
            ),
        )

    def panel_name(self, level: int, domain: int) -> str:
        """What is written over the box of a domain: ``block b01``.

        Where several are called so, with those around it: ``block p1/b01``.
        """
        tier, name = self.levels[level], self.short[level][domain]
        if self.short[level].count(name) > 1:
            name = self.path(level, domain)
        return name if name.startswith(f"{tier} ") else f"{tier} {name}"

    def path(self, level: int, domain: int) -> str:
        """Names from the outside in: ``b01/r012``; the machine has no part in it."""
        parts: list[str] = []
        while level < len(self.levels) - 1:
            parts.append(self.names[level][domain])
            domain = int(self.parents[level][domain])
            level += 1
        return "/".join(reversed(parts))

    def find(self, wanted: str) -> tuple[int, int]:
        """Level and domain that ``wanted`` names, such as ``r012``, ``b1/r012``."""
        tier, equals, rest = wanted.partition("=")
        found = [
            (level, domain)
            for level, own in enumerate(self.levels[:-1])
            for domain in range(len(self.names[level]))
            if f"/{self.path(level, domain)}".endswith(
                f"/{rest if equals and tier == own else wanted}"
            )
        ]
        if len(found) == 1:
            return found[0]
        if not found:
            example = self.path(max(len(self.levels) - 2, 0), 0)
            message = f'no domain with ranks is called "{wanted}"'
            hint = f"there is for example {example}"
        else:
            message = f'{len(found)} domains are called "{wanted}"'
            shown = [
                f"{self.levels[level]}={self.path(level, domain)}"
                for level, domain in found[:_MOST_NAMED]
            ]
            hint = f"say which: {', '.join(shown)}"
        raise InputError(message, key="zoom", hint=hint)


Path = tuple[str, ...]


def machine_view(plan: Plan) -> MachineView:
    """The domains of a plan's nodes."""
    return machine_views([plan])[0][0]


def machine_views(
    plans: Sequence[Plan],
    others: Callable[[Sequence[str]], Iterable[Path]] | None = None,
) -> tuple[list[MachineView], int]:
    """Each plan on one machine: all their nodes, and free ones beside them.

    The last number counts the nodes left out, as no rank is in their domain.

    ``others``: names of the domains of each node of the machine, outermost first, the
    node itself last, for the levels between machine and node that it is given.
    """
    tiers = plans[0].outer_tiers or ["node", *plans[0].domains, "machine"]
    if len(tiers) < 2:
        tiers.append("machine")
    inner = [t for t in tiers[1:-1] if all(t in plan.domains for plan in plans)]
    rows = [[*(plan.domains[t] for t in inner[::-1]), plan.nodes] for plan in plans]
    # A node that is elsewhere in another plan is where the last plan has it.
    paths = {path[-1]: path for own in rows for path in zip(*own, strict=True)}
    used = {path[:-1] for path in paths.values()}
    free = [path for path in (others(inner) if others else ()) if path[-1] not in paths]
    paths |= {path[-1]: path for path in free if path[:-1] in used}
    left_out = sum(path[:-1] not in used for path in free)
    levels = (tiers[0], *inner, tiers[-1])
    names, parents = _tree([*paths.values()], str(plans[0].topology["name"]))
    at = {name: node for node, name in enumerate(names[0])}
    nodes = [np.array([at[n] for n in p.nodes])[p.node_of_rank] for p in plans]
    found = zip(plans, nodes, strict=True)
    return [MachineView(p, levels, names, parents, own) for p, own in found], left_out


def _tree(
    paths: Sequence[Path], machine: str
) -> tuple[tuple[tuple[str, ...], ...], tuple[IntArray, ...]]:
    """Names of the domains of each level, and the parents of those below the last."""
    names: list[tuple[str, ...]] = [(machine,)]
    parents: list[IntArray] = []
    around: dict[Path, int] = {(): 0}
    for depth in range(1, len(paths[0]) + 1):
        own = sorted(
            {path[:depth] for path in paths},
            key=lambda path: (around[path[:-1]], natural_key(path[-1])),
        )
        parents.insert(0, np.array([around[path[:-1]] for path in own], dtype=np.int64))
        names.insert(0, tuple(path[-1] for path in own))
        around = {path: index for index, path in enumerate(own)}
    return tuple(names), tuple(parents)
