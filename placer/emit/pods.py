"""What requests for alike pods, one a node, have in common whatever the scheduler."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from placer.base.errors import EmitError
from placer.emit.domains import innermost_shared

if TYPE_CHECKING:
    from collections.abc import Sequence

    from placer.emit.domains import TierDomains
    from placer.emit.nodes import NodeRanks


def usage(what: str, scheduler: str, nodes: Sequence[NodeRanks], to_do: str) -> str:
    """Comment that opens a request: what it is, and what its reader has to do."""
    text = (
        f"For the next submission: {what} with which {scheduler} gives nodes like the "
        f"plan's to {len(nodes)} pods, one a node of {nodes[0].reach} GPUs. "
        f"{to_do}{' ' * bool(to_do)}The job gets other nodes: place it on those, then "
        "emit its launch files."
    )
    lines = textwrap.wrap(text, 88, initial_indent="# ", subsequent_indent="# ")
    return "".join(f"{line}\n" for line in lines)


def shared_and_slices(
    tiers: Sequence[TierDomains],
) -> tuple[TierDomains | None, list[TierDomains]]:
    """The tier on which all nodes are together, and those below to cut slices by.

    A tier that asks for no more than the one inside it is left out, and one whose
    slices do not hold whole slices of that (Kueue refuses it).
    """
    shared = innermost_shared(tiers)
    slices: list[TierDomains] = []
    inner = 1
    for tier in tiers[: tiers.index(shared)] if shared else tiers:
        if tier.slice > inner and tier.slice % inner == 0:
            slices.append(tier)
            inner = tier.slice
    return shared, slices


def left_open(tiers: Sequence[TierDomains], said: Sequence[TierDomains | None]) -> str:
    """Comments on what the annotations do not say of the domains."""
    if not tiers:
        return "# Not said: the plan names no tier between node and cluster.\n"
    text = ""
    inner = 1
    for tier in tiers:
        least, most = min(tier.counts), max(tier.counts)
        if len(tier.names) == 1:
            break
        if least < most or (tier not in said and most > inner):
            text += f"# Not said: {tier.described}"
            text += f"; each {tier.slice} stay together.\n" if tier in said else ".\n"
        inner = most
    return text


def require_alike(nodes: Sequence[NodeRanks]) -> None:
    """Nothing, when every node must have as many GPUs as the others."""
    counts = {node.reach for node in nodes}
    if len(counts) > 1:
        raise EmitError(
            f"pods of one request are alike, but nodes need {min(counts)} to "
            f"{max(counts)} GPUs; no annotation says that"
        )
