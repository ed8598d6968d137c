"""What the usual placements of a job cost, beside the one that was found."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from placer.api.score import plain
from placer.explain.score import COSTS, costs_with
from placer.placement.baselines import BASELINES, baseline
from placer.placement.check import violations
from placer.placement.robust import needless_hosts
from placer.placement.seats import seats_of_placement

if TYPE_CHECKING:
    from placer.cost.step import StepModel
    from placer.job.model import Job
    from placer.placement.placement import Placement
    from placer.topology.model import Topology

# Ranks up to which the baselines are priced although the user wants to leave.
PRICED_IN_HASTE = 131_072


def baseline_costs(
    machine: Topology,
    model: StepModel,
    seed: int,
    chosen: Placement,
    found: Mapping[str, Any],
    stop_reason: str,
) -> dict[str, Any]:
    """What every usual placement would cost, and which hard rules it breaks.

    One that uses more hosts to avoid than the one ``chosen`` breaks that rule. On hosts
    in order several are the same placement, often the one that was ``chosen``
    and has the score ``found``; none is priced twice. After a request to stop those
    that would keep the user waiting are left out.
    """
    in_haste = stop_reason == "interrupted" and model.job.world_size > PRICED_IN_HASTE
    entries: dict[str, Any] = {}
    own = {key: found[key] for key in COSTS if key in found}
    priced: list[tuple[Placement, dict[str, Any]]] = [(chosen, own)]
    for name in BASELINES:
        if name == "random":
            continue
        usual = baseline(name, machine, model.job, seed)
        entry = next((known for one, known in priced if one.same_as(usual)), None)
        if entry is None and in_haste:
            continue
        if entry is None:
            entry = plain(costs_with(model, usual))
            if broken := _broken(usual, chosen, machine, model.job):
                entry["violates"] = broken
            priced.append((usual, entry))
        entries[name] = entry
    return entries


def _broken(
    usual: Placement, chosen: Placement, machine: Topology, job: Job
) -> list[str]:
    """What forbids a usual placement, one sentence each."""
    broken = violations(usual, machine, job)
    if job.rules.avoid:
        (own, _), (best, _) = (seats_of_placement(p, machine) for p in (usual, chosen))
        broken += needless_hosts(own, best, machine, job.rules.avoid)
    return broken
