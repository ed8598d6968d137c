"""A plan as a page of plain text: what was placed, what it costs, what is proved."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from placer.report.advice_text import advice_lines
from placer.report.columns import wrapped
from placer.report.rules_text import rule_lines
from placer.report.score_text import score_text
from placer.units import format_seconds

if TYPE_CHECKING:
    from placer.placement.plan import Plan

_AXES = ("tp", "cp", "ep", "pp", "dp")
_UNITS = ((10.0, "s", 1.0), (1e-4, "ms", 1e3), (0.0, "us", 1e6))
_NOUN = {"time": "step time", "hop-cost": "hop cost"}
_WHY = {
    "proved": "proved optimal",
    "searched": "all methods tried",
    "time-limit": "stopped by the time limit",
    "interrupted": "interrupted",
}


def summarise(plan: Plan) -> str:
    """The plan for people: plain text, at most 80 columns, no final newline.

    What the plan does not say is left out.
    """
    tiers = plan.topology.get("tiers", ())
    scale_up = plan.topology.get("scale_up", 0)
    blocks = (
        "\n".join(_placed(plan)),
        score_text(plan.score, tiers, scale_up) if plan.score else "",
        "\n".join((*_proved(plan.bound), *advice_lines(plan))),
        "\n".join(_gains(plan)),
    )
    return "\n\n".join(block for block in blocks if block)


def _placed(plan: Plan) -> Iterator[str]:
    """What was placed on what, and how."""
    job, topology = plan.job, plan.topology
    yield from wrapped(
        f"{job['name']} on {topology['name']}: {plan.world_size:,} ranks", "  "
    )
    sizes = job.get("parallelism", {})
    axes = " x ".join(f"{a} {sizes[a]}" for a in _AXES if sizes.get(a, 1) > 1)
    details = [
        axes,
        f"vp {sizes['vp']}" if sizes.get("vp", 1) > 1 else "",
        f"numbered {job['order']}",
        job.get("launcher", ""),
    ]
    yield from wrapped(", ".join(filter(None, details)), "  ")
    yield from wrapped(", ".join(_domains(plan)), "  ")
    yield from rule_lines(plan.rules)
    yield from _moved(plan.previous)
    solver = plan.solver
    if "method" in solver:
        how = f"placed by {solver['method']} in {solver['wall_s']:.2f} s"
        yield from wrapped(f"{how} ({_WHY.get(solver['stop_reason'], '')})", "  ")


def _moved(previous: Mapping[str, Any]) -> Iterator[str]:
    """How many ranks are where the previous plan has them."""
    if previous:
        total = sum(previous.values())
        new = f", {previous['new']:,} new" * (previous["new"] > 0)
        yield (
            f"{previous['kept']:,} of {total:,} ranks stay where the previous plan has "
            f"them, {previous['moved']:,} move{new}"
        )


def _domains(plan: Plan) -> Iterator[str]:
    """How many domains of each tier hold ranks, and how many each."""
    ranks = np.bincount(plan.node_of_rank, minlength=len(plan.nodes))
    yield _count("node", ranks)
    for tier, names in plan.domains.items():
        _, domain = np.unique(names, return_inverse=True)
        yield _count(tier, np.bincount(domain, weights=ranks).astype(np.int64))


def _count(tier: str, ranks: np.ndarray) -> str:
    low, high = int(ranks.min()), int(ranks.max())
    size = f"{low:,} GPUs" if low == high else f"{low:,} to {high:,} GPUs"
    each = " each" if len(ranks) > 1 and low == high else ""
    return f"{len(ranks):,} {tier}{'s' * (len(ranks) != 1)} ({size}{each})"


def _proved(bound: Mapping[str, Any]) -> Iterator[str]:
    """The bound, the gap and the argument."""
    if "lower_bound" not in bound:
        return
    if bound["status"] == "optimal":
        text = f"optimal {_NOUN[bound['objective']]}: equal to its lower bound"
    else:
        lower = _amount(bound["objective"], bound["lower_bound"])
        # Rounded up, so as not to promise too much.
        gap = math.ceil(bound["gap"] * 1e5) / 1e5
        text = f"lower bound {lower}, gap {gap:.3%}"
    argument = f" ({bound['argument']})" if bound.get("argument") else ""
    yield from wrapped(text + argument, "  ")


def _amount(objective: str, value: float) -> str:
    return format_seconds(value) if objective == "time" else f"{value:,.12g}"


def _gains(plan: Plan) -> Iterator[str]:
    """What each usual placement would cost more."""
    objective = plan.bound.get("objective", "time")
    gain_of = _saved_cost if objective == "hop-cost" else _saved_time
    rows = [
        (name, gain_of(plan.score, entry), len(entry.get("violates", ())))
        for name, entry in plan.baselines.items()
    ]
    if not rows:
        return
    yield "saved against"
    width = max(len(name) for name, _, _ in rows)
    for name, gain, broken in rows:
        rules = f"; it breaks {broken} hard rule{'s' * (broken != 1)}" * (broken > 0)
        yield from wrapped(f"  {name:<{width}}  {gain}{rules}", " " * (width + 4))


def _saved_time(score: Mapping[str, Any], usual: Mapping[str, Any]) -> str:
    """Seconds saved, and by which axis: ``+9.0 ms (pp +9.1, dp -0.1)``."""
    total = usual["step_time_s"] - score["step_time_s"]
    mine = score.get("exposed_s", {})
    by_axis = {
        axis: seconds - mine.get(axis, 0.0)
        for axis, seconds in usual.get("exposed_s", {}).items()
    }
    largest = max(map(abs, (total, *by_axis.values())))
    unit, factor = next(u for least, *u in _UNITS if largest >= least)
    parts = [
        f"{axis} {seconds * factor:+.1f}"
        for axis, seconds in by_axis.items()
        if abs(seconds) * factor >= 0.05
    ]
    detail = f" ({', '.join(parts)})" if parts else ""
    return f"{total * factor:+.1f} {unit}{detail}" if parts or total else "nothing"


def _saved_cost(score: Mapping[str, Any], usual: Mapping[str, Any]) -> str:
    """Hop cost saved, and its share of the usual placement's."""
    total = usual["hop_cost"] - score["hop_cost"]
    share = f" ({total / usual['hop_cost']:.2%})" if usual["hop_cost"] else ""
    return f"{total:+,.12g}{share}" if total else "nothing"
