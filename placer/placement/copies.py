"""Copies of checkpoints on other ranks: whether they leave the domain that may fail.

nvidia-resiliency-ext keeps each rank's local checkpoint on the ranks of its clique,
which lie ``replication_jump`` apart
(``checkpointing/local/replication/group_utils.py``, ``parse_group_sequence``).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from placer.base.errors import InputError

if TYPE_CHECKING:
    from placer.placement.plan import Plan

_COPIES = re.compile(r"([1-9][0-9]{0,6})(?::([1-9][0-9]{0,3}))?")


class Copies(NamedTuple):
    """How far apart the ranks of a clique are, and how many they are."""

    jump: int
    factor: int


def parse_copies(text: str) -> Copies:
    """What ``JUMP`` or ``JUMP:FACTOR`` says."""
    found = _COPIES.fullmatch(text)
    if not found or found[2] == "1":
        message = f'"{text[:40]}" names no copies'
        hint = "write JUMP or JUMP:FACTOR, as 32:2"
        raise InputError(message, key="copies", hint=hint)
    return Copies(int(found[1]), int(found[2] or 2))


def cliques(ranks: int, copies: Copies) -> list[list[int]]:
    """The ranks that keep each other's checkpoints."""
    jump, factor = copies
    if ranks % (jump * factor):
        message = f"{ranks:,} ranks have no cliques of {factor} that lie {jump:,} apart"
        hint = f"{jump} x {factor} must divide the ranks"
        raise InputError(message, key="copies", hint=hint)
    return [
        list(range(block + first, block + jump * factor, jump))
        for block in range(0, ranks, jump * factor)
        for first in range(jump)
    ]


def copy_faults(plan: Plan, copies: Copies) -> list[str]:
    """A sentence where copies share what can fail as one.

    That is the innermost domain above the node of which the plan has several; else the
    node.
    """
    several = [row for row in plan.domains.items() if len({*row[1]}) > 1]
    tier, names = several[0] if several else ("node", plan.nodes)
    where = [names[node] for node in plan.node_of_rank.tolist()]
    shared = _shared(where, copies)
    if not shared:
        return []
    total = len(where) // copies.factor
    jumps = (jump for jump in range(1, total + 1) if total % jump == 0)
    good = (j for j in jumps if not _shared(where, Copies(j, copies.factor)))
    other = next((f"; {jump:,} apart they do not" for jump in good), "")
    ranks = ", ".join(map(str, shared[0][:4]))
    return [
        f"copies {copies.jump:,} apart share a {tier}: {len(shared):,} of {total:,} "
        f"cliques, the first is of ranks {ranks}{other}"
    ]


def _shared(where: Sequence[str], copies: Copies) -> list[list[int]]:
    """The cliques of which two ranks are in one place."""
    groups = cliques(len(where), copies)
    return [group for group in groups if len({where[r] for r in group}) < len(group)]
