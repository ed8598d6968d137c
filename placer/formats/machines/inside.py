"""What is inside a node: its islands, and the figures of tiers up to the node."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import prod

import numpy as np

from placer.base.arrays import IntArray
from placer.base.errors import InputError, Problem
from placer.base.units import counted
from placer.formats.machines.findings import Findings
from placer.formats.machines.islands import Parts
from placer.formats.machines.pcie import Pcie
from placer.topology.affinity import Affinity, gpu_words
from placer.topology.islands import Islands
from placer.topology.model import Tier, Topology
from placer.topology.tiers import NODE

ISLAND = "island"

_HINT = "give hardware of the same kind of nodes"


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
    tier. Where no source tells how GPUs are joined, the hardware does.
    """
    told = [found for found in findings if found.nvlink is not None]
    _check(told, hardware)
    inside = _found(told, hardware) or _as_on(hardware)
    return replace(inside, affinity=_affinity(findings, hardware))


def _check(told: Sequence[Findings], hardware: Topology) -> None:
    """Refuse GPUs that are joined in another way elsewhere."""
    islands = hardware.islands
    nvlink = (islands.tiers[0] if islands else hardware.tiers[0]).scale_up
    name = hardware.name
    for found in told:
        first = told[0]
        message, key = "", "hardware"
        if found.nvlink != nvlink:
            message = f"NVLink or XGMI joins the GPUs of a node, on {name} none does"
            if nvlink:
                message = "the GPUs of a node have no NVLink or XGMI, "
                message += f"on {name} they have"
        elif found.islands != first.islands:
            key = ""
            message = (
                f"{_words(found.islands)} by NVLink or XGMI here, "
                f"{_words(first.islands)} in {first.source}"
            )
        elif (
            nvlink and islands and not found.islands and not hardware.tiers[0].scale_up
        ):
            message = (
                f"NVLink or XGMI joins all GPUs of a node, on {name} those of an "
                f"{islands.tiers[0].name} only"
            )
        if message:
            hint = _HINT if key else "correct a source, or leave one out"
            raise InputError([Problem(message, found.source, key=key, hint=hint)])


def _words(islands: Parts) -> str:
    if not islands:
        return "all GPUs of a node are joined"
    return f"islands {'; '.join(map(gpu_words, islands))} are joined"


def _as_on(hardware: Topology) -> Inside:
    """The inside of the hardware's nodes."""
    islands = hardware.islands
    tiers = (*(islands.tiers if islands else ()), hardware.tiers[0])
    figures = tuple(f"figures of {tier.name} of {hardware.name}" for tier in tiers)
    if not islands:
        return Inside(tiers, figures)
    return Inside(tiers, figures, islands.sizes, islands.members)


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
        figures = tuple(
            f"figures of {t.name} of {hardware.name}" for t in (island, node)
        )
        return Inside(tiers, figures, sizes, members)
    pcie = next((found.pcie for found in told if found.pcie), None)
    between, words, notes = _between(hardware, pcie)
    figures = f"figures of {node.name} of {hardware.name}", words
    return Inside(
        (replace(node, name=ISLAND), between), figures, sizes, members, notes=notes
    )


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


def _affinity(findings: Sequence[Findings], hardware: Topology) -> Affinity:
    """Of each list the first that a source tells, else that of the hardware."""
    known = [*(found.affinity for found in findings), hardware.affinity]
    return Affinity(
        next((near.numa for near in known if near.numa), ()),
        next((near.nics for near in known if near.nics), ()),
    )
