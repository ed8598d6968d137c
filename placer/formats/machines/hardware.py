"""Bandwidths, latencies and GPUs a node: taken from a machine of the same kind.

Few formats of this package say how fast a link is, so the tiers of a named topology (a
preset or a file) are used for the levels found:

* the node and what is inside it are its node (`inside_of`);
* scale-up levels take its scale-up tiers, the outermost from the outermost, with its
  name;
* scale-out levels take its scale-out tiers, innermost from innermost, and the whole
  machine its outermost; when it has fewer tiers than levels, the last serves again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf, prod

import numpy as np

from placer.base.arrays import IntArray
from placer.base.errors import InputError, Problem, refuse
from placer.base.units import counted
from placer.documents import closest
from placer.documents.scalars import visible
from placer.formats.machines.combine import Layer
from placer.formats.machines.findings import Findings
from placer.formats.machines.islands import Parts, Pcie
from placer.topology.affinity import Affinity, gpu_words
from placer.topology.islands import Islands
from placer.topology.model import Tier, Topology
from placer.topology.tiers import NODE

ISLAND = "island"


@dataclass(frozen=True)
class Inside:
    """The tiers up to the node, and what a node is made of."""

    tiers: tuple[Tier, ...]  # innermost first; the last is the node
    figures: tuple[str, ...]  # where the figures of each are from
    # sizes and members: as in `placer.topology.model.Islands`; none where a node has no
    # islands.
    sizes: tuple[int, ...] = ()
    members: tuple[int, ...] = ()
    affinity: Affinity = field(default_factory=Affinity)
    notes: tuple[str, ...] = ()  # what a user should know

    @property
    def gpus(self) -> int:
        """GPUs of a node of islands; 0 where a node has none."""
        return prod(self.sizes) if self.sizes else 0

    def islands(self, tiers: Sequence[Tier], gpus: IntArray) -> Islands | None:
        """The islands of nodes with so many GPUs, which have all of them or none."""
        if not self.sizes:
            return None
        whole = np.where(gpus > 0, self.sizes[0], 0)
        of_island = np.repeat(whole[:, np.newaxis], prod(self.sizes[1:]), axis=1)
        return Islands(tuple(tiers), self.sizes, of_island, self.members)

    def unlike(self, gpus: int) -> str:
        """Why a node of so many GPUs must not be used; empty when it may."""
        if not self.sizes or gpus in (0, self.gpus):
            return ""
        return f"{counted(gpus, 'GPU')} where others have {self.gpus} in islands"


def inside_of(findings: Sequence[Findings], hardware: Topology) -> Inside:
    """What sources and hardware together say of the inside of a node.

    Islands that a source shows take the figures of the hardware's own, or, where it has
    none, of its node, which NVLink joins. What leads from island to island then is the
    PCIe that a source tells, or takes the figures of the hardware's first scale-out
    tier. Where no source tells how GPUs are joined, the hardware does. Of what is near
    each GPU the first that a source tells counts, else the hardware's.
    """
    told = [found for found in findings if found.nvlink is not None]
    for found in told:
        _check_inside(found, told[0], hardware)
    near = [*(found.affinity for found in findings), hardware.affinity]
    affinity = Affinity(
        next((one.numa for one in near if one.numa), ()),
        next((one.nics for one in near if one.nics), ()),
    )
    return replace(_found(told, hardware) or _as_on(hardware), affinity=affinity)


def _check_inside(found: Findings, first: Findings, hardware: Topology) -> None:
    """Refuse GPUs that are joined in another way elsewhere."""
    own, name, key = hardware.islands, hardware.name, "hardware"
    nvlink = (own.tiers[0] if own else hardware.tiers[0]).scale_up
    hint = "give hardware of the same kind of nodes"
    if found.nvlink != nvlink:
        message = f"NVLink or XGMI joins the GPUs of a node, on {name} none does"
        if nvlink:
            message = "the GPUs of a node have no NVLink or XGMI, "
            message += f"on {name} they have"
    elif found.islands != first.islands:
        key, hint = "", "correct a source, or leave one out"
        message = (
            f"{_words(found.islands)} by NVLink or XGMI here, "
            f"{_words(first.islands)} in {first.source}"
        )
    elif nvlink and own and not found.islands and not hardware.tiers[0].scale_up:
        message = (
            f"NVLink or XGMI joins all GPUs of a node, on {name} those of an "
            f"{own.tiers[0].name} only"
        )
    else:
        return
    raise InputError(message, found.source, key=key, hint=hint)


def _words(islands: Parts) -> str:
    if not islands:
        return "all GPUs of a node are joined"
    return f"islands {'; '.join(map(gpu_words, islands))} are joined"


def _figures(tiers: Iterable[Tier], hardware: Topology) -> tuple[str, ...]:
    """Where the figures of tiers of the hardware are from."""
    return tuple(f"figures of {tier.name} of {hardware.name}" for tier in tiers)


def _as_on(hardware: Topology) -> Inside:
    """The inside of the hardware's nodes."""
    own, node = hardware.islands, hardware.tiers[0]
    if not own:
        return Inside((node,), _figures((node,), hardware))
    tiers = (*own.tiers, node)
    return Inside(tiers, _figures(tiers, hardware), own.sizes, own.members)


