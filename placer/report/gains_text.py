"""What the usual placements would cost instead, and what that is worth."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from placer.base.units import format_seconds
from placer.placement.plan import Plan
from placer.placement.robust import uses_needless_hosts
from placer.placement.rules import breaks_launch_order
from placer.report.columns import Look, columns, seen, table, told
from placer.report.words import NOUN, gpu_hours_a_day, hop_cost, knows_work

_MARK = " *"
_HOURS = "GPU h/day"
_BY_AXIS = "by axis, ms"
# What sums of the same numbers in another order may differ by, of the step.
_ROUNDING = 1e-12


def gain_lines(plan: Plan, look: Look) -> Iterator[str]:
    """A line for every usual placement: its cost, what the plan saves, what breaks.

    GPU hours are those that the plan saves of a day of the usual placement: the share
    saved, of all GPUs. A line under the table says what its columns are.
    """
    if not plan.baselines:
        return
    objective = plan.bound.get("objective", "time")
    row = _row_of_cost if objective == "hop-cost" else _row_of_time
    alike = _alike(plan.baselines)
    rows = [row(name, plan, plan.baselines[name], look) for name in alike]
    head: Sequence[str] = ("other orders", NOUN[objective], "saved", "share")
    meaning = "saved: by this plan, and the same as a share"
    if objective != "hop-cost":
        head = (*head, _HOURS, _BY_AXIS)
        meaning = (
            "saved: by this plan, a step; GPU h/day: that share of all GPUs' hours; "
            "by axis: exposed time that each axis would add"
        )
        if not knows_work(plan.score):
            head, rows = _without(head, 4), [_without(row, 4) for row in rows]
            meaning = meaning.replace("GPU h/day: that share of all GPUs' hours; ", "")
        # The parts by axis are the first to go where there is no room.
        if max(map(seen, columns([head, *rows]))) > look.width:
            head, rows = head[:-1], [row[:-1] for row in rows]
            meaning = meaning.rpartition("; ")[0]
    yield from table(rows, head, look.width)
    same = (f"the same as {n}: {', '.join(own)}" for n, own in alike.items() if own)
    broken = [text for e in plan.baselines.values() for text in e.get("violates", ())]
    marked = [f"* {_what_breaks(broken)}"] if broken else []
    yield from told((meaning, *same, *marked), look.width)


def _without(row: Sequence[str], at: int) -> tuple[str, ...]:
    return (*row[:at], *row[at + 1 :])


def _alike(baselines: Mapping[str, Mapping[str, Any]]) -> dict[str, list[str]]:
    """The usual placements that differ, each with the others that are the same."""
    found: dict[str, list[str]] = {}
    for name, entry in baselines.items():
        same = next((known for known in found if baselines[known] == entry), None)
        if same is None:
            found[name] = []
        else:
            found[same].append(name)
    return found


def _what_breaks(violations: Sequence[str]) -> str:
    """Whether rules of the job are in the way, or how its launcher numbers ranks."""
    of_launcher = any(map(breaks_launch_order, violations))
    avoided = any(map(uses_needless_hosts, violations))
    hard = not all(
        breaks_launch_order(text) or uses_needless_hosts(text) for text in violations
    )
    launcher = "cannot be launched: the job's launcher numbers ranks node by node"
    parts = (
        "breaks rules of the job" * hard,
        "uses nodes to avoid" * avoided,
        launcher * of_launcher,
    )
    return ", or ".join(filter(None, parts))


def _row_of_time(
    name: str, plan: Plan, usual: Mapping[str, Any], look: Look
) -> tuple[str, ...]:
    own, other = plan.score["step_time_s"], usual["step_time_s"]
    saved = other - own
    if abs(saved) <= _ROUNDING * other:
        return (_name(name, usual), format_seconds(other), "-", "-", "-", "-")
    hours = gpu_hours_a_day(plan.world_size, saved / other) if other else 0.0
    return (
        _name(name, usual),
        format_seconds(other),
        _painted(_signed(saved), saved, look),
        f"{saved / other:+z.2%}",
        f"{hours:+,.0f}" if abs(hours) >= 10 else f"{hours:+.2g}",
        _by_axis(plan.score, usual),
    )


def _row_of_cost(
    name: str, plan: Plan, usual: Mapping[str, Any], look: Look
) -> tuple[str, ...]:
    other = usual["hop_cost"]
    saved = other - plan.score["hop_cost"]
    if not saved:
        return (_name(name, usual), hop_cost(other), "-", "-")
    share = f"{saved / other:+z.2%}" if other else ""
    shown = _painted(f"{saved:+,.12g}", saved, look)
    return (_name(name, usual), hop_cost(other), shown, share)


def _name(name: str, usual: Mapping[str, Any]) -> str:
    """The placement's name, marked when it breaks rules."""
    return f"  {name}" + _MARK * bool(usual.get("violates"))


def _signed(seconds: float) -> str:
    return ("+" if seconds > 0 else "-") + format_seconds(abs(seconds))


def _painted(text: str, saved: float, look: Look) -> str:
    return look.paint(text, "good" if saved > 0 else "bad")


def _by_axis(score: Mapping[str, Any], usual: Mapping[str, Any]) -> str:
    """Milliseconds that each axis would add: ``pp +9.1 dp -0.1``."""
    mine = score.get("exposed_s", {})
    more = {
        axis: 1e3 * (seconds - mine.get(axis, 0.0))
        for axis, seconds in usual.get("exposed_s", {}).items()
    }
    return " ".join(f"{axis} {ms:+.1f}" for axis, ms in more.items() if abs(ms) >= 0.05)
