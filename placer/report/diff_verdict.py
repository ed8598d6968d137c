"""What a difference comes to, in one sentence."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from placer.report.words import compared, gpu_hours_a_day

if TYPE_CHECKING:
    from placer.report.diff import PlanDiff

_OBJECTIVES = {"step_time_s": "time", "hop_cost": "hop-cost"}


def diff_verdict(found: PlanDiff) -> str:
    """The sentence, without a full stop: cost after and before, and how many move."""
    if found.is_empty:
        return f"no difference: {found.ranks_compared:,} ranks on the same GPUs"
    moved = f"{len(found.moved):,} of {found.ranks_compared:,} ranks move"
    return "; ".join([*_cost(found), moved])


def _cost(found: PlanDiff) -> Iterator[str]:
    """The first total that both have, and what it is worth where the model can tell."""
    total = next((c for c in found.costs if c.measure in _OBJECTIVES and c.old), None)
    if total is None:
        return
    objective = _OBJECTIVES[total.measure]
    noise = found.noise or {}
    yield compared(objective, total.new, total.old, "before", noise)
    if objective != "time" or not noise or noise["within"]:
        return
    size = found.new["world_size"]
    hours = gpu_hours_a_day(size, (total.old - total.new) / total.old)
    if size == found.old["world_size"] and abs(hours) >= 1:
        word = "saves" if hours > 0 else "costs"
        yield f"{word} {abs(hours):,.0f} GPU hours a day"