def _found(told: Sequence[Findings], hardware: Topology) -> Inside | None:
    """The islands that sources show; None where they show none."""
    first = next((found for found in told if found.islands), None)
    if not first:
        return None
    own, node = hardware.islands, hardware.tiers[0]
    sizes = len(first.islands[0]), len(first.islands)
    members = tuple(gpu for island in first.islands for gpu in island)
    if own:
        island = [tier for tier in own.tiers if tier.scale_up][-1]
        tiers = replace(island, name=ISLAND), replace(node, name=NODE)
        return Inside(tiers, _figures((island, node), hardware), sizes, members)
    pcie = next((found.pcie for found in told if found.pcie), None)
    between, words, notes = _between(hardware, pcie)
    tiers, figures = (replace(node, name=ISLAND), between), _figures((node,), hardware)
    return Inside(tiers, (*figures, words), sizes, members, notes=notes)


def _between(
    hardware: Topology, pcie: Pcie | None
) -> tuple[Tier, str, tuple[str, ...]]:
    """The node tier around islands of hardware that has none, where from, and notes."""
    inner, outer = hardware.tiers[0], hardware.tiers[hardware.scale_up_tier + 1]
    outer_words = f"{outer.name} of {hardware.name}"
    tier = Tier(
        NODE,
        outer.bandwidth,
        outer.latency,
        scale_up=False,
        oversubscription=1.0,
        efficiency=outer.efficiency,
        distance=outer.distance,
    )
    if pcie:
        tier = replace(
            tier,
            bandwidth=pcie.bandwidth,
            oversubscription=pcie.oversubscription,
            efficiency=pcie.efficiency,
            distance=inner.distance * inner.bandwidth / pcie.bandwidth,
        )
        return tier, f"{pcie.words}; latency of {outer_words}", ()
    note = (
        "no source says how fast GPUs of different islands of a node reach each "
        f"other: taken as fast as {outer_words}"
    )
    return tier, f"bandwidth, efficiency and latency of {outer_words}", (note,)


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
    _check(inside, scale_up, "no NVLink between nodes", hardware.name)
    _check(outside, scale_out, "no scale-out tier", hardware.name)
    if inside and not node.tiers[-1].scale_up:
        message = f"{inside[0].label} shares NVLink, the GPUs of a node do not"
        raise InputError(message, inside[0].source)
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
    words = [*node.figures, *_figures(chosen, hardware)]
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
    given = [(level.bandwidth, level.source) for level in levels]
    given.insert(0, (node.node_bandwidth, node.source) if node else (None, ""))
    inside = len(named) - len(given)
    found = [*named[:inside]]
    for tier, (bandwidth, source) in zip(named[inside:], given, strict=True):
        if bandwidth is None:
            found.append(tier)
            continue
        found.append(replace(tier, bandwidth=bandwidth, efficiency=1.0))
        sources.append(f"tier {tier.name}: bandwidth as measured, {visible(source)}")
    return found


def _check(
    levels: Sequence[Layer], tiers: Sequence[Tier], lacks: str, name: str
) -> None:
    """Refuse levels for which the hardware has no tier."""
    if levels and not tiers:
        message = f"{name} has {lacks}, but {levels[0].label} needs it"
        hint = 'choose another: "placer topology list" shows presets, or give a file'
        raise InputError(message, key="hardware", hint=hint)


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
