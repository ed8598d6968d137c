"""What the usual placements would cost instead, and what that is worth."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from placer.placement.plan import OBJECTIVES, Plan
from placer.placement.robust import uses_needless_hosts
from placer.placement.rules import breaks_launch_order
from placer.report.columns import Look, columns, seen, table, told
from placer.report.words import NOUN, amount, gpu_hours_a_day, knows_work

_MARK = " *"
_HOURS = "GPU h/day"
_BY_AXIS = "by axis, ms"
# What columns of times are, by their place.
_ABOUT = {
    2: "saved: by this plan, a step",
    4: "GPU h/day: that share of all GPUs' hours",
    5: "by axis: exposed time that each axis would add",
}
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
    alike = _alike(plan.baselines)
    rows = [_row(name, plan, objective, look) for name in alike]
    head = ("other orders", NOUN[objective], "saved", "share", _HOURS, _BY_AXIS)
    shown, about = list(range(4)), {2: "saved: by this plan, and the same as a share"}
    if objective == "time":
        shown += [4] * knows_work(plan.score) + [5]
        about = _ABOUT
        # The parts by axis are the first to go where there is no room.
        wide = columns([[row[i] for i in shown] for row in (head, *rows)])
        if max(map(seen, wide)) > look.width:
            shown.pop()
    cells = [[row[i] for i in shown] for row in (head, *rows)]
    yield from table(cells[1:], cells[0], look.width)
    meaning = "; ".join(about[i] for i in shown if i in about)
    same = (f"the same as {n}: {', '.join(own)}" for n, own in alike.items() if own)
    broken = [text for e in plan.baselines.values() for text in e.get("violates", ())]
    marked = [f"* {_what_breaks(broken)}"] if broken else []
    yield from told((meaning, *same, *marked), look.width)


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


def _row(name: str, plan: Plan, objective: str, look: Look) -> tuple[str, ...]:
    """Name, marked when it breaks rules, cost, and what is saved in each way."""
    usual, key = plan.baselines[name], OBJECTIVES[objective]
    other = usual[key]
    saved = other - plan.score[key]
    first = f"  {name}" + _MARK * bool(usual.get("violates")), amount(objective, other)
    if abs(saved) <= (_ROUNDING * other if objective == "time" else 0.0):
        return (*first, "-", "-", "-", "-")
    sign, style = ("+", "good") if saved > 0 else ("-", "bad")
    share = saved / other if other else 0.0
    hours = gpu_hours_a_day(plan.world_size, share)
    return (
        *first,
        look.paint(sign + amount(objective, abs(saved)), style),
        f"{share:+z.2%}" if other else "",
        f"{hours:+,.0f}" if abs(hours) >= 10 else f"{hours:+.2g}",
        _by_axis(plan.score, usual),
    )


def _by_axis(score: Mapping[str, Any], usual: Mapping[str, Any]) -> str:
    """Milliseconds that each axis would add: ``pp +9.1 dp -0.1``."""
    mine = score.get("exposed_s", {})
    more = {
        axis: 1e3 * (seconds - mine.get(axis, 0.0))
        for axis, seconds in usual.get("exposed_s", {}).items()
    }
    return " ".join(f"{axis} {ms:+.1f}" for axis, ms in more.items() if abs(ms) >= 0.05)
