"""Tiers that requirements and rules name, against those that a machine has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from placer.base.errors import Problem
from placer.documents import closest

if TYPE_CHECKING:
    from placer.job.rules import Rules
    from placer.topology.model import Topology


def unknown_tiers(
    topology: Topology, require: Iterable[tuple[str, str]], rules: Rules
) -> Iterator[Problem]:
    """A problem for every tier that the topology lacks, or that cannot have spares.

    Parameters
    ----------
    topology : Topology
    require : iterable of (str, str)
        Axis or group, and the tier it must stay inside.
    rules : Rules
    """
    known = [tier.name for tier in topology.by_island.tiers]
    for axis, tier in require:
        if tier not in known:
            message, hint = _unknown(tier, topology.name, known)
            yield Problem(message, key=f"require.{axis}", hint=hint)
    tiers = [tier.name for tier in topology.tiers]
    for key, numbers in (("at_most", rules.at_most), ("spares", rules.spares)):
        for tier in numbers:
            if tier not in tiers:
                yield rules.problem(
                    f"{key}.{tier}", *_unknown(tier, topology.name, tiers)
                )
            elif key == "spares" and tier == tiers[0]:
                message = f"spares are whole {tier}s, which no {tier} holds"
                hint = f"name a tier above {tier}: {', '.join(tiers[1:])}"
                hint = hint if tiers[1:] else "the machine has no tier above it"
                yield rules.problem(f"{key}.{tier}", message, hint)


def _unknown(tier: str, machine: str, known: list[str]) -> tuple[str, str]:
    hint = closest(tier, known) or f"known: {', '.join(known)}"
    return f'the topology {machine} has no tier "{tier}"', hint
