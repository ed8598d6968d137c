"""A plan's machine as nested domains, known from the plan alone.

Shapes: L levels, N nodes, R ranks, G groups.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from placer.base.arrays import IntArray
from placer.base.errors import InputError
from placer.placement.launcher_orders import natural_key

if TYPE_CHECKING:
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
    """The domains that hold ranks."""

    plan: Plan
    # Tiers whose domains the plan names, the node first, the machine last.
    levels: tuple[str, ...]
    # ``names[l][d]``: name of domain ``d`` of level ``l``; domains in the order of
    # their names, numbers as numbers, inside the domain that encloses them.
    names: tuple[tuple[str, ...], ...]
    domain_of_node: IntArray  # (L, N)

    @cached_property
    def domain_of_rank(self) -> IntArray:
        """Domain of every rank at each level; shape (L, R)."""
        return self.domain_of_node[:, self.plan.node_of_rank]

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
        """What is written over the box of a domain: ``block b01``."""
        tier, name = self.levels[level], self.short[level][domain]
        return name if name.startswith(f"{tier} ") else f"{tier} {name}"

    def parent_of(self, level: int) -> IntArray:
        """Domain of level ``level + 1`` that encloses each domain of ``level``."""
        parent = np.zeros(len(self.names[level]), dtype=np.int64)
        parent[self.domain_of_node[level]] = self.domain_of_node[level + 1]
        return parent

    def path(self, level: int, domain: int) -> str:
        """Names from the outside in: ``b01/r012``; the machine has no part in it."""
        parts: list[str] = []
        while level < len(self.levels) - 1:
            parts.append(self.names[level][domain])
            domain = int(self.parent_of(level)[domain])
            level += 1
        return "/".join(reversed(parts))

    def find(self, wanted: str) -> tuple[int, int]:
        """Level and domain that ``wanted`` names, such as ``r012``, ``b1/r012``."""
        found = list(self._called(wanted))
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

    def _called(self, wanted: str) -> Iterator[tuple[int, int]]:
        tier, equals, rest = wanted.partition("=")
        for level in range(len(self.levels) - 1):
            name = rest if equals and tier == self.levels[level] else wanted
            last = name.rpartition("/")[2]
            for domain, own in enumerate(self.names[level]):
                if own in (last, name) and self._ends(level, domain, name):
                    yield level, domain

    def _ends(self, level: int, domain: int, name: str) -> bool:
        return f"/{self.path(level, domain)}".endswith(f"/{name}")


def machine_view(plan: Plan) -> MachineView:
    """The domains that a plan names."""
    tiers = plan.outer_tiers or ["node", *plan.domains]
    if len(tiers) < 2:
        tiers.append("machine")
    inner = [tier for tier in tiers[1:-1] if tier in plan.domains]
    levels = (tiers[0], *inner, tiers[-1])
    num_nodes = len(plan.nodes)
    rows = np.zeros((len(levels), num_nodes), dtype=np.int64)
    names: list[tuple[str, ...]] = [()] * len(levels)
    names[-1] = (str(plan.topology["name"]),)
    for level in range(len(levels) - 2, -1, -1):
        own = plan.domains[levels[level]] if level else plan.nodes
        known = set(zip(rows[level + 1].tolist(), own, strict=True))
        order = sorted(known, key=lambda item: (item[0], natural_key(item[1])))
        index = {item: i for i, item in enumerate(order)}
        rows[level] = [
            index[item] for item in zip(rows[level + 1].tolist(), own, strict=True)
        ]
        names[level] = tuple(name for _, name in order)
    return MachineView(plan, levels, tuple(names), rows)
