"""Links between switches: which tiers have them, and how many times oversubscribed."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from placer.assumed import OVERSUBSCRIPTION, Assumption

if TYPE_CHECKING:
    from placer.topology.model import Tier, Topology


def uplink_tiers(machine: Topology) -> list[int]:
    """Indices of the tiers that links of switches lead into, several of them.

    A node's own links are its NICs: these are as fast as they are.
    """
    domains = [len(names) for names in machine.domain_names]
    return [
        t
        for t in range(max(1, machine.scale_up_tier) + 1, len(machine.tiers))
        if domains[t - 1] > 1
    ]


def assumed_uplinks(machine: Topology) -> tuple[Assumption, ...]:
    """That they are not oversubscribed, where no source said whether they are."""
    thin = uplink_tiers(machine)
    if not thin or any(machine.tiers[t].oversubscription != 1 for t in thin):
        return ()
    tier = machine.tiers[thin[-1]].name
    why = "no source says how many times uplinks are oversubscribed"
    return (Assumption(OVERSUBSCRIPTION, 1, why, f"--oversubscription {tier}=N"),)


def oversubscribed(machine: Topology, ratio: float) -> Topology:
    """The machine with all links between switches so many times oversubscribed.

    It is not the machine of the sources any more, so it has no digest.
    """
    tiers: list[Tier] = [*machine.tiers]
    for t in uplink_tiers(machine):
        tiers[t] = replace(tiers[t], oversubscription=float(ratio))
    return replace(machine, tiers=tuple(tiers), sha256="")
