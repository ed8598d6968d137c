"""What another rank order or launcher would save, in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from placer.base.units import format_seconds
from placer.cost import JITTER
from placer.job.orders import how_to_number
from placer.report.columns import WIDTH, wrapped

if TYPE_CHECKING:
    from placer.placement.plan import Plan

_FREE = "launcher: {ranks: free}"


def advice_lines(plan: Plan, width: int = WIDTH) -> Iterator[str]:
    """Lines, at most ``width`` columns; none when there is nothing to choose."""
    for text in (*_to_do(plan), *_looked_at(plan)):
        yield from wrapped(text, "  ", width)


def to_do_lines(plan: Plan, width: int = WIDTH) -> Iterator[str]:
    """Of these the ones that somebody has to act upon."""
    for text in _to_do(plan):
        yield from wrapped(text, "  ", width)


def _to_do(plan: Plan) -> Iterator[str]:
    """The order to launch in, and what launches save that anybody can measure."""
    job = plan.job
    if job.get("auto_order"):
        how = how_to_number(tuple(job["order"].split("-")))
        yield f"rank order {job['order']} chosen" + f" ({how})" * bool(how)
    objective = plan.bound.get("objective", "time")
    yield from (_saving(entry, objective) for entry in _savings(plan))


def _savings(plan: Plan) -> list[Mapping[str, Any]]:
    """Those of other launches that are more than jitter."""
    least = 0.0
    if plan.bound.get("objective", "time") == "time":
        least = JITTER * plan.score.get("step_time_s", 0.0)
    return [one for one in plan.advice.get("savings", ()) if one["saves"] > least]


def _looked_at(plan: Plan) -> Iterator[str]:
    """That no other launch is better, or that nobody has looked."""
    job, advice = plan.job, plan.advice
    status = advice.get("status")
    if status == "proved":
        yield (
            "no other rank order and no free launcher would do better: the lower bound "
            "holds for them too"
        )
    elif status == "not-computed":
        yield (
            "other rank orders and launchers: not computed for more than "
            f"{advice['most_ranks']:,} ranks"
        )
    elif status == "searched":
        if not _savings(plan):
            tried = ", ".join(advice["tried"])
            yield f"no better rank order or launcher found (tried {tried})"
    elif plan.solver.get("deterministic") is False and job.get("launcher") != "free":
        yield "other rank orders and launchers: not computed, no time was left"


def _saving(entry: Mapping[str, Any], objective: str) -> str:
    """One saving: ``order ... would save 41 ms a step (how)``."""
    is_order = entry["change"] == "order"
    subject = f"order {entry['to']}" if is_order else "a free launcher"
    how = entry.get("how") or ("" if is_order else _FREE)
    amount = entry["saves"]
    saved = (
        f"save {format_seconds(amount)} a step"
        if objective == "time"
        else f"lower the hop cost by {amount:,.12g}"
    )
    return f"{subject} would {saved}" + f" ({how})" * bool(how)
