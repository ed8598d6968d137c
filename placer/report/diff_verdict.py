"""What a difference comes to, in one sentence."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from placer.base.units import format_seconds
from placer.report.words import compared, gpu_hours_a_day, saved_text

if TYPE_CHECKING:
    from placer.report.diff import PlanDiff

_OBJECTIVES = {"step_time_s": "time", "hop_cost": "hop-cost"}


def diff_verdict(found: PlanDiff) -> dict[str, Any]:
    """What the new plan saves of the old, as a plan's ``verdict`` has it."""
    facts: dict[str, Any] = {}
    if found.saved is not None:
        facts = found.saved.to_dict()
        better = found.saved.is_measurable
        facts = {"advice": "move" if better else "keep", "against": "before", **facts}
    return {**facts, "ranks_moved": len(found.moved), "text": diff_sentence(found)}


def diff_sentence(found: PlanDiff) -> str:
    """The sentence, without a full stop: cost after and before, and how many move."""
    if found.is_empty:
        return f"no difference: {found.ranks_compared:,} ranks on the same GPUs"
    moved = f"{len(found.moved):,} of {found.ranks_compared:,} ranks move"
    return "; ".join([*_cost(found), moved])


def _cost(found: PlanDiff) -> Iterator[str]:
    """The first total that both have, and what it is worth where anybody can tell."""
    total = next((c for c in found.costs if c.measure in _OBJECTIVES and c.old), None)
    if total is None:
        return
    objective, saved = _OBJECTIVES[total.measure], found.saved
    if objective != "time" or saved is None or total.new == total.old:
        yield compared(objective, total.new, total.old, "before")
        return
    word = "saves" if saved.saved_s > 0 else "costs"
    times = f"{format_seconds(total.new)} instead of {format_seconds(total.old)} a step"
    yield f"{word.capitalize()} {saved_text('time', saved.to_dict())}: {times}"
    if not saved.can_be_measured:
        yield "too little to measure"
        return
    size = found.new["world_size"]
    hours = gpu_hours_a_day(size, (total.old - total.new) / total.old)
    if abs(hours) >= 1:
        yield f"{word} {abs(hours):,.0f} GPU hours a day"
