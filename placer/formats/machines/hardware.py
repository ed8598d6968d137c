"""Bandwidths, latencies and GPUs a node: taken from a machine of the same kind.

Few formats of this package say how fast a link is, so the tiers of a named topology (a
preset or a file) are used for the levels found:

* the node and what is inside it are its node (see `placer.formats.machines.inside`);
* scale-up levels take its scale-up tiers, the outermost from the outermost, with its
  name;
* scale-out levels take its scale-out tiers, innermost from innermost, and the whole
  machine its outermost; when it has fewer tiers than levels, the last serves again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import inf

from placer.base.errors import InputError, Problem, refuse
from placer.documents import closest
from placer.documents.scalars import visible
from placer.formats.machines.findings import Findings
from placer.formats.machines.inside import Inside
from placer.formats.machines.layers import Layer
from placer.topology.model import Tier, Topology
from placer.topology.tiers import NODE


def tiers(
    levels: Sequence[Layer],
    hardware: Topology,
    node: Inside,
    findings: Sequence[Findings] = (),
) -> tuple[list[Tier], list[str]]:
    """Tiers of ``node`` and for ``levels``, innermost first, and where each is from.

    The last level is the whole machine. Bandwidths that ``findings`` measured replace
    those of the hardware.
    """
    split = hardware.scale_up_tier + 1
    scale_up = hardware.tiers[1 : max(1, split)]
    scale_out = hardware.tiers[max(1, split) :]
    inside = [level for level in levels if level.scale_up]
    outside = [level for level in levels if not level.scale_up]
    _check(inside, scale_up, outside, scale_out, hardware.name)
    if inside and not node.tiers[-1].scale_up:
        message = f"{inside[0].label} shares NVLink, the GPUs of a node do not"
        raise InputError([Problem(message, inside[0].source)])
    # The last from the last.
    above = len(scale_up) - len(inside)
    chosen = [scale_up[max(0, above + i)] for i in range(len(inside))]
    chosen += [
        scale_out[-1 if i == len(outside) - 1 else min(i, len(scale_out) - 1)]
        for i in range(len(outside))
    ]
    names = [level.name for level in levels]
    if inside:
        names[len(inside) - 1] = scale_up[-1].name
    own = [tier.name for tier in node.tiers]
    if NODE in names:
        own[-1] = NODE
    names = _different([*own, *names])
    words = [
        *node.figures,
        *(f"figures of {tier.name} of {hardware.name}" for tier in chosen),
    ]
    sources = [f"tier {n}: {w}" for n, w in zip(names, words, strict=True)]
    kept = [
        replace(t, apart=level.apart) for t, level in zip(chosen, levels, strict=True)
    ]
    tiers = [*node.tiers, *kept]
    named = [replace(t, name=n) for t, n in zip(tiers, names, strict=True)]
    return _measured(named, levels, findings, sources), sources


def oversubscribed(
    tiers: Sequence[Tier], ratios: Mapping[str, float], sources: list[str]
) -> list[Tier]:
    """The tiers with ratios that are given for some by name; ``sources`` says so."""
    names = [tier.name for tier in tiers]
    key = "oversubscription"
    refuse(
        Problem(
            f"there is no tier {visible(name)} above {names[0]}",
            key=key,
            hint=closest(name, names[1:]) or f"tiers: {', '.join(names[1:])}",
        )
        for name in ratios
        if name not in names[1:]
    )
    refuse(
        Problem(f"{name}: expected more than 0, got {ratio:g}", key=key)
        for name, ratio in ratios.items()
        if not 0 < ratio < inf
    )
    sources += [
        f"tier {n}: oversubscription {r:g}, as given" for n, r in ratios.items()
    ]
    return [
        replace(tier, oversubscription=float(ratios[tier.name]))
        if tier.name in ratios
        else tier
        for tier in tiers
    ]


def _measured(
    named: Sequence[Tier],
    levels: Sequence[Layer],
    findings: Sequence[Findings],
    sources: list[str],
) -> list[Tier]:
    """The tiers with measured bandwidths, which long messages reach as they are."""
    node = next((f for f in findings if f.node_bandwidth is not None), None)
    of_islands = len(named) - len(levels) - 1
    given = [
        *[(None, "")] * of_islands,
        (node.node_bandwidth, node.source) if node else (None, ""),
        *((level.bandwidth, level.source) for level in levels),
    ]
    found = []
    for tier, (bandwidth, source) in zip(named, given, strict=True):
        if bandwidth is None:
            found.append(tier)
            continue
        found.append(replace(tier, bandwidth=bandwidth, efficiency=1.0))
        sources.append(f"tier {tier.name}: bandwidth as measured, {visible(source)}")
    return found


def _check(
    inside: Sequence[Layer],
    scale_up: Sequence[Tier],
    outside: Sequence[Layer],
    scale_out: Sequence[Tier],
    name: str,
) -> None:
    hint = 'choose another: "placer topology list" shows presets, or give a file'
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
