"""Bandwidths, latencies and GPUs a node: taken from a machine of the same kind.

No format of this package says how fast a link is, so the tiers of a named topology (a
preset or a file) are used for the levels found:

* the node is its node;
* scale-up levels take its scale-up tiers, the outermost from the outermost, with its
  name;
* scale-out levels take its scale-out tiers, innermost from innermost, and the whole
  machine its outermost; when it has fewer tiers than levels, the last serves again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from placer.errors import InputError, Problem

if TYPE_CHECKING:
    from placer.readers.layers import Layer
    from placer.topology.model import Tier, Topology


def tiers(levels: Sequence[Layer], hardware: Topology) -> tuple[list[Tier], list[str]]:
    """Tiers for the node and for ``levels``, innermost first, and where each is from.

    The last level is the whole machine.

    Raises
    ------
    InputError
        If ``hardware`` has no NVLink between nodes, or no scale-out tier, where the
        sources ask for it.
    """
    split = hardware.scale_up_tier + 1
    node, *scale_up = hardware.tiers[: max(1, split)]
    scale_out = hardware.tiers[max(1, split) :]
    inside = [level for level in levels if level.scale_up]
    outside = [level for level in levels if not level.scale_up]
    _check(inside, scale_up, outside, scale_out, hardware.name)
    chosen = [node]
    chosen += [scale_up[max(0, i)] for i in _from_end(len(inside), len(scale_up))]
    chosen += [
        scale_out[-1 if i == len(outside) - 1 else min(i, len(scale_out) - 1)]
        for i in range(len(outside))
    ]
    names = [node.name, *(level.name for level in levels)]
    if inside:
        names[len(inside)] = scale_up[-1].name
    names = _different(names)
    sources = [
        f"tier {name}: figures of {tier.name} of {hardware.name}"
        for name, tier in zip(names, chosen, strict=True)
    ]
    named = [replace(t, name=n) for t, n in zip(chosen, names, strict=True)]
    return named, sources


def _from_end(wanted: int, given: int) -> range:
    """Positions in ``given`` for ``wanted`` tiers, the last from the last."""
    return range(given - wanted, given)


def _check(
    inside: Sequence[Layer],
    scale_up: Sequence[Tier],
    outside: Sequence[Layer],
    scale_out: Sequence[Tier],
    name: str,
) -> None:
    hint = 'choose another: "placer topo list" shows presets, or give a file'
    for levels, tiers, what in (
        (inside, scale_up, "no NVLink between nodes"),
        (outside, scale_out, "no scale-out tier"),
    ):
        if levels and not tiers:
            message = f"{name} has {what}, but {levels[0].label} needs it"
            raise InputError([Problem(message, key="hardware", hint=hint)])


def _different(names: Sequence[str]) -> list[str]:
    """The names, a number added where one comes again."""
    found: list[str] = []
    for name in names:
        number, free = 1, name
        while free in found:
            number += 1
            free = f"{name}-{number}"
        found.append(free)
    return found
